package stripe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	sdk "github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
)

// mock runs Stripe's own mock server, which refuses every request that does
// not fit the published API, and returns its address. It is a module of its
// own, tools/stripe-mock.
var mock = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stripe-mock")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/stripe/stripe-mock")
	build.Dir = "../../../tools/stripe-mock"
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	mocked = exec.Command(filepath.Join(dir, "stripe-mock"), "-http-addr", addr)
	if err := mocked.Start(); err != nil {
		return "", err
	}
	return "http://" + addr, os.RemoveAll(dir)
})

var mocked *exec.Cmd

func TestMain(m *testing.M) {
	code := m.Run()
	if mocked != nil {
		_ = mocked.Process.Kill()
		_ = mocked.Wait()
	}
	os.Exit(code)
}

// A call is a request as it went out.
type call struct {
	line, key string
	form      url.Values
}

// A wire is an account at the mock whose requests are written down.
type wire struct {
	*stripe.Processor
	mu    sync.Mutex
	calls []call
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.calls = append(w.calls, call{line: req.Method + " " + req.URL.Path, key: req.Header.Get("Idempotency-Key"), form: form})
	w.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

// last is the newest call to an address.
func (w *wire) last(t *testing.T, line string) call {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.calls) - 1; i >= 0; i-- {
		if w.calls[i].line == line {
			return w.calls[i]
		}
	}
	t.Fatalf("nothing was asked of %s", line)
	return call{}
}

func connect(t *testing.T, tax bool) *wire {
	t.Helper()
	base, err := mock()
	if err != nil {
		t.Fatalf("stripe-mock cannot be built here: %v", err)
	}
	for deadline := time.NewTimer(20 * time.Second); ; {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err == nil {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		select {
		case <-deadline.C:
			t.Fatal("stripe-mock does not listen")
		case <-time.After(50 * time.Millisecond):
		}
	}
	w := &wire{}
	w.Processor = stripe.New(stripe.Config{
		SecretKey: "sk_test_123", WebhookSecret: "whsec_1", APIBase: base, AutomaticTax: tax, Client: &http.Client{Transport: w},
	})
	return w
}

func (c call) want(t *testing.T, key string, members map[string]string) {
	t.Helper()
	if key != "" && c.key != key {
		t.Errorf("%s went out with the key %q, want %q", c.line, c.key, key)
	}
	for name, value := range members {
		if got := c.form.Get(name); got != value {
			t.Errorf("%s: %s is %q, want %q", c.line, name, got, value)
		}
	}
}

// Stripe's mock answers each request only if it fits the published API.
func TestStripeTakesWhatWeAsk(t *testing.T) {
	t.Parallel()
	for _, tax := range []bool{false, true} {
		w, order, team := connect(t, tax), id.New(), id.New()
		ctx := t.Context()
		customer, err := w.CreateCustomer(ctx, payment.Customer{TeamID: team, Email: "payer@homeport.test"})
		if err != nil || customer == "" {
			t.Fatalf("customer %q, %v", customer, err)
		}
		w.last(t, "POST /v1/customers").want(t, "", map[string]string{"email": "payer@homeport.test", "metadata[team_id]": team.String()})
		_, err = w.CreateTopUp(ctx, payment.Order{
			ID: order, TeamID: team, CustomerID: "cus_1", Amount: 12*money.Dollar + 34*money.Cent,
			SuccessURL: "https://homeport.test/billing?checkout=success", CancelURL: "https://homeport.test/billing?checkout=cancel",
		})
		if err != nil {
			t.Fatal(err)
		}
		w.last(t, "POST /v1/checkout/sessions").want(t, "topup:"+order.String()+":cus_1", map[string]string{
			"mode": "payment", "customer": "cus_1", "client_reference_id": team.String(), "metadata[topup_id]": order.String(),
			"payment_intent_data[metadata][topup_id]": order.String(), "invoice_creation[enabled]": "true",
			"line_items[0][price_data][unit_amount]": "1234", "line_items[0][price_data][currency]": "usd",
			"automatic_tax[enabled]": map[bool]string{true: "true"}[tax],
		})
		_, err = w.CreateSubscription(ctx, payment.TeamOrder{
			ID: order, TeamID: team, TeamName: "Docks", CustomerID: "cus_1", Seats: 3, SeatPrice: 100 * money.Dollar,
			SuccessURL: "https://homeport.test/billing?subscribe=success", CancelURL: "https://homeport.test/create-team",
		})
		if err != nil {
			t.Fatal(err)
		}
		// The mock's price is another one, so ours is made, and takes the lookup key.
		w.last(t, "POST /v1/prices").want(t, "price:pro_seat_monthly:10000", map[string]string{
			"lookup_key": "pro_seat_monthly", "transfer_lookup_key": "true", "unit_amount": "10000", "recurring[interval]": "month",
		})
		w.last(t, "POST /v1/checkout/sessions").want(t, "team:"+order.String()+":cus_1", map[string]string{
			"mode": "subscription", "line_items[0][quantity]": "3", "metadata[team_checkout_id]": order.String(),
			"subscription_data[metadata][team_checkout_id]": order.String(),
		})
		if _, err := w.ReadSession(ctx, "cs_test_1"); err != nil {
			t.Error(err)
		}
		stripeTakesCards(t, w, tax, order, team)
		if _, err := w.ReadSubscription(ctx, "sub_1"); err != nil {
			t.Error(err)
		}
		change := payment.SeatChange{ID: id.New(), SubscriptionID: "sub_1", Seats: 7}
		if err := w.SetSeats(ctx, change); err != nil {
			t.Error(err)
		}
		w.last(t, "POST /v1/subscriptions/sub_1").want(t, "seats:"+change.ID.String(), map[string]string{
			"items[0][quantity]": "7", "proration_behavior": "always_invoice", "payment_behavior": "pending_if_incomplete",
		})
		if err := w.EndSubscription(ctx, "sub_1"); err != nil {
			t.Error(err)
		}
		w.last(t, "POST /v1/subscriptions/sub_1").want(t, "", map[string]string{"cancel_at_period_end": "true"})
		if err := w.ResumeSubscription(ctx, "sub_1"); err != nil {
			t.Error(err)
		}
		w.last(t, "POST /v1/subscriptions/sub_1").want(t, "", map[string]string{"cancel_at_period_end": "false"})
		if err := w.CancelSubscription(ctx, "sub_1"); err != nil {
			t.Error(err)
		}
		w.last(t, "DELETE /v1/subscriptions/sub_1")
		if cases, err := w.ListCases(ctx, time.Unix(1_700_000_000, 0)); err != nil || len(cases) == 0 {
			t.Errorf("refunds and disputes: %+v, %v", cases, err)
		}
		w.last(t, "GET /v1/refunds")
		w.last(t, "GET /v1/disputes")
		if address, err := w.PortalURL(ctx, "cus_1", "https://homeport.test/billing"); err != nil || address == "" {
			t.Errorf("portal %q, %v", address, err)
		}
	}
}

// A seat's price is looked for once, and taken where it is the right one.
func TestThePriceOfASeatIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	var asked, made int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/v1/prices":
			asked++
			_, _ = io.WriteString(w, `{"object":"list","has_more":false,"data":[{"id":"price_ours","object":"price","currency":"usd",
				"unit_amount":10000,"recurring":{"interval":"month","interval_count":1}}]}`)
		case r.URL.Path == "/v1/prices":
			made++
			_, _ = io.WriteString(w, `{"id":"price_new","object":"price"}`)
		default:
			_ = r.ParseForm()
			_, _ = io.WriteString(w, `{"id":"cs_`+r.PostForm.Get("line_items[0][price]")+`","object":"checkout.session","mode":"subscription"}`)
		}
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Config{SecretKey: "sk_test_1", WebhookSecret: "whsec_1", APIBase: server.URL})
	for _, price := range []struct {
		of   money.USD
		want string
	}{{100 * money.Dollar, "cs_price_ours"}, {100 * money.Dollar, "cs_price_ours"}, {90 * money.Dollar, "cs_price_new"}, {90 * money.Dollar, "cs_price_new"}} {
		s, err := p.CreateSubscription(t.Context(), payment.TeamOrder{ID: id.New(), CustomerID: "cus_1", Seats: 1, SeatPrice: price.of})
		if err != nil || s.ID != price.want {
			t.Errorf("the checkout over %s is %q, %v", price.of, s.ID, err)
		}
	}
	if asked != 2 || made != 1 {
		t.Errorf("prices were asked for %d times and made %d times, want 2 and 1", asked, made)
	}
}

// A test key's installation takes test events alone, and the reverse.
func TestEventsOfTheOtherModeAreRefused(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	for _, key := range []string{"sk_test_1", "sk_live_1", "rk_test_1", "rk_live_1"} {
		live := strings.Contains(key, "_live_")
		p := stripe.New(stripe.Config{SecretKey: key, WebhookSecret: "whsec_1"})
		for _, said := range []bool{true, false} {
			body, err := json.Marshal(map[string]any{
				"id": "evt_1", "object": "event", "api_version": sdk.APIVersion, "livemode": said, "type": "customer.created",
				"data": map[string]any{"object": map[string]any{"id": "cus_1", "object": "customer"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: "whsec_1", Timestamp: at})
			_, err = p.Verify(body, signed.Header, at)
			if got := errors.Is(err, payment.ErrMode); got != (said != live) {
				t.Errorf("with %s an event of livemode %t: %v", key, said, err)
			}
		}
	}
}

func TestAnAnswerOfTheOtherModeIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"x","livemode":true,"metadata":{"topup_id":"`+uuid.NewString()+`"}}`)
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL})
	if _, err := p.ReadSession(t.Context(), "cs_1"); !errors.Is(err, payment.ErrMode) {
		t.Errorf("the checkout of the other mode was read: %v", err)
	}
	if _, err := p.ReadSubscription(t.Context(), "sub_1"); !errors.Is(err, payment.ErrMode) {
		t.Errorf("the subscription of the other mode was read: %v", err)
	}
}
