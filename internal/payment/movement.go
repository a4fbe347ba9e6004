package payment

import (
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// A Movement is a line of a processor's own book.
type Movement struct {
	ID   string       `db:"id"` // txn_…
	Kind MovementKind `db:"kind"`
	At   time.Time    `db:"at"` // by the processor's clock
	// Amount is what came in, or went out below zero, with the tax and before
	// the fee; Fee is what the processor kept for it, where that is in USD.
	Amount   money.USD `db:"amount_usd_micro"`
	Fee      money.USD `db:"fee_usd_micro"`
	Currency string    `db:"currency"` // of Amount, lower case
	// What it is about: the payment, the refund or dispute of it, our order from
	// the metadata that we gave it, and the subscription that it pays.
	PaymentID      string     `db:"payment_id"`
	CaseID         string     `db:"case_id"`
	OrderID        *uuid.UUID `db:"order_id"`
	SubscriptionID string     `db:"subscription_id"`
}

// A MovementKind is why money moved.
type MovementKind string

// The kinds. What a failed refund or a dispute that was won gives back is of
// the same kind as what was taken.
const (
	PaymentMoved MovementKind = "payment"
	RefundMoved  MovementKind = "refund"
	DisputeMoved MovementKind = "dispute"
	FeeMoved     MovementKind = "fee"
	PayoutMoved  MovementKind = "payout" // to our bank, or back from it
	OtherMoved   MovementKind = "other"  // nothing that we know
)

// OrderOf is our order in the metadata of what a processor keeps; nil: none.
func OrderOf(metadata map[string]string) *uuid.UUID {
	for _, key := range []string{OrderKey, AutoOrderKey, TeamOrderKey} {
		if order, ok := id.Parse(metadata[key]); ok {
			return &order
		}
	}
	return nil
}
