package stripe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
)

// stripeTakesCards asks the mock for everything about saved cards.
func stripeTakesCards(t *testing.T, w *wire, tax bool, order, team uuid.UUID) {
	t.Helper()
	ctx := t.Context()
	_, err := w.CreateCardSetup(ctx, payment.CardOrder{
		ID: order, TeamID: team, CustomerID: "cus_1", SuccessURL: "https://homeport.test/billing?card=saved", CancelURL: "https://homeport.test/billing?card=cancel",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.last(t, "POST /v1/checkout/sessions").want(t, "card:"+order.String()+":cus_1", map[string]string{
		"mode": "setup", "customer": "cus_1", "currency": "usd", "metadata[card_setup_id]": order.String(),
		"billing_address_collection": map[bool]string{true: "required"}[tax],
	})
	if _, _, err := w.ReadCard(ctx, "cs_test_1"); err != nil {
		t.Error(err)
	}
	if card, _, err := w.FindCard(ctx, "pm_1"); err != nil || card.ID == "" {
		t.Errorf("the card is %+v, %v", card, err)
	}
	_, err = w.CreateTopUp(ctx, payment.Order{
		ID: order, TeamID: team, CustomerID: "cus_1", Amount: 25 * money.Dollar, SaveCard: true,
		SuccessURL: "https://homeport.test/billing?checkout=success", CancelURL: "https://homeport.test/billing?checkout=cancel",
	})
	if err != nil {
		t.Error(err)
	}
	w.last(t, "POST /v1/checkout/sessions").want(t, "topup:"+order.String()+":cus_1", map[string]string{
		"mode": "payment", "payment_intent_data[setup_future_usage]": "off_session", "payment_method_types[0]": "card",
	})
	if err := w.DetachCard(ctx, "pm_1"); err != nil {
		t.Error(err)
	}
	w.last(t, "POST /v1/payment_methods/pm_1/detach")
	charge := payment.Charge{ID: order, TeamID: team, CustomerID: "cus_1", CardID: "pm_1", Amount: 25 * money.Dollar, OrderedAt: time.Unix(1_700_000_000, 0)}
	if _, err := w.Charge(ctx, charge); err != nil {
		t.Error(err)
	}
	call := w.last(t, "POST /v1/payment_intents")
	call.want(t, "auto:"+order.String(), map[string]string{
		"customer": "cus_1", "payment_method": "pm_1", "off_session": "true", "confirm": "true", "currency": "usd",
		"metadata[auto_topup_id]": order.String(),
	})
	if tax {
		w.last(t, "POST /v1/tax/calculations").want(t, "autotax:"+order.String(), map[string]string{
			"currency": "usd", "customer": "cus_1", "line_items[0][amount]": "2500", "line_items[0][tax_behavior]": "exclusive",
		})
		if call.form.Get("hooks[inputs][tax][calculation]") == "" || call.form.Get("metadata[tax_cents]") == "" {
			t.Errorf("the payment does not carry its tax: %v", call.form)
		}
	} else {
		call.want(t, "", map[string]string{"amount": "2500"})
	}
	if _, found, err := w.FindPayment(ctx, charge); err != nil || found {
		t.Errorf("a payment of another order was found: %t, %v", found, err)
	}
	w.last(t, "GET /v1/payment_intents")
}

// What Stripe answers when a card is charged that does not pay.
func TestRefusalsOfASavedCard(t *testing.T) {
	t.Parallel()
	order := id.New()
	intent := func(code, decline string) string {
		return `,"payment_intent":{"id":"pi_1","object":"payment_intent","amount":2500,"currency":"usd","status":"requires_payment_method",
			"metadata":{"auto_topup_id":"` + order.String() + `"},"last_payment_error":{"type":"card_error","code":"` + code + `","decline_code":"` + decline + `"}}`
	}
	for name, one := range map[string]struct {
		status int
		body   string
		state  payment.ChargeState
		id     string
		fails  bool // nobody knows whether there is a payment
	}{
		"declined":                      {402, `{"type":"card_error","code":"card_declined","decline_code":"do_not_honor"` + intent("card_declined", "do_not_honor") + `}`, payment.PaymentDeclined, "pi_1", false},
		"the owner asked":               {402, `{"type":"card_error","code":"authentication_required"` + intent("authentication_required", "authentication_required") + `}`, payment.PaymentNeedsPerson, "pi_1", false},
		"the card gone":                 {400, `{"type":"invalid_request_error","code":"resource_missing","param":"payment_method"}`, payment.PaymentDeclined, "", false},
		"another request under the key": {400, `{"type":"idempotency_error","code":"idempotency_error"}`, "", "", true},
		"under way elsewhere":           {409, `{"type":"invalid_request_error","code":"idempotency_key_in_use"}`, "", "", true},
		"too many requests":             {429, `{"type":"invalid_request_error","code":"rate_limit"}`, "", "", true},
		"a key without rights":          {403, `{"type":"invalid_request_error"}`, "", "", true},
		"Stripe is down":                {500, `{"type":"api_error"}`, "", "", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Stripe-Should-Retry", "false")
			w.WriteHeader(one.status)
			_, _ = io.WriteString(w, `{"error":`+one.body+`}`)
		}))
		t.Cleanup(server.Close)
		p := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL})
		got, err := p.Charge(t.Context(), payment.Charge{ID: order, CustomerID: "cus_1", CardID: "pm_1", Amount: 25 * money.Dollar})
		if (err != nil) != one.fails || got.State != one.state || got.ID != one.id || !one.fails && (got.OrderID != order || got.Amount != 25*money.Dollar) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The card is the one that the checkout's setup, or its payment, kept.
func TestACardIsReadFromItsCheckout(t *testing.T) {
	t.Parallel()
	status, usage := "succeeded", "off_session"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		card := `"payment_method":{"id":"pm_1","object":"payment_method","type":"card","card":{"brand":"visa","last4":"4242","exp_month":4,"exp_year":2031}}`
		q := r.URL.Query()
		switch {
		case q.Get("expand[0]") != "setup_intent.payment_method" || q.Get("expand[1]") != "payment_intent.payment_method":
			t.Errorf("asked for %s", r.URL.RawQuery)
		case r.URL.Path == "/v1/checkout/sessions/cs_1":
			_, _ = io.WriteString(w, `{"id":"cs_1","object":"checkout.session","mode":"setup","status":"complete",
				"setup_intent":{"id":"seti_1","object":"setup_intent","status":"`+status+`",`+card+`}}`)
		default:
			_, _ = io.WriteString(w, `{"id":"cs_2","object":"checkout.session","mode":"payment","status":"complete",
				"payment_intent":{"id":"pi_1","object":"payment_intent","status":"`+status+`","setup_future_usage":"`+usage+`",`+card+`}}`)
		}
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL})
	none, visa := payment.Card{}, payment.Card{ID: "pm_1", Brand: "visa", Last4: "4242", ExpMonth: 4, ExpYear: 2031}
	read := func(session string, want payment.Card) {
		t.Helper()
		if _, card, err := p.ReadCard(t.Context(), session); err != nil || card != want {
			t.Errorf("the card of %s is %+v, %v, want %+v", session, card, err, want)
		}
	}
	read("cs_1", visa)
	read("cs_2", visa)
	usage = ""
	read("cs_2", none) // it was not asked for
	status, usage = "requires_action", "off_session"
	read("cs_1", none)
	read("cs_2", none)
}
