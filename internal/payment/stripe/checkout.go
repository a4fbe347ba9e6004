package stripe

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// teamKey is the member of metadata that names our team, for people who look
// at Stripe's dashboard.
const teamKey = "team_id"

func cents(amount money.USD) *int64 { return stripe.Int64(int64(amount / money.Cent)) }

// CreateTopUp opens a checkout over wallet credit, with an invoice for the
// payer's books. The same order again gives the same one.
func (p *Processor) CreateTopUp(ctx context.Context, o payment.Order) (payment.Session, error) {
	about := map[string]string{payment.OrderKey: o.ID.String(), teamKey: o.TeamID.String()}
	params := p.checkout(payment.TopUpMode, o.CustomerID, o.TeamID.String(), o.SuccessURL, o.CancelURL)
	params.Metadata = about
	params.LineItems = []*stripe.CheckoutSessionCreateLineItemParams{{
		Quantity: stripe.Int64(1),
		PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
			Currency: stripe.String("usd"), UnitAmount: cents(o.Amount), TaxBehavior: stripe.String("exclusive"),
			ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String("Homeport wallet credit")},
		},
	}}
	// Credit is there at once or not at all: bank debits take days, and may fail then.
	params.PaymentMethodTypes = stripe.StringSlice([]string{"card"})
	params.PaymentIntentData = &stripe.CheckoutSessionCreatePaymentIntentDataParams{Metadata: about}
	if o.SaveCard { // Stripe's page says so, too
		params.PaymentIntentData.SetupFutureUsage = stripe.String(string(stripe.PaymentIntentSetupFutureUsageOffSession))
	}
	params.InvoiceCreation = &stripe.CheckoutSessionCreateInvoiceCreationParams{
		Enabled:     stripe.Bool(true),
		InvoiceData: &stripe.CheckoutSessionCreateInvoiceCreationInvoiceDataParams{Metadata: about},
	}
	params.SetIdempotencyKey("topup:" + o.ID.String() + ":" + o.CustomerID)
	return p.open(ctx, params)
}

// CreateSubscription opens a checkout over a team's monthly seats. The same
// order again gives the same one.
func (p *Processor) CreateSubscription(ctx context.Context, o payment.TeamOrder) (payment.Session, error) {
	price, err := p.seat(ctx, o.SeatPrice)
	if err != nil {
		return payment.Session{}, err
	}
	about := map[string]string{payment.TeamOrderKey: o.ID.String(), teamKey: o.TeamID.String()}
	params := p.checkout(payment.SubscriptionMode, o.CustomerID, o.TeamID.String(), o.SuccessURL, o.CancelURL)
	params.Metadata = about
	params.LineItems = []*stripe.CheckoutSessionCreateLineItemParams{{
		Price: stripe.String(price), Quantity: stripe.Int64(int64(o.Seats)),
	}}
	params.SubscriptionData = &stripe.CheckoutSessionCreateSubscriptionDataParams{
		Metadata: about, Description: stripe.String("Team " + o.TeamName),
	}
	params.SetIdempotencyKey("team:" + o.ID.String() + ":" + o.CustomerID)
	return p.open(ctx, params)
}

// checkout is what both kinds of checkout have in common.
func (p *Processor) checkout(mode payment.Mode, customer, team, success, cancel string) *stripe.CheckoutSessionCreateParams {
	params := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String(string(mode)), Customer: stripe.String(customer), ClientReferenceID: stripe.String(team),
		SuccessURL: stripe.String(success), CancelURL: stripe.String(cancel),
	}
	if p.config.AutomaticTax {
		params.AutomaticTax = &stripe.CheckoutSessionCreateAutomaticTaxParams{Enabled: stripe.Bool(true)}
		params.BillingAddressCollection = stripe.String("required")
		params.CustomerUpdate = &stripe.CheckoutSessionCreateCustomerUpdateParams{
			Address: stripe.String("auto"), Name: stripe.String("auto"),
		}
		params.TaxIDCollection = &stripe.CheckoutSessionCreateTaxIDCollectionParams{Enabled: stripe.Bool(true)}
	}
	return params
}

func (p *Processor) open(ctx context.Context, params *stripe.CheckoutSessionCreateParams) (payment.Session, error) {
	session, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return payment.Session{}, fmt.Errorf("open a checkout: %w", lost(err))
	}
	return payment.SessionOf(session), nil
}

// ReadSession asks how a checkout stands.
func (p *Processor) ReadSession(ctx context.Context, sessionID string) (payment.Session, error) {
	session, err := p.client.V1CheckoutSessions.Retrieve(ctx, sessionID, nil)
	if err != nil {
		return payment.Session{}, fmt.Errorf("read checkout %s: %w", sessionID, err)
	}
	if session.Livemode != p.live {
		return payment.Session{}, payment.ErrMode
	}
	return payment.SessionOf(session), nil
}
