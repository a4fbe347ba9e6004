package stripe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
)

func TestTheMockTakesTheRequestsForTheBook(t *testing.T) {
	t.Parallel()
	w := connect(t, false)
	from := time.Unix(1_700_000_000, 0)
	if moved, err := w.ListMovements(t.Context(), from, from.Add(24*time.Hour)); err != nil || len(moved) == 0 {
		t.Errorf("balance transactions: %+v, %v", moved, err)
	}
	w.last(t, "GET /v1/balance_transactions")
	if address, err := w.ReceiptURL(t.Context(), "pi_1"); err != nil {
		t.Errorf("receipt %q, %v", address, err)
	}
	w.last(t, "GET /v1/invoice_payments")
}

// A payment of a checkout has an invoice; one of a saved card has the receipt
// of its charge.
func TestReceiptsOfStripe(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case r.URL.Path == "/v1/invoice_payments" && q.Get("payment[payment_intent]") == "pi_1":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"inpay_1","object":"invoice_payment",
				"invoice":{"id":"in_1","object":"invoice","hosted_invoice_url":"https://invoice.stripe.com/i/1"}}]}`)
		case r.URL.Path == "/v1/invoice_payments":
			_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
		case r.URL.Path == "/v1/payment_intents/pi_2" && q.Get("expand[0]") == "latest_charge":
			_, _ = io.WriteString(w, `{"id":"pi_2","object":"payment_intent","latest_charge":{"id":"ch_2","object":"charge","receipt_url":"https://pay.stripe.com/receipts/2"}}`)
		default:
			_, _ = io.WriteString(w, `{"id":"pi_3","object":"payment_intent"}`)
		}
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL})
	for paymentID, want := range map[string]string{
		"pi_1": "https://invoice.stripe.com/i/1", "pi_2": "https://pay.stripe.com/receipts/2", "pi_3": "",
	} {
		if got, err := p.ReceiptURL(t.Context(), paymentID); err != nil || got != want {
			t.Errorf("the receipt of %s is %q (%v), want %q", paymentID, got, err, want)
		}
	}
}

// What Stripe's published API answers for each kind of line that concerns us,
// the newest first.
func bookOf(order string) string {
	line := func(id, kind, category, source string, amount, fee string) string {
		return `{"id":"` + id + `","object":"balance_transaction","created":1700000000,"currency":"usd","amount":` + amount +
			`,"fee":` + fee + `,"type":"` + kind + `","reporting_category":"` + category + `","source":` + source + `}`
	}
	return `{"object":"list","has_more":false,"url":"/v1/balance_transactions","data":[` +
		line("txn_9", "climate_order_purchase", "climate_order_purchase", `"climorder_1"`, "-500", "0") + "," +
		line("txn_8", "payout", "payout", `{"id":"po_1","object":"payout","amount":9000}`, "-9000", "0") + "," +
		line("txn_7", "stripe_fee", "fee", "null", "-210", "0") + "," +
		line("txn_6", "adjustment", "dispute_reversal", `{"id":"du_1","object":"dispute","amount":2500,"currency":"usd","payment_intent":"pi_1"}`, "2500", "0") + "," +
		line("txn_5", "adjustment", "dispute", `{"id":"du_1","object":"dispute","amount":2500,"currency":"usd","payment_intent":"pi_1"}`, "-2500", "1500") + "," +
		line("txn_4", "refund_failure", "refund_failure", `{"id":"re_1","object":"refund","amount":700,"currency":"usd","payment_intent":"pi_1"}`, "700", "0") + "," +
		line("txn_3", "refund", "refund", `{"id":"re_1","object":"refund","amount":700,"currency":"usd","payment_intent":"pi_1"}`, "-700", "0") + "," +
		line("txn_2", "charge", "charge", `{"id":"ch_2","object":"charge","amount":30000,"amount_captured":30000,"currency":"usd","payment_intent":"pi_plan","metadata":{}}`, "30000", "900") + "," +
		`{"id":"txn_1","object":"balance_transaction","created":1700000000,"currency":"eur","amount":2290,"fee":96,"type":"charge","reporting_category":"charge",` +
		`"source":{"id":"ch_1","object":"charge","amount":2519,"amount_captured":2519,"currency":"usd","payment_intent":"pi_1","metadata":{"topup_id":"` + order + `"}}}]}`
}

func TestLinesOfStripesBook(t *testing.T) {
	t.Parallel()
	order, team := id.New(), id.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case r.URL.Path == "/v1/balance_transactions" && q.Get("created[gte]") == "1699920000" && q.Get("created[lt]") == "1700006400":
			_, _ = io.WriteString(w, bookOf(order.String()))
		case r.URL.Path == "/v1/invoice_payments" && q.Get("payment[payment_intent]") == "pi_plan":
			_, _ = io.WriteString(w, `{"object":"list","has_more":false,"data":[{"id":"inpay_1","object":"invoice_payment","invoice":{"id":"in_1",
				"object":"invoice","parent":{"type":"subscription_details","subscription_details":{"subscription":"sub_1","metadata":{"team_checkout_id":"`+team.String()+`"}}}}}]}`)
		default:
			t.Errorf("asked for %s", r.URL)
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	p := stripe.New(stripe.Config{SecretKey: "sk_test_1", APIBase: server.URL})
	day := time.Date(2023, 11, 14, 0, 0, 0, 0, time.UTC)
	got, err := p.ListMovements(t.Context(), day, day.AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0).UTC()
	line := func(id string, kind payment.MovementKind, cents, fee money.USD, paymentID, caseID string, order *uuid.UUID, plan string) payment.Movement {
		return payment.Movement{
			ID: id, Kind: kind, At: at, Amount: cents * money.Cent, Fee: fee * money.Cent, Currency: "usd",
			PaymentID: paymentID, CaseID: caseID, OrderID: order, SubscriptionID: plan,
		}
	}
	want := []payment.Movement{
		line("txn_1", payment.PaymentMoved, 2519, 0, "pi_1", "", &order, ""), // kept in euros, charged in dollars
		line("txn_2", payment.PaymentMoved, 30000, 900, "pi_plan", "", &team, "sub_1"),
		line("txn_3", payment.RefundMoved, -700, 0, "pi_1", "re_1", nil, ""),
		line("txn_4", payment.RefundMoved, 700, 0, "pi_1", "re_1", nil, ""),
		line("txn_5", payment.DisputeMoved, -2500, 1500, "pi_1", "du_1", nil, ""),
		line("txn_6", payment.DisputeMoved, 2500, 0, "pi_1", "du_1", nil, ""),
		line("txn_7", payment.FeeMoved, -210, 0, "", "", nil, ""),
		line("txn_8", payment.PayoutMoved, -9000, 0, "", "", nil, ""),
		line("txn_9", payment.OtherMoved, -500, 0, "", "", nil, ""),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("movements (-want +got):\n%s", diff)
	}
}
