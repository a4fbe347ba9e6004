package payment

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// A Charge is a top-up that a processor is asked to collect from a saved card
// while its owner is not there.
type Charge struct {
	ID         uuid.UUID // of the order; also the idempotency key
	TeamID     uuid.UUID
	CustomerID string // of the team, from CreateCustomer
	CardID     string
	Amount     money.USD // before tax
	OrderedAt  time.Time // wall time of its making: no payment of it is older
}

// A Payment is a charge as it stands at a processor.
type Payment struct {
	ID       string
	OrderID  uuid.UUID // from the metadata we gave it; uuid.Nil: not one of ours
	Amount   money.USD // before tax
	Total    money.USD // what the card pays, with the tax
	Currency string    // lower case
	State    ChargeState
}

// A ChargeState says what became of a charge.
type ChargeState string

// The states.
const (
	PaymentPending     ChargeState = ""
	PaymentPaid        ChargeState = "paid"
	PaymentDeclined    ChargeState = "declined"
	PaymentNeedsPerson ChargeState = "needs_person" // the bank wants to see the card's owner
)

// IntentOf reads what we need of a payment in Stripe's format.
func IntentOf(pi *stripe.PaymentIntent) Payment {
	p := Payment{ID: pi.ID, Currency: string(pi.Currency), Total: money.USD(pi.Amount) * money.Cent, State: stateOf(pi)}
	p.Amount = p.Total
	// What cannot be read is no tax: the amount then fits no order.
	if tax, err := strconv.ParseInt(pi.Metadata[TaxKey], 10, 64); err == nil {
		p.Amount -= money.USD(tax) * money.Cent
	}
	if order, ok := id.Parse(pi.Metadata[AutoOrderKey]); ok {
		p.OrderID = order
	}
	return p
}

func stateOf(pi *stripe.PaymentIntent) ChargeState {
	switch pi.Status {
	case stripe.PaymentIntentStatusSucceeded:
		if pi.AmountReceived == pi.Amount {
			return PaymentPaid
		}
	case stripe.PaymentIntentStatusRequiresAction:
		return PaymentNeedsPerson
	case stripe.PaymentIntentStatusCanceled:
		return PaymentDeclined
	case stripe.PaymentIntentStatusRequiresPaymentMethod:
		if e := pi.LastPaymentError; e != nil &&
			(e.Code == stripe.ErrorCodeAuthenticationRequired || e.DeclineCode == stripe.DeclineCodeAuthenticationRequired) {
			return PaymentNeedsPerson
		}
		return PaymentDeclined
	case stripe.PaymentIntentStatusProcessing, stripe.PaymentIntentStatusRequiresCapture, stripe.PaymentIntentStatusRequiresConfirmation:
	}
	return PaymentPending
}
