package stripe

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment"
)

// SetSeats changes how many seats are billed. More are charged for the rest of
// the month at once, and only count when that is paid; fewer cost less from the
// next month on.
func (p *Processor) SetSeats(ctx context.Context, c payment.SeatChange) error {
	sub, err := p.client.V1Subscriptions.Retrieve(ctx, c.SubscriptionID, nil)
	if err != nil {
		return fmt.Errorf("read subscription %s: %w", c.SubscriptionID, err)
	}
	if sub.Items == nil || len(sub.Items.Data) != 1 {
		return fmt.Errorf("subscription %s is not of one price", c.SubscriptionID)
	}
	item := sub.Items.Data[0]
	if item.Quantity == int64(c.Seats) {
		return nil
	}
	params := &stripe.SubscriptionUpdateParams{
		Items:             []*stripe.SubscriptionUpdateItemParams{{ID: stripe.String(item.ID), Quantity: stripe.Int64(int64(c.Seats))}},
		ProrationBehavior: stripe.String("none"),
	}
	if int64(c.Seats) > item.Quantity {
		params.ProrationBehavior = stripe.String("always_invoice")
		params.PaymentBehavior = stripe.String("pending_if_incomplete")
	}
	params.SetIdempotencyKey("seats:" + c.ID.String())
	if _, err := p.client.V1Subscriptions.Update(ctx, c.SubscriptionID, params); err != nil {
		return fmt.Errorf("set the seats of subscription %s: %w", c.SubscriptionID, err)
	}
	return nil
}

// EndSubscription lets a subscription end with the period that is paid for.
func (p *Processor) EndSubscription(ctx context.Context, subscriptionID string) error {
	return p.setEnding(ctx, subscriptionID, true)
}

// ResumeSubscription lets one that was to end with its period go on.
func (p *Processor) ResumeSubscription(ctx context.Context, subscriptionID string) error {
	return p.setEnding(ctx, subscriptionID, false)
}

func (p *Processor) setEnding(ctx context.Context, subscriptionID string, ending bool) error {
	_, err := p.client.V1Subscriptions.Update(ctx, subscriptionID, &stripe.SubscriptionUpdateParams{
		CancelAtPeriodEnd: stripe.Bool(ending),
	})
	if err != nil {
		return fmt.Errorf("let subscription %s end with its period (%t): %w", subscriptionID, ending, err)
	}
	return nil
}
