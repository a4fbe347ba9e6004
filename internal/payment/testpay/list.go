package testpay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment"
)

const sqlListCasesSince = `
select c.id, c.session_id, s.payment_id, c.amount_usd_micro, c.status, c.created_at
from testpay_case c join testpay_session s on s.id = c.session_id
where c.created_at >= $1 order by c.created_at, c.id`

// ListCases lists the refunds and disputes made since an instant.
func (p *Processor) ListCases(ctx context.Context, since time.Time) ([]payment.Case, error) {
	rows, err := p.Pool.Query(ctx, sqlListCasesSince, since)
	if err != nil {
		return nil, fmt.Errorf("list test cases: %w", err)
	}
	made, err := pgx.CollectRows(rows, pgx.RowToStructByName[Case])
	if err != nil {
		return nil, fmt.Errorf("list test cases: %w", err)
	}
	cases := make([]payment.Case, 0, len(made))
	for _, c := range made {
		intent := &stripe.PaymentIntent{ID: c.PaymentID}
		if c.isDispute() {
			cases = append(cases, payment.DisputeOf(&stripe.Dispute{
				ID: c.ID, Amount: cents(c.Amount), Currency: stripe.CurrencyUSD, PaymentIntent: intent, Status: stripe.DisputeStatus(c.Status),
			}))
			continue
		}
		cases = append(cases, payment.RefundOf(&stripe.Refund{
			ID: c.ID, Amount: cents(c.Amount), Currency: stripe.CurrencyUSD, PaymentIntent: intent, Status: stripe.RefundStatus(c.Status),
		}))
	}
	return cases, nil
}
