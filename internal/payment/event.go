package payment

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// tolerance is how far an event's signature may be from now, in wall time.
const tolerance = webhook.DefaultTolerance

// OrderKey is the metadata member in which a checkout carries its order's id.
const OrderKey = "topup_id"

// Open verifies an event in Stripe's format and reads it: its signature under
// the secret, its age at a wall time, the API version and the mode. It is what
// processors implement Verify with. The faults are ErrSignature and ErrMode.
func Open(body []byte, signature, secret string, live bool, wall time.Time) (Event, error) {
	e, err := webhook.ConstructEventWithOptions(body, signature, secret,
		webhook.ConstructEventOptions{IgnoreTolerance: true})
	if err != nil {
		return Event{}, ErrSignature.Because(err)
	}
	if signed, ok := signedAt(signature); !ok || wall.Sub(signed).Abs() > tolerance {
		return Event{}, ErrSignature.Because(webhook.ErrTooOld)
	}
	if e.ID == "" || e.Data == nil {
		return Event{}, ErrSignature
	}
	if e.Livemode != live {
		return Event{}, ErrMode
	}
	event := Event{ID: e.ID, Kind: string(e.Type)}
	switch e.Type {
	case stripe.EventTypeCheckoutSessionCompleted, stripe.EventTypeCheckoutSessionAsyncPaymentSucceeded,
		stripe.EventTypeCheckoutSessionAsyncPaymentFailed, stripe.EventTypeCheckoutSessionExpired:
	default:
		return event, nil
	}
	var cs stripe.CheckoutSession
	if err := json.Unmarshal(e.Data.Raw, &cs); err != nil {
		return Event{}, ErrSignature.Because(err)
	}
	session := SessionOf(&cs)
	session.Closed = session.Closed || e.Type == stripe.EventTypeCheckoutSessionAsyncPaymentFailed
	event.Session = &session
	return event, nil
}

// SessionOf reads what we need of a checkout in Stripe's format.
func SessionOf(cs *stripe.CheckoutSession) Session {
	s := Session{
		ID: cs.ID, URL: cs.URL, Amount: money.USD(cs.AmountSubtotal) * money.Cent, Currency: string(cs.Currency),
		Paid:   cs.Mode == stripe.CheckoutSessionModePayment && cs.PaymentStatus == stripe.CheckoutSessionPaymentStatusPaid,
		Closed: cs.Status == stripe.CheckoutSessionStatusExpired,
	}
	if cs.PaymentIntent != nil {
		s.PaymentID = cs.PaymentIntent.ID
	}
	if order, ok := id.Parse(cs.Metadata[OrderKey]); ok {
		s.OrderID = order
	}
	return s
}

// signedAt reads the instant of a signature header: "t=1700000000,v1=…".
func signedAt(header string) (time.Time, bool) {
	for part := range strings.SplitSeq(header, ",") {
		if seconds, ok := strings.CutPrefix(part, "t="); ok {
			unix, err := strconv.ParseInt(seconds, 10, 64)
			return time.Unix(unix, 0), err == nil
		}
	}
	return time.Time{}, false
}
