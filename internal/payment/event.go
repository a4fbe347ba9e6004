package payment

import (
	"encoding/json"
	"fmt"
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

// The metadata members in which a checkout carries its order's id.
const (
	OrderKey     = "topup_id"
	TeamOrderKey = "team_checkout_id"
	CardOrderKey = "card_setup_id"
	AutoOrderKey = "auto_topup_id" // of a payment that nobody was asked for
	TaxKey       = "tax_cents"     // of such a payment: what of it is tax
)

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
	if err := event.read(e); err != nil {
		return Event{}, ErrSignature.Because(err)
	}
	return event, nil
}

// read takes from Stripe's event which object it is about.
func (event *Event) read(e stripe.Event) error {
	switch e.Type {
	case stripe.EventTypeCheckoutSessionCompleted, stripe.EventTypeCheckoutSessionAsyncPaymentSucceeded,
		stripe.EventTypeCheckoutSessionAsyncPaymentFailed, stripe.EventTypeCheckoutSessionExpired:
		var cs stripe.CheckoutSession
		if err := json.Unmarshal(e.Data.Raw, &cs); err != nil {
			return err
		}
		session := SessionOf(&cs)
		session.Closed = session.Closed || e.Type == stripe.EventTypeCheckoutSessionAsyncPaymentFailed
		event.Session = &session
	case stripe.EventTypeCustomerSubscriptionCreated, stripe.EventTypeCustomerSubscriptionUpdated,
		stripe.EventTypeCustomerSubscriptionDeleted, stripe.EventTypeCustomerSubscriptionPaused,
		stripe.EventTypeCustomerSubscriptionResumed:
		var sub stripe.Subscription
		if err := json.Unmarshal(e.Data.Raw, &sub); err != nil {
			return err
		}
		event.SubscriptionID = sub.ID
	case stripe.EventTypeInvoicePaid, stripe.EventTypeInvoicePaymentFailed:
		var invoice stripe.Invoice
		if err := json.Unmarshal(e.Data.Raw, &invoice); err != nil {
			return err
		}
		if p := invoice.Parent; p != nil && p.SubscriptionDetails != nil && p.SubscriptionDetails.Subscription != nil {
			event.SubscriptionID = p.SubscriptionDetails.Subscription.ID
		}
	case stripe.EventTypeRefundCreated, stripe.EventTypeRefundUpdated, stripe.EventTypeRefundFailed,
		stripe.EventTypeChargeRefundUpdated:
		var refund stripe.Refund
		if err := json.Unmarshal(e.Data.Raw, &refund); err != nil {
			return err
		}
		c := RefundOf(&refund)
		event.Case = &c
	case stripe.EventTypeChargeDisputeCreated, stripe.EventTypeChargeDisputeUpdated, stripe.EventTypeChargeDisputeClosed,
		stripe.EventTypeChargeDisputeFundsWithdrawn, stripe.EventTypeChargeDisputeFundsReinstated:
		var dispute stripe.Dispute
		if err := json.Unmarshal(e.Data.Raw, &dispute); err != nil {
			return err
		}
		c := DisputeOf(&dispute)
		event.Case = &c
	default:
		return event.readCard(e)
	}
	return nil
}

// readCard does the same of events about saved cards.
func (event *Event) readCard(e stripe.Event) error {
	switch e.Type {
	case stripe.EventTypePaymentIntentSucceeded, stripe.EventTypePaymentIntentPaymentFailed,
		stripe.EventTypePaymentIntentCanceled:
		var intent stripe.PaymentIntent
		if err := json.Unmarshal(e.Data.Raw, &intent); err != nil {
			return err
		}
		p := IntentOf(&intent)
		event.Payment = &p
	case stripe.EventTypePaymentMethodDetached:
		var card stripe.PaymentMethod
		if err := json.Unmarshal(e.Data.Raw, &card); err != nil {
			return err
		}
		event.DetachedCardID = card.ID
	case stripe.EventTypePaymentMethodAutomaticallyUpdated, stripe.EventTypePaymentMethodUpdated:
		var card stripe.PaymentMethod
		if err := json.Unmarshal(e.Data.Raw, &card); err != nil {
			return err
		}
		event.ChangedCardID = card.ID
	default: // nothing that we act on
	}
	return nil
}

// SessionOf reads what we need of a checkout in Stripe's format.
func SessionOf(cs *stripe.CheckoutSession) Session {
	s := Session{
		ID: cs.ID, URL: cs.URL, Mode: Mode(cs.Mode), Currency: string(cs.Currency),
		Amount: money.USD(cs.AmountSubtotal) * money.Cent, Total: money.USD(cs.AmountTotal) * money.Cent,
		Paid:   cs.PaymentStatus == stripe.CheckoutSessionPaymentStatusPaid,
		Closed: cs.Status == stripe.CheckoutSessionStatusExpired,
	}
	key := ""
	switch s.Mode {
	case TopUpMode:
		key = OrderKey
	case SubscriptionMode:
		key = TeamOrderKey
	case CardMode:
		key = CardOrderKey
	}
	if cs.PaymentIntent != nil {
		s.PaymentID = cs.PaymentIntent.ID
	}
	if cs.Subscription != nil {
		s.SubscriptionID = cs.Subscription.ID
	}
	if order, ok := id.Parse(cs.Metadata[key]); ok {
		s.OrderID = order
	}
	return s
}

// SubscriptionOf reads what we need of a subscription in Stripe's format. Its
// period is that of its only item.
func SubscriptionOf(sub *stripe.Subscription) (Subscription, error) {
	if sub.Items == nil || len(sub.Items.Data) != 1 || sub.Customer == nil {
		return Subscription{}, fmt.Errorf("subscription %s is not of one customer and one price", sub.ID)
	}
	item := sub.Items.Data[0]
	return Subscription{
		ID: sub.ID, CustomerID: sub.Customer.ID, Status: string(sub.Status), Seats: int(item.Quantity),
		AnchorAt: at(sub.BillingCycleAnchor), PeriodStartAt: at(item.CurrentPeriodStart), PeriodEndAt: at(item.CurrentPeriodEnd),
		CancelsAtPeriodEnd: sub.CancelAtPeriodEnd,
	}, nil
}

func at(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// signedAt reads the instant of a signature header: "t=1700000000,v1=…". A header
// with two of them is not Stripe's: which one is signed is not for us to guess.
func signedAt(header string) (at time.Time, ok bool) {
	for part := range strings.SplitSeq(header, ",") {
		seconds, found := strings.CutPrefix(part, "t=")
		if !found {
			continue
		}
		unix, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || ok {
			return time.Time{}, false
		}
		at, ok = time.Unix(unix, 0), true
	}
	return at, ok
}
