package stripe

import (
	"context"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment"
)

// ListCases lists the refunds and disputes made since an instant.
func (p *Processor) ListCases(ctx context.Context, since time.Time) ([]payment.Case, error) {
	var cases []payment.Case
	from := &stripe.RangeQueryParams{GreaterThanOrEqual: since.Unix()}
	page := stripe.ListParams{Limit: stripe.Int64(100)}
	for refund, err := range p.client.V1Refunds.List(ctx, &stripe.RefundListParams{ListParams: page, CreatedRange: from}).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list refunds: %w", err)
		}
		cases = append(cases, payment.RefundOf(refund))
	}
	for dispute, err := range p.client.V1Disputes.List(ctx, &stripe.DisputeListParams{ListParams: page, CreatedRange: from}).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list disputes: %w", err)
		}
		if dispute.Livemode != p.live {
			return nil, payment.ErrMode
		}
		cases = append(cases, payment.DisputeOf(dispute))
	}
	return cases, nil
}
