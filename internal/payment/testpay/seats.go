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

const sqlSetQuantity = `update testpay_subscription set quantity = $2, latest_invoice_id = $3 where id = $1`

const sqlSetEnding = `update testpay_subscription set cancels_at_period_end = $2 where id = $1`

// SetSeats changes how many seats are billed. More are charged for the rest of
// the month at once, and a card that is declined pays none of them; fewer cost
// less from the next month on. The faults are ErrNotFound and
// payment.ErrNoSubscription.
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
		var billed *invoice
		if c.Seats > sub.Quantity {
			if billed, err = p.billSeats(ctx, tx, sub, c.Seats-sub.Quantity); err != nil {
				return err
			}
		}
		sub.Quantity = c.Seats
		if billed != nil {
			sub.LatestInvoiceID = billed.ID
			if err := p.tell(ctx, tx, sub.SessionID, stripe.EventTypeInvoicePaid, billed.ID, billed.stripe(sub)); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, sqlSetQuantity, sub.ID, sub.Quantity, sub.LatestInvoiceID); err != nil {
			return fmt.Errorf("set the seats of test subscription %s: %w", sub.ID, err)
		}
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
