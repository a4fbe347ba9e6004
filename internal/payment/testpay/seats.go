package testpay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
)

const sqlSetQuantity = `update testpay_subscription set quantity = $2 where id = $1`

const sqlSetEnding = `update testpay_subscription set cancels_at_period_end = $2 where id = $1`

// SetSeats changes how many seats are billed from the next month on. A card
// that is declined pays no more of them than there are. The fault is
// ErrNotFound.
func (p *Processor) SetSeats(ctx context.Context, c payment.SeatChange) error {
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		sub, err := lockSubscription(ctx, tx, c.SubscriptionID)
		switch {
		case err != nil:
			return err
		case sub.Status == "canceled":
			return payment.ErrNoSubscription
		case sub.Quantity == c.Seats, sub.Card == declinedCard && c.Seats > sub.Quantity:
			return nil
		}
		if _, err := tx.Exec(ctx, sqlSetQuantity, sub.ID, c.Seats); err != nil {
			return fmt.Errorf("set the seats of test subscription %s: %w", sub.ID, err)
		}
		sub.Quantity = c.Seats
		return p.tell(ctx, tx, sub.SessionID, stripe.EventTypeCustomerSubscriptionUpdated, "seats:"+c.ID.String(), sub.stripe())
	})
}

// EndSubscription lets a subscription end with its month. The fault is
// ErrNotFound.
func (p *Processor) EndSubscription(ctx context.Context, subscriptionID string) error {
	return p.setEnding(ctx, subscriptionID, true)
}

// ResumeSubscription lets one that was to end with its month go on. The fault is
// ErrNotFound.
func (p *Processor) ResumeSubscription(ctx context.Context, subscriptionID string) error {
	return p.setEnding(ctx, subscriptionID, false)
}

func (p *Processor) setEnding(ctx context.Context, subscriptionID string, ending bool) error {
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		sub, err := lockSubscription(ctx, tx, subscriptionID)
		if err != nil || sub.Status == "canceled" || sub.CancelsAtPeriodEnd == ending {
			return err
		}
		if _, err := tx.Exec(ctx, sqlSetEnding, sub.ID, ending); err != nil {
			return fmt.Errorf("let test subscription %s end with its month (%t): %w", sub.ID, ending, err)
		}
		sub.CancelsAtPeriodEnd = ending
		return p.tell(ctx, tx, sub.SessionID, stripe.EventTypeCustomerSubscriptionUpdated, "ending:"+id.New().String(), sub.stripe())
	})
}
