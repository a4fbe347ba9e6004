package stripe_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
)

// A customer that was deleted at Stripe is told from every other refusal, and
// the next one is asked for, and asks, under keys of its own.
func TestACustomerThatIsGone(t *testing.T) {
	t.Parallel()
	team, order := id.New(), id.New()
	keys := map[string]int{}
	paid := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			keys[key]++
		}
		switch {
		case r.URL.Path == "/v1/payment_intents/search" && r.URL.Query().Get("query") == fmt.Sprintf(`metadata["auto_topup_id"]:"%s"`, order):
			_, _ = io.WriteString(w, `{"object":"search_result","data":[`+paid+`]}`)
		case r.URL.Path == "/v1/customers":
			_, _ = io.WriteString(w, `{"id":"cus_2","object":"customer"}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer"}}`)
		}
	}))
	t.Cleanup(server.Close)
	p, ctx := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL}), t.Context()
	charge := payment.Charge{ID: order, CustomerID: "cus_1", CardID: "pm_1", Amount: 25 * money.Dollar}
	for name, ask := range map[string]func(customer string) error{
		"credit": func(customer string) error {
			_, err := p.CreateTopUp(ctx, payment.Order{ID: order, CustomerID: customer, Amount: money.Dollar})
			return err
		},
		"a card": func(customer string) error {
			_, err := p.CreateCardSetup(ctx, payment.CardOrder{ID: order, CustomerID: customer})
			return err
		},
		"the portal": func(customer string) error { _, err := p.PortalURL(ctx, customer, "https://homeport.test"); return err },
	} {
		for _, customer := range []string{"cus_1", "cus_2"} {
			if err := ask(customer); !errors.Is(err, payment.ErrNoCustomer) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := p.Charge(ctx, charge); !errors.Is(err, payment.ErrNoCustomer) {
		t.Errorf("a charge: %v", err)
	}
	for _, c := range []payment.Customer{{TeamID: team}, {TeamID: team, Lost: "cus_1"}} {
		if _, err := p.CreateCustomer(ctx, c); err != nil {
			t.Error(err)
		}
	}
	for key, n := range keys {
		if n != 1 {
			t.Errorf("%d requests under the key %s", n, key)
		}
	}
	if _, found, err := p.FindPayment(ctx, charge); found || err != nil {
		t.Errorf("a payment that nobody made: %t, %v", found, err)
	}
	paid = `{"id":"pi_1","object":"payment_intent","amount":2500,"amount_received":2500,"currency":"usd","status":"succeeded",
		"metadata":{"auto_topup_id":"` + order.String() + `"}}`
	for _, customer := range []string{"cus_1", ""} {
		charge.CustomerID = customer
		if got, found, err := p.FindPayment(ctx, charge); !found || err != nil || got.State != payment.PaymentPaid || got.ID != "pi_1" {
			t.Errorf("a payment of customer %q: %+v, %t, %v", customer, got, found, err)
		}
	}
}
