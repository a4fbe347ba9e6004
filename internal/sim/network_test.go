package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"
)

const webhookSecret = "whsec_of_the_simulation"

// A network is the world of cards: it answers the processor's API, charges
// cards, gives money back and sends events, some twice, some late, some never.
// It keeps books of its own, which the ledger has to agree with.
type network struct {
	server *httptest.Server

	mu       sync.Mutex
	random   *rand.Rand
	sessions map[string]*checkout // by id
	byKey    map[string]string    // what was answered under an Idempotency-Key
	charges  []*cardCharge
	cases    []*cardCase
	outbox   []event // to be delivered
	sent     int     // delivered, repetitions too
	lost     int     // events that nobody was ever told of
}

type checkout struct {
	id, order, team string
	cents           int64
	charge          string // of the card; empty: not paid
}

// A cardCharge is money that a card was charged.
type cardCharge struct {
	id, team string
	cents    int64
	left     int64 // not refunded, not disputed
}

// A cardCase is a refund or a dispute.
type cardCase struct {
	id, kind, charge, team string
	cents                  int64
	status                 string
}

// taken says whether the money of the case is gone.
func (c *cardCase) taken() bool { return c.status != "won" && c.status != "failed" }

type event struct {
	body   []byte
	copies int
	after  time.Time // wall
}

func newNetwork(t *testing.T, seed uint64) *network {
	n := &network{
		random:   rand.New(rand.NewPCG(seed, 2)),
		sessions: map[string]*checkout{}, byKey: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/customers", n.answer(func(r *http.Request) any {
		return map[string]any{"id": n.once(r, "cus"), "object": "customer"}
	}))
	mux.HandleFunc("POST /v1/checkout/sessions", n.answer(func(r *http.Request) any { return n.open(r).object() }))
	mux.HandleFunc("GET /v1/checkout/sessions/{id}", n.answer(func(r *http.Request) any {
		return n.sessions[r.PathValue("id")].object()
	}))
	mux.HandleFunc("GET /v1/refunds", n.answer(func(r *http.Request) any { return n.list(r, "refund") }))
	mux.HandleFunc("GET /v1/disputes", n.answer(func(r *http.Request) any { return n.list(r, "dispute") }))
	mux.HandleFunc("GET /", n.answer(func(*http.Request) any { return list(nil, false) }))
	n.server = httptest.NewServer(mux)
	t.Cleanup(n.server.Close)
	return n
}

// answer serves one call at a time. Now and then what was asked is done, but
// the answer does not arrive.
func (n *network) answer(do func(r *http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n.mu.Lock()
		body, err := json.Marshal(do(r))
		drop := n.random.IntN(100) == 0
		n.mu.Unlock()
		if err != nil || drop {
			http.Error(w, `{"error":{"type":"api_error"}}`, http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

// once is the id that the request's key stands for.
func (n *network) once(r *http.Request, prefix string) string {
	key := r.Header.Get("Idempotency-Key")
	if n.byKey[key] == "" {
		n.byKey[key] = fmt.Sprintf("%s_%d", prefix, len(n.byKey)+1)
	}
	return n.byKey[key]
}

func (n *network) open(r *http.Request) *checkout {
	id := n.once(r, "cs")
	if n.sessions[id] == nil {
		cents, _ := strconv.ParseInt(r.PostForm.Get("line_items[0][price_data][unit_amount]"), 10, 64)
		n.sessions[id] = &checkout{
			id: id, cents: cents, order: r.PostForm.Get("metadata[topup_id]"), team: r.PostForm.Get("client_reference_id"),
		}
	}
	return n.sessions[id]
}

func (c *checkout) object() map[string]any {
	o := map[string]any{
		"id": c.id, "object": "checkout.session", "mode": "payment", "url": "https://cards.example/" + c.id, "currency": "usd",
		"amount_subtotal": c.cents, "amount_total": c.cents, "livemode": false, "payment_status": "unpaid", "status": "open",
		"metadata": map[string]string{"topup_id": c.order}, "client_reference_id": c.team,
	}
	if c.charge != "" {
		o["payment_status"], o["status"], o["payment_intent"] = "paid", "complete", c.charge
	}
	return o
}

func (c *cardCase) object() map[string]any {
	return map[string]any{
		"id": c.id, "object": c.kind, "amount": c.cents, "currency": "usd", "payment_intent": c.charge, "status": c.status, "livemode": false,
	}
}

func list(data []any, more bool) map[string]any {
	if data == nil {
		data = []any{}
	}
	return map[string]any{"object": "list", "data": data, "has_more": more, "url": "/v1"}
}

// list is a page of refunds or disputes.
func (n *network) list(r *http.Request, kind string) any {
	var of []*cardCase
	for _, c := range n.cases {
		if c.kind == kind {
			of = append(of, c)
		}
	}
	from := 1 + slices.IndexFunc(of, func(c *cardCase) bool { return c.id == r.Form.Get("starting_after") })
	to := min(from+100, len(of))
	var page []any
	for _, c := range of[from:to] {
		page = append(page, c.object())
	}
	return list(page, to < len(of))
}

// pay charges a card for a checkout, once.
func (n *network) pay(sessionID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.sessions[sessionID]
	if c == nil || c.charge != "" {
		return
	}
	c.charge = fmt.Sprintf("pi_%d", len(n.charges)+1)
	n.charges = append(n.charges, &cardCharge{id: c.charge, team: c.team, cents: c.cents, left: c.cents})
	n.tell("checkout.session.completed", c.object())
}

// giveBack refunds a part of a charge, disputes the rest of it, or ends an open
// dispute.
func (n *network) giveBack() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.charges) == 0 || len(n.cases) > 400 {
		return
	}
	p := n.charges[n.random.IntN(len(n.charges))]
	if open := slices.IndexFunc(n.cases, func(c *cardCase) bool { return c.status == "needs_response" }); open >= 0 && n.random.IntN(2) == 0 {
		c := n.cases[open]
		c.status = []string{"won", "lost"}[n.random.IntN(2)]
		n.tell("charge.dispute.closed", c.object())
		return
	}
	if p.left == 0 {
		return
	}
	c := &cardCase{id: fmt.Sprintf("re_%d", len(n.cases)+1), kind: "refund", charge: p.id, team: p.team, cents: 1 + n.random.Int64N(p.left), status: "succeeded"}
	kind := "refund.created"
	if n.random.IntN(4) == 0 {
		c.id, c.kind, c.cents, c.status, kind = fmt.Sprintf("dp_%d", len(n.cases)+1), "dispute", p.left, "needs_response", "charge.dispute.created"
	}
	p.left -= c.cents
	n.cases = append(n.cases, c)
	n.tell(kind, c.object())
}

// tell draws the fate of an event: most are delivered once, some twice at the
// same time, some late, some never.
func (n *network) tell(kind string, object map[string]any) {
	body, err := json.Marshal(map[string]any{
		"id": fmt.Sprintf("evt_%d", n.random.Uint64()), "object": "event", "api_version": stripe.APIVersion, "created": time.Now().Unix(),
		"livemode": false, "type": kind, "data": map[string]any{"object": object},
	})
	if err != nil {
		panic(err)
	}
	e := event{body: body, copies: 1}
	switch n.random.IntN(10) {
	case 0:
		n.lost++
		return
	case 1, 2:
		e.copies = 2 + n.random.IntN(3)
	case 3, 4:
		e.after = time.Now().Add(time.Duration(n.random.IntN(20_000)) * time.Millisecond)
	}
	n.outbox = append(n.outbox, e)
}

// take removes a due event from the outbox, in no order.
func (n *network) take(all bool) (event, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := slices.Collect(func(yield func(int) bool) {
		for i, e := range n.outbox {
			if (all || !e.after.After(time.Now())) && !yield(i) {
				return
			}
		}
	})
	if len(due) == 0 {
		return event{}, false
	}
	i := due[n.random.IntN(len(due))]
	e := n.outbox[i]
	n.outbox = slices.Delete(n.outbox, i, i+1)
	return e, true
}

// deliver posts one event, all its copies at once. One that nobody accepted is
// sent again later, as processors do.
func (n *network) deliver(address string, e event) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	accepted := true
	for range e.copies {
		wait.Go(func() {
			ok := post(address+"/webhooks/stripe", e.body)
			mu.Lock()
			defer mu.Unlock()
			accepted = accepted && ok
		})
	}
	wait.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent += e.copies
	if !accepted {
		e.after = time.Now().Add(time.Duration(n.random.IntN(2000)) * time.Millisecond)
		n.outbox = append(n.outbox, e)
	}
}

func post(address string, body []byte) bool {
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body)) //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: webhookSecret, Timestamp: time.Now()})
	req.Header.Set("Stripe-Signature", signed.Header)
	resp, err := browser.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
