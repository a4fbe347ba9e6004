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
	ClientReferenceID string            `json:"client_reference_id"`
	Created           int64             `json:"created"`
	Currency          string            `json:"currency"`
	ExpiresAt         int64             `json:"expires_at"`
	Livemode          bool              `json:"livemode"`
	Metadata          map[string]string `json:"metadata"`
	Mode              string            `json:"mode"`
	PaymentIntent     *string           `json:"payment_intent"`
	PaymentStatus     string            `json:"payment_status"`
	Status            string            `json:"status"`
	SuccessURL        string            `json:"success_url"`
}

// stripe is the session as Stripe would write it.
func (s *Session) stripe(wall time.Time) checkoutObject {
	o := checkoutObject{
		ID: s.ID, Object: "checkout.session", AmountSubtotal: int64(s.Amount / money.Cent), AmountTotal: int64(s.Amount / money.Cent),
		CancelURL: s.CancelURL, SuccessURL: s.SuccessURL, ClientReferenceID: s.TeamID.String(),
		Created: s.CreatedAt.Unix(), ExpiresAt: s.ExpiresAt.Unix(), Currency: "usd", Mode: "payment",
		Metadata:      map[string]string{payment.OrderKey: s.OrderID.String(), "team_id": s.TeamID.String()},
		PaymentStatus: "unpaid", Status: "open",
	}
	switch {
	case s.Status == "complete":
		o.PaymentIntent, o.PaymentStatus, o.Status = &s.PaymentID, "paid", "complete"
	case s.expired(wall):
		o.Status = "expired"
	}
	return o
}

// read is the object as a client of Stripe holds it.
func (o checkoutObject) read() *stripe.CheckoutSession {
	cs := &stripe.CheckoutSession{
		ID: o.ID, AmountSubtotal: o.AmountSubtotal, Currency: stripe.Currency(o.Currency), Metadata: o.Metadata,
		Mode: stripe.CheckoutSessionMode(o.Mode), Status: stripe.CheckoutSessionStatus(o.Status),
		PaymentStatus: stripe.CheckoutSessionPaymentStatus(o.PaymentStatus),
	}
	if o.PaymentIntent != nil {
		cs.PaymentIntent = &stripe.PaymentIntent{ID: *o.PaymentIntent}
	}
	return cs
}

// An eventObject is Stripe's event around a checkout.session.
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
	Object checkoutObject `json:"object"`
}

// event writes an event about the session, with the API version that the
// reader is pinned to.
func (s *Session) event(eventID string, kind stripe.EventType, wall time.Time) ([]byte, error) {
	payload, err := json.Marshal(eventObject{
		ID: eventID, Object: "event", APIVersion: stripe.APIVersion, Created: wall.Unix(),
		Data: eventData{Object: s.stripe(wall)}, PendingWebhooks: 1,
		Request: map[string]any{"id": nil, "idempotency_key": nil}, Type: string(kind),
	})
	if err != nil {
		return nil, fmt.Errorf("write an event of test checkout %s: %w", s.ID, err)
	}
	return payload, nil
}
