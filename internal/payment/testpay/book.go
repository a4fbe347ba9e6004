package testpay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

const sqlInsertMovement = `
insert into testpay_movement (id, kind, payment_id, case_id, order_id, subscription_id, amount_usd_micro, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

// move writes a line of the book, in the transaction in which money moves.
func (p *Processor) move(ctx context.Context, tx pgx.Tx, m payment.Movement) error {
	_, err := tx.Exec(ctx, sqlInsertMovement, "txn_test_"+draw(), m.Kind, m.PaymentID, m.CaseID, m.OrderID, m.SubscriptionID, m.Amount, m.At)
	if err != nil {
		return fmt.Errorf("write a line of the test checkout's book: %w", err)
	}
	return nil
}

// movePayment writes that a top-up was paid.
func (p *Processor) movePayment(ctx context.Context, tx pgx.Tx, s *Session) error {
	return p.move(ctx, tx, payment.Movement{
		Kind: payment.PaymentMoved, PaymentID: s.PaymentID, OrderID: &s.OrderID, Amount: s.Amount, At: p.Clock.Now(),
	})
}

// moveCase writes what a case took, or gave back.
func (p *Processor) moveCase(ctx context.Context, tx pgx.Tx, c *Case, amount money.USD) error {
	kind := payment.RefundMoved
	if c.isDispute() {
		kind = payment.DisputeMoved
	}
	return p.move(ctx, tx, payment.Movement{Kind: kind, PaymentID: c.PaymentID, CaseID: c.ID, Amount: amount, At: p.Clock.Now()})
}

const sqlListMovements = `
select id, kind, created_at as at, amount_usd_micro, 0::bigint as fee_usd_micro, 'usd' as currency, payment_id, case_id, order_id,
  subscription_id
from testpay_movement where created_at >= $1 and created_at < $2 order by created_at, id`

// ListMovements lists what the book has of [from, to), the oldest first. Its
// time is business time; there are no fees and no payouts.
func (p *Processor) ListMovements(ctx context.Context, from, to time.Time) ([]payment.Movement, error) {
	rows, err := p.Pool.Query(ctx, sqlListMovements, from, to)
	if err != nil {
		return nil, fmt.Errorf("list the test checkout's book: %w", err)
	}
	moved, err := pgx.CollectRows(rows, pgx.RowToStructByName[payment.Movement])
	if err != nil {
		return nil, fmt.Errorf("list the test checkout's book: %w", err)
	}
	return moved, nil
}
