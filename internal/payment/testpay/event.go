package testpay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// A checkoutObject is the part of Stripe's checkout.session that we send. Its
// members keep Stripe's names and meanings.
type checkoutObject struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	AmountSubtotal    int64             `json:"amount_subtotal"`
	AmountTotal       int64             `json:"amount_total"`
	CancelURL         string            `json:"cancel_url"`
	Customer          *string           `json:"customer"`
	CustomerDetails   *customerDetails  `json:"customer_details"`
	ClientReferenceID string            `json:"client_reference_id"`
	Created           int64             `json:"created"`
	Currency          string            `json:"currency"`
	ExpiresAt         int64             `json:"expires_at"`
	Invoice           *string           `json:"invoice"`
	Livemode          bool              `json:"livemode"`
	Metadata          map[string]string `json:"metadata"`
	Mode              string            `json:"mode"`
	PaymentIntent     *string           `json:"payment_intent"`
	PaymentStatus     string            `json:"payment_status"`
	Status            string            `json:"status"`
	Subscription      *string           `json:"subscription"`
	SuccessURL        string            `json:"success_url"`
}

type customerDetails struct {
	Email *string `json:"email"`
}

// stripe is the session as Stripe would write it.
func (s *Session) stripe(expired bool) checkoutObject {
	o := checkoutObject{
		ID: s.ID, Object: "checkout.session", AmountSubtotal: cents(s.Amount), AmountTotal: cents(s.Amount),
		CancelURL: s.CancelURL, SuccessURL: s.SuccessURL, ClientReferenceID: s.TeamID.String(),
		Created: s.CreatedAt.Unix(), ExpiresAt: s.ExpiresAt.Unix(), Currency: "usd", Mode: string(s.Mode),
		Metadata: s.metadata(), PaymentStatus: "unpaid", Status: "open",
	}
	if s.Email != "" {
		o.CustomerDetails = &customerDetails{Email: &s.Email}
	}
	switch {
	case s.Status == "complete":
		o.PaymentStatus, o.Status = "paid", "complete"
		switch s.Mode {
		case payment.SubscriptionMode: // the payment is its first invoice's
			o.Customer, o.Invoice, o.Subscription = &s.CustomerID, &s.InvoiceID, &s.SubscriptionID
		case payment.CardMode:
			o.PaymentStatus = "no_payment_required"
		case payment.TopUpMode:
			o.PaymentIntent = &s.PaymentID
		}
	case expired:
		o.Status = "expired"
	}
	return o
}

// metadata is what the order asked to be told again.
func (s *Session) metadata() map[string]string {
	key := map[payment.Mode]string{
		payment.TopUpMode: payment.OrderKey, payment.SubscriptionMode: payment.TeamOrderKey, payment.CardMode: payment.CardOrderKey,
	}[s.Mode]
	return map[string]string{key: s.OrderID.String(), "team_id": s.TeamID.String()}
}

func cents(amount money.USD) int64 { return int64(amount / money.Cent) }

// read is the object as a client of Stripe holds it.
func (o checkoutObject) read() *stripe.CheckoutSession {
	cs := &stripe.CheckoutSession{
		ID: o.ID, AmountSubtotal: o.AmountSubtotal, AmountTotal: o.AmountTotal, Currency: stripe.Currency(o.Currency), Metadata: o.Metadata,
		Mode: stripe.CheckoutSessionMode(o.Mode), Status: stripe.CheckoutSessionStatus(o.Status),
		PaymentStatus: stripe.CheckoutSessionPaymentStatus(o.PaymentStatus),
	}
	if o.PaymentIntent != nil {
		cs.PaymentIntent = &stripe.PaymentIntent{ID: *o.PaymentIntent}
	}
	if o.Subscription != nil {
		cs.Subscription = &stripe.Subscription{ID: *o.Subscription}
	}
	return cs
}

// An eventObject is Stripe's event around any object.
type eventObject struct {
	ID              string         `json:"id"`
	Object          string         `json:"object"`
	APIVersion      string         `json:"api_version"`
	Created         int64          `json:"created"`
	Data            eventData      `json:"data"`
	Livemode        bool           `json:"livemode"`
	PendingWebhooks int            `json:"pending_webhooks"`
	Request         map[string]any `json:"request"`
	Type            string         `json:"type"`
}

type eventData struct {
	Object any `json:"object"`
}

// event writes an event about an object, with the API version that the reader
// is pinned to.
func event(eventID string, kind stripe.EventType, object any, wall time.Time) ([]byte, error) {
	payload, err := json.Marshal(eventObject{
		ID: eventID, Object: "event", APIVersion: stripe.APIVersion, Created: wall.Unix(),
		Data: eventData{Object: object}, PendingWebhooks: 1,
		Request: map[string]any{"id": nil, "idempotency_key": nil}, Type: string(kind),
	})
	if err != nil {
		return nil, fmt.Errorf("write test event %s: %w", kind, err)
	}
	return payload, nil
}
