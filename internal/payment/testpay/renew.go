package testpay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/pg"
)

const renewBatch = 50

const sqlListRenewals = `
select id from testpay_subscription
where status <> 'canceled' and period_end_at <= $1 and id > $2
order by id limit $3`

// RenewDue bills every month that is over by business time: the next one
// begins at once, its invoice is paid, or declined where the payer chose a card
// that is. What is many months behind catches up month by month.
func (p *Processor) RenewDue(ctx context.Context) error {
	now := p.Clock.Now()
	var failed []error
	for last := ""; ; {
		rows, err := p.Pool.Query(ctx, sqlListRenewals, now, last, renewBatch)
		if err != nil {
			return fmt.Errorf("list test renewals: %w", err)
		}
		due, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("list test renewals: %w", err)
		}
		for _, subscriptionID := range due {
			failed = append(failed, p.renew(ctx, subscriptionID, now))
			last = subscriptionID
		}
		if len(due) < renewBatch {
			return errors.Join(failed...)
		}
	}
}

const sqlLockSubscription = sqlFindSubscription + ` for update`

func lockSubscription(ctx context.Context, tx pgx.Tx, subscriptionID string) (*subscription, error) {
	rows, err := tx.Query(ctx, sqlLockSubscription, subscriptionID)
	if err != nil {
		return nil, fmt.Errorf("lock test subscription %s: %w", subscriptionID, err)
	}
	sub, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[subscription])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("lock test subscription %s: %w", subscriptionID, err)
	}
	return &sub, nil
}

// renew bills the months of one subscription that are over, in one transaction:
// another node that is at it waits and finds nothing left.
func (p *Processor) renew(ctx context.Context, subscriptionID string, now time.Time) error {
	months := 0
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		sub, err := lockSubscription(ctx, tx, subscriptionID)
		if err != nil {
			return err
		}
		for months = 0; sub.Status != "canceled" && !now.Before(sub.PeriodEndAt); months++ {
			if sub.CancelsAtPeriodEnd {
				return p.end(ctx, tx, sub, sub.PeriodEndAt)
			}
			if err := p.renewMonth(ctx, tx, sub); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew test subscription %s: %w", subscriptionID, err)
	}
	if months > 0 {
		p.Logger.InfoContext(ctx, "a test subscription was renewed",
			slog.String("subscription", subscriptionID), slog.Int("months", months))
	}
	return nil
}

const sqlRollSubscription = `
update testpay_subscription set status = @status, period = @period, period_start_at = @start, period_end_at = @end,
  latest_invoice_id = @invoice
where id = @id`

// renewMonth begins the month after the subscription's last one.
func (p *Processor) renewMonth(ctx context.Context, tx pgx.Tx, sub *subscription) error {
	sub.Period++
	sub.PeriodStartAt, sub.PeriodEndAt = monthsAfter(sub.AnchorAt, sub.Period), monthsAfter(sub.AnchorAt, sub.Period+1)
	next := &invoice{
		ID: "in_test_" + draw(), PaymentID: "pi_" + draw(), Status: "paid", CreatedAt: sub.PeriodStartAt, Reason: "subscription_cycle",
	}
	sub.LatestInvoiceID, sub.Status = next.ID, "active"
	told := stripe.EventTypeInvoicePaid
	if sub.Card == declinedCard {
		next.Status, sub.Status, told = "open", "past_due", stripe.EventTypeInvoicePaymentFailed
	}
	_, err := tx.Exec(ctx, sqlRollSubscription, pgx.NamedArgs{
		"id": sub.ID, "status": sub.Status, "period": sub.Period, "start": sub.PeriodStartAt, "end": sub.PeriodEndAt,
		"invoice": next.ID,
	})
	if err != nil {
		return err
	}
	if err := p.bill(ctx, tx, sub, next); err != nil {
		return err
	}
	if err := p.tell(ctx, tx, sub.SessionID, told, next.ID, next.stripe(sub)); err != nil {
		return err
	}
	return p.tell(ctx, tx, sub.SessionID, stripe.EventTypeCustomerSubscriptionUpdated, next.ID, sub.stripe())
}

const sqlCancelSubscription = `
update testpay_subscription set status = 'canceled', canceled_at = $2 where id = $1`

// CancelSubscription ends a subscription at once: it is billed no more. One
// that has ended stays so. The fault is ErrNotFound.
func (p *Processor) CancelSubscription(ctx context.Context, subscriptionID string) error {
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		sub, err := lockSubscription(ctx, tx, subscriptionID)
		if err != nil || sub.Status == "canceled" {
			return err
		}
		return p.end(ctx, tx, sub, p.Clock.Now().Truncate(time.Second))
	})
}

// end ends a locked subscription at an instant, and tells of it.
func (p *Processor) end(ctx context.Context, tx pgx.Tx, sub *subscription, at time.Time) error {
	if _, err := tx.Exec(ctx, sqlCancelSubscription, sub.ID, at); err != nil {
		return fmt.Errorf("cancel test subscription %s: %w", sub.ID, err)
	}
	sub.Status, sub.CanceledAt = "canceled", &at
	return p.tell(ctx, tx, sub.SessionID, stripe.EventTypeCustomerSubscriptionDeleted, "", sub.stripe())
}
