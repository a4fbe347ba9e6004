package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// seatKey is the lookup key of the price of one seat.
const seatKey = "pro_seat_monthly"

// seat finds the price of one seat and month, or makes it. A price that costs
// something else loses its lookup key to the new one; what is subscribed to it
// stays as it is.
func (p *Processor) seat(ctx context.Context, amount money.USD) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.prices[amount]; ok {
		return known, nil
	}
	query := &stripe.PriceListParams{Active: stripe.Bool(true), LookupKeys: stripe.StringSlice([]string{seatKey})}
	for price, err := range p.client.V1Prices.List(ctx, query).All(ctx) {
		if err != nil {
			return "", fmt.Errorf("find the price of a seat: %w", err)
		}
		if price.UnitAmount == *cents(amount) && price.Currency == stripe.CurrencyUSD && price.Recurring != nil &&
			price.Recurring.Interval == stripe.PriceRecurringIntervalMonth && price.Recurring.IntervalCount == 1 {
			p.prices[amount] = price.ID
			return price.ID, nil
		}
	}
	params := &stripe.PriceCreateParams{
		Currency: stripe.String("usd"), UnitAmount: cents(amount), TaxBehavior: stripe.String("exclusive"),
		LookupKey: stripe.String(seatKey), TransferLookupKey: stripe.Bool(true), Nickname: stripe.String("Pro seat, monthly"),
		ProductData: &stripe.PriceCreateProductDataParams{Name: stripe.String("Homeport Pro seat")},
		Recurring: &stripe.PriceCreateRecurringParams{
			Interval: stripe.String(string(stripe.PriceRecurringIntervalMonth)), IntervalCount: stripe.Int64(1),
		},
	}
	params.SetIdempotencyKey(fmt.Sprintf("price:%s:%d", seatKey, *cents(amount)))
	made, err := p.client.V1Prices.Create(ctx, params)
	if err != nil {
		return "", fmt.Errorf("make the price of a seat: %w", err)
	}
	p.prices[amount] = made.ID
	return made.ID, nil
}

// ReadSubscription asks how a subscription stands.
func (p *Processor) ReadSubscription(ctx context.Context, subscriptionID string) (payment.Subscription, error) {
	sub, err := p.client.V1Subscriptions.Retrieve(ctx, subscriptionID, nil)
	if err != nil {
		return payment.Subscription{}, fmt.Errorf("read subscription %s: %w", subscriptionID, err)
	}
	if sub.Livemode != p.live {
		return payment.Subscription{}, payment.ErrMode
	}
	return payment.SubscriptionOf(sub)
}

// CancelSubscription ends a subscription at once, without a bill for the part
// of a month. One that has ended stays so.
func (p *Processor) CancelSubscription(ctx context.Context, subscriptionID string) error {
	sub, err := p.client.V1Subscriptions.Retrieve(ctx, subscriptionID, nil)
	if err != nil {
		return fmt.Errorf("read subscription %s: %w", subscriptionID, err)
	}
	if sub.Status == stripe.SubscriptionStatusCanceled || sub.Status == stripe.SubscriptionStatusIncompleteExpired {
		return nil
	}
	_, err = p.client.V1Subscriptions.Cancel(ctx, subscriptionID, &stripe.SubscriptionCancelParams{
		InvoiceNow: stripe.Bool(false), Prorate: stripe.Bool(false),
	})
	if gone(err) { // another call was faster
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel subscription %s: %w", subscriptionID, err)
	}
	return nil
}

// gone reports whether Stripe says that there is no such thing any more.
func gone(err error) bool {
	var refusal *stripe.Error
	return errors.As(err, &refusal) && refusal.HTTPStatusCode == http.StatusNotFound
}
