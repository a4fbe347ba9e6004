package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

const secret = "whsec_of_this_test"

// A bank is the outside world: a processor that remembers its checkouts.
type bank struct {
	mu       sync.Mutex
	sessions map[string]payment.Session
	opened   map[string]string // by order
	subs     map[string]payment.Subscription
	reads    int // of subscriptions

	customers int // made so far
	cases     []payment.Case
	purse
	book []payment.Movement

	receipts      map[string]string // by payment
	askedReceipts int

	seen  func(payment.TeamOrder)
	slow  func() // between a reading and its answer
	down  bool
	broke bool // the card has no money
	lost  bool // what is asked is done, but the answer does not arrive
}

func (b *bank) Source() wallet.Source { return wallet.Stripe }
func (b *bank) Minimum() money.USD    { return 50 * money.Cent }

func (b *bank) CreateCustomer(_ context.Context, c payment.Customer) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return "", errors.New("no route to the bank")
	}
	b.customers++
	return fmt.Sprintf("cus_%d_%s", b.customers, c.TeamID), nil
}

func (b *bank) SetSeats(_ context.Context, c payment.SeatChange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[c.SubscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	if b.broke && c.Seats > s.Seats {
		return nil // as Stripe does: it waits for a payment
	}
	s.Seats = c.Seats
	b.subs[c.SubscriptionID] = s
	if b.lost {
		return errors.New("the answer got lost")
	}
	return nil
}

func (b *bank) EndSubscription(_ context.Context, subscriptionID string) error {
	return b.setEnding(subscriptionID, true)
}

func (b *bank) ResumeSubscription(_ context.Context, subscriptionID string) error {
	return b.setEnding(subscriptionID, false)
}

func (b *bank) setEnding(subscriptionID string, ending bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[subscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	s.CancelsAtPeriodEnd = ending
	b.subs[subscriptionID] = s
	return nil
}

func (b *bank) ListCases(context.Context, time.Time) ([]payment.Case, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errors.New("no answer from the bank")
	}
	return b.cases, nil
}

func (b *bank) PortalURL(_ context.Context, customerID, returnURL string) (string, error) {
	return "https://bank.test/portal/" + customerID + "?back=" + url.QueryEscape(returnURL), nil
}

func (b *bank) CreateTopUp(_ context.Context, o payment.Order) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Session{}, errors.New("no route to the bank")
	}
	if own, ok := b.opened[o.ID.String()]; ok {
		return b.sessions[own], nil
	}
	s := payment.Session{ID: "cs_" + o.ID.String(), OrderID: o.ID, Amount: o.Amount, Currency: "usd"}
	s.URL = "https://bank.test/" + s.ID
	b.sessions[s.ID], b.opened[o.ID.String()] = s, s.ID
	return s, nil
}

func (b *bank) CreateSubscription(_ context.Context, o payment.TeamOrder) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Session{}, errors.New("no route to the bank")
	}
	if b.seen != nil {
		b.seen(o)
	}
	if own, ok := b.opened[o.ID.String()]; ok {
		return b.sessions[own], nil
	}
	s := payment.Session{
		ID: "cs_" + o.ID.String(), Mode: payment.SubscriptionMode, OrderID: o.ID,
		Amount: o.SeatPrice * money.USD(o.Seats), Currency: "usd",
	}
	s.URL = "https://bank.test/" + s.ID
	b.sessions[s.ID], b.opened[o.ID.String()] = s, s.ID
	return s, nil
}

func (b *bank) ReadSubscription(_ context.Context, subscriptionID string) (payment.Subscription, error) {
	b.mu.Lock()
	b.reads++
	s, ok := b.subs[subscriptionID]
	down := b.down
	b.mu.Unlock()
	if b.slow != nil {
		b.slow()
	}
	if down || !ok {
		return payment.Subscription{}, errors.New("no answer from the bank")
	}
	return s, nil
}

func (b *bank) CancelSubscription(_ context.Context, subscriptionID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[subscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	s.Status = "canceled"
	b.subs[subscriptionID] = s
	return nil
}

func (b *bank) ReadSession(_ context.Context, sessionID string) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.sessions[sessionID]
	if b.down || !ok {
		return payment.Session{}, errors.New("no answer from the bank")
	}
	return s, nil
}

func (b *bank) Verify(body []byte, signature string, wall time.Time) (payment.Event, error) {
	return payment.Open(body, signature, secret, true, wall)
}

// settle marks a checkout paid at the bank.
func (b *bank) settle(sessionID, paymentID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[sessionID]
	s.Paid, s.PaymentID = true, paymentID
	b.sessions[sessionID] = s
}

type desk struct {
	t     *testing.T
	pool  *pgxpool.Pool
	bank  *bank
	pay   *payment.Service
	w     *wallet.Service
	clock *clock.Manual
	jobs  *job.Recorder
	teams *team.Service
	scope team.Scope
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{
		t: t, pool: pgtest.New(t), clock: clock.Fixed(noon),
		bank: &bank{
			sessions: map[string]payment.Session{}, opened: map[string]string{}, subs: map[string]payment.Subscription{},
			purse: purse{cards: map[string]payment.Card{}, detached: map[string]bool{}, paid: map[uuid.UUID]payment.Payment{}},
		},
		jobs: &job.Recorder{},
	}
	logger := slog.New(slog.DiscardHandler)
	d.w = wallet.New(wallet.Deps{Pool: d.pool, Clock: d.clock.Clock, Logger: logger})
	d.teams = team.New(team.Deps{Pool: d.pool, Clock: d.clock.Clock, Jobs: &job.Recorder{}, Hooks: team.Hooks{OpenWallet: d.w.OpenTx}})
	d.pay = payment.New(payment.Deps{
		Pool: d.pool, Clock: d.clock.Clock, Logger: logger, Wallet: d.w, Teams: d.teams, Jobs: d.jobs, Processor: d.bank, PublicURL: "https://homeport.test",
	})
	d.scope = teamtest.Admin(t, d.pool, team.Pro)
	err := pg.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
		return d.w.OpenTx(t.Context(), tx, d.scope.TeamID(), d.clock.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// order opens a checkout and returns its session.
func (d *desk) order(amount string) payment.Session {
	d.t.Helper()
	url, err := d.pay.CheckoutCredit(d.t.Context(), d.scope, amount, idem.Request{})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.bank.sessions[path.Base(url)]
}

// A notice is an event before it is signed.
type notice struct {
	id, kind, version string
	live              bool
	object            map[string]any
}

// paid is the event of a paid checkout, as Stripe writes it.
func paid(s payment.Session, paymentID string) notice {
	return notice{
		id: "evt_" + id.New().String(), kind: "checkout.session.completed", version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": s.ID, "object": "checkout.session", "amount_subtotal": int64(s.Amount / money.Cent), "currency": "usd",
			"amount_total": int64(s.Amount/money.Cent) + 19, "mode": "payment", "payment_status": "paid", "status": "complete",
			"payment_intent": paymentID, "metadata": map[string]string{payment.OrderKey: s.OrderID.String()},
		},
	}
}

func (n notice) body(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"id": n.id, "object": "event", "api_version": n.version, "created": noon.Unix(), "livemode": n.live,
		"type": n.kind, "data": map[string]any{"object": n.object},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func sign(body []byte, key string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: key, Timestamp: at}).Header
}

// receive delivers an event signed now.
func (d *desk) receive(n notice) error {
	body := n.body(d.t)
	return d.pay.Receive(d.t.Context(), body, sign(body, secret, d.clock.Wall()))
}

func (d *desk) mustReceive(n notice) {
	d.t.Helper()
	if err := d.receive(n); err != nil {
		d.t.Fatal(err)
	}
}

// want checks the balance and how many credits made it.
func (d *desk) want(amount money.USD, credits int) {
	d.t.Helper()
	b, err := d.w.Balance(d.t.Context(), d.scope, d.clock.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	rows, _, err := d.w.Transactions(d.t.Context(), d.scope, d.clock.Now(), 100, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if b.Balance != amount || len(rows) != credits {
		d.t.Errorf("balance %s by %d credits, want %s by %d", b.Balance, len(rows), amount, credits)
	}
}

func TestAmountsOfATopUp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]money.USD{
		"0.01": money.Cent, "5": 5 * money.Dollar, "10000": 10_000 * money.Dollar, "25.50": 25*money.Dollar + 50*money.Cent,
		"1e2": 100 * money.Dollar,
	} {
		if got, err := payment.ParseAmount(text); err != nil || got != want {
			t.Errorf("%s: %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-5", "0.001", "0.009", "10000.01", "1.234", "ten", "NaN", "Infinity", "1e9", "99999999999999999999"} {
		if got, err := payment.ParseAmount(text); !errors.Is(err, payment.ErrAmount) {
			t.Errorf("%q was taken as %v (%v)", text, got, err)
		}
	}
}

func TestAPaidEventCreditsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	d.want(0, 0)
	event := paid(s, "pi_1")
	d.mustReceive(event)
	d.want(1234*money.Cent, 1)
	d.mustReceive(event) // sent again
	other := paid(s, "pi_1")
	d.mustReceive(other) // a second event about the same payment
	other.id, other.kind = "evt_async", "checkout.session.async_payment_succeeded"
	d.mustReceive(other)
	d.want(1234*money.Cent, 1)
}

func TestConcurrentEventsCreditOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	same := paid(s, "pi_1")
	var wait sync.WaitGroup
	for i := range 64 {
		n := same
		if i%2 == 0 {
			n = paid(s, "pi_1")
		}
		wait.Go(func() {
			if err := d.receive(n); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	d.want(1234*money.Cent, 1)
}

func TestEventsThatChangeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	change := func(edit func(*notice)) notice {
		n := paid(s, "pi_1")
		edit(&n)
		return n
	}
	tests := map[string]struct {
		event notice
		fault error
	}{
		"unpaid":             {change(func(n *notice) { n.object["payment_status"] = "unpaid" }), nil},
		"free":               {change(func(n *notice) { n.object["payment_status"] = "no_payment_required" }), nil},
		"another amount":     {change(func(n *notice) { n.object["amount_subtotal"] = 999_999 }), nil},
		"another currency":   {change(func(n *notice) { n.object["currency"] = "jpy" }), nil},
		"another mode":       {change(func(n *notice) { n.object["mode"] = "subscription" }), nil},
		"another session":    {change(func(n *notice) { n.object["id"] = "cs_other" }), nil},
		"no payment":         {change(func(n *notice) { delete(n.object, "payment_intent") }), nil},
		"no order":           {change(func(n *notice) { delete(n.object, "metadata") }), nil},
		"an unknown order":   {change(func(n *notice) { n.object["metadata"] = map[string]string{payment.OrderKey: id.New().String()} }), nil},
		"an unknown kind":    {change(func(n *notice) { n.kind = "payment_intent.succeeded" }), nil},
		"another livemode":   {change(func(n *notice) { n.live = false }), payment.ErrMode},
		"no id":              {change(func(n *notice) { n.id = "" }), payment.ErrSignature},
		"an old API version": {change(func(n *notice) { n.version = "2020-08-27" }), payment.ErrSignature},
	}
	for name, test := range tests {
		if err := d.receive(test.event); !errors.Is(err, test.fault) {
			t.Errorf("%s: %v, want %v", name, err, test.fault)
		}
		d.want(0, 0)
	}
	d.mustReceive(paid(s, "pi_1"))
	d.want(1234*money.Cent, 1)
}

func TestForgedAndStaleEventsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	body := paid(d.order("12.34"), "pi_1").body(t)
	wall := d.clock.Wall()
	good := sign(body, secret, wall)
	tests := map[string]struct {
		body      []byte
		signature string
		fault     error
	}{
		"no signature":       {body, "", payment.ErrSignature},
		"nonsense":           {body, "t=soon,v1=xyz", payment.ErrSignature},
		"another secret":     {body, sign(body, "whsec_of_a_thief", wall), payment.ErrSignature},
		"a changed body":     {[]byte(strings.Replace(string(body), "1234", "9999", 1)), good, payment.ErrSignature},
		"signed an hour ago": {body, sign(body, secret, wall.Add(-time.Hour)), payment.ErrSignature},
		"signed tomorrow":    {body, sign(body, secret, wall.Add(24*time.Hour)), payment.ErrSignature},
		"no event":           {[]byte(`{"object":"list"}`), sign([]byte(`{"object":"list"}`), secret, wall), payment.ErrSignature},
		"too large":          {make([]byte, payment.MaxEventSize+1), good, payment.ErrTooLarge},
	}
	for name, test := range tests {
		if err := d.pay.Receive(t.Context(), test.body, test.signature); !errors.Is(err, test.fault) {
			t.Errorf("%s: %v, want %v", name, err, test.fault)
		}
	}
	d.want(0, 0)
	if err := d.pay.Receive(t.Context(), body, sign(body, secret, wall.Add(-4*time.Minute))); err != nil {
		t.Errorf("within the tolerance: %v", err)
	}
	d.want(1234*money.Cent, 1)
}

func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.order("10"), d.order("20")
	expired := func(s payment.Session) notice {
		n := paid(s, "")
		n.kind, n.object["status"], n.object["payment_status"], n.object["payment_intent"] = "checkout.session.expired", "expired", "unpaid", nil
		return n
	}
	d.mustReceive(paid(first, "pi_1"))
	d.mustReceive(expired(first)) // late and wrong: it is paid
	d.want(10*money.Dollar, 1)
	d.mustReceive(expired(second))
	d.want(10*money.Dollar, 1)
	d.clock.Advance(72 * time.Hour)
	d.mustReceive(paid(second, "pi_2")) // three days late: the money is there
	d.want(30*money.Dollar, 2)
}

func TestAHandlerThatDiesMidwayIsSentAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	event := paid(s, "pi_1")
	// The wallet is gone when the event comes: the claim must go with it.
	hide := `alter table wallet rename to wallet_hidden`
	if _, err := d.pool.Exec(t.Context(), hide); err != nil {
		t.Fatal(err)
	}
	if err := d.receive(event); err == nil {
		t.Fatal("an event without effect was taken as handled")
	}
	if _, err := d.pool.Exec(t.Context(), `alter table wallet_hidden rename to wallet`); err != nil {
		t.Fatal(err)
	}
	d.want(0, 0)
	d.mustReceive(event)
	d.want(1234*money.Cent, 1)
}

func TestALostEventIsHealedByReading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, open := d.order("12.34"), d.order("5")
	d.bank.settle(s.ID, "pi_1")
	if err := d.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.want(0, 0) // too early to ask
	d.clock.Advance(3 * time.Minute)
	d.bank.down = true
	if err := d.pay.ReadOpen(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	d.bank.down = false
	d.clock.Advance(2 * time.Hour)
	if err := d.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.want(1234*money.Cent, 1)
	d.mustReceive(paid(s, "pi_1")) // found after all
	d.want(1234*money.Cent, 1)
	d.mustReceive(paid(open, "pi_2"))
	d.want(1734*money.Cent, 2)
}

func TestOnePaymentPaysOneOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.order("10"), d.order("10")
	d.mustReceive(paid(first, "pi_1"))
	if err := d.receive(paid(second, "pi_1")); err == nil {
		t.Error("one payment paid two orders")
	}
	d.want(10*money.Dollar, 1)
}

func TestCheckoutRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	checkout := func(amount string) error {
		_, err := d.pay.CheckoutCredit(t.Context(), d.scope, amount, idem.Request{})
		return err
	}
	if err := checkout("0.49"); !errors.Is(err, payment.ErrAmount) || fault.Of(err).Detail != "The minimum payment is $0.50" {
		t.Errorf("below the processor's minimum: %v", err)
	}
	d.bank.down = true
	if err := checkout("5"); !errors.Is(err, payment.ErrUnavailable) {
		t.Errorf("a processor that is down: %v", err)
	}
	d.bank.down = false
	if _, err := d.pool.Exec(t.Context(), `delete from membership`); err != nil {
		t.Fatal(err)
	}
	if err := checkout("5"); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("somebody who left the team meanwhile: %v", err)
	}
	none := payment.New(payment.Deps{Pool: d.pool, Clock: d.clock.Clock})
	if _, err := none.CheckoutCredit(t.Context(), d.scope, "5", idem.Request{}); !errors.Is(err, payment.ErrNotSetUp) {
		t.Errorf("without a processor: %v", err)
	}
}

func TestARepeatedRequestGetsTheSameCheckout(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	once := idem.Request{Scope: "someone", Key: "key", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	d.bank.down = true
	if _, err := d.pay.CheckoutCredit(t.Context(), d.scope, "5", once); err == nil {
		t.Fatal("a checkout came from a bank that is down")
	}
	d.bank.down = false
	var urls [2]string
	for i := range urls {
		var err error
		if urls[i], err = d.pay.CheckoutCredit(t.Context(), d.scope, "5", once); err != nil {
			t.Fatal(err)
		}
	}
	if urls[0] != urls[1] || len(d.bank.sessions) != 1 {
		t.Errorf("two checkouts %v for one key", urls)
	}
}

func TestReceiveWithoutAProcessor(t *testing.T) {
	t.Parallel()
	none := payment.New(payment.Deps{})
	if err := none.Receive(t.Context(), nil, ""); !errors.Is(err, payment.ErrNotSetUp) {
		t.Errorf("%v", err)
	}
	if err := none.ReadOpen(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
}
