package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment"
)

// clockSkew is how far Stripe's clock may be behind ours.
const clockSkew = time.Hour

// CreateCardSetup opens a checkout that saves a card for payments without its
// owner. The same order again gives the same one.
func (p *Processor) CreateCardSetup(ctx context.Context, o payment.CardOrder) (payment.Session, error) {
	about := map[string]string{payment.CardOrderKey: o.ID.String(), teamKey: o.TeamID.String()}
	params := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String(string(payment.CardMode)), Customer: stripe.String(o.CustomerID),
		ClientReferenceID: stripe.String(o.TeamID.String()), SuccessURL: stripe.String(o.SuccessURL), CancelURL: stripe.String(o.CancelURL),
		Currency: stripe.String("usd"), PaymentMethodTypes: stripe.StringSlice([]string{"card"}), Metadata: about,
		SetupIntentData: &stripe.CheckoutSessionCreateSetupIntentDataParams{Metadata: about},
	}
	if p.config.AutomaticTax { // later payments need to know where the payer is
		params.BillingAddressCollection = stripe.String("required")
		params.CustomerUpdate = &stripe.CheckoutSessionCreateCustomerUpdateParams{
			Address: stripe.String("auto"), Name: stripe.String("auto"),
		}
	}
	params.SetIdempotencyKey("card:" + o.ID.String() + ":" + o.CustomerID)
	return p.open(ctx, params)
}

// ReadCard asks how a checkout that saves a card stands, and which card it
// saved: that of its set-up, or of its payment where that was made to be kept.
func (p *Processor) ReadCard(ctx context.Context, sessionID string) (payment.Session, payment.Card, error) {
	params := &stripe.CheckoutSessionRetrieveParams{}
	params.AddExpand("setup_intent.payment_method")
	params.AddExpand("payment_intent.payment_method")
	session, err := p.client.V1CheckoutSessions.Retrieve(ctx, sessionID, params)
	if err != nil {
		return payment.Session{}, payment.Card{}, fmt.Errorf("read the card of checkout %s: %w", sessionID, err)
	}
	if session.Livemode != p.live {
		return payment.Session{}, payment.Card{}, payment.ErrMode
	}
	return payment.SessionOf(session), cardOf(savedBy(session)), nil
}

// savedBy is what a complete checkout keeps for later payments; nil: nothing.
func savedBy(session *stripe.CheckoutSession) *stripe.PaymentMethod {
	setup, paid := session.SetupIntent, session.PaymentIntent
	switch {
	case session.Status != stripe.CheckoutSessionStatusComplete:
		return nil
	case setup != nil && setup.Status == stripe.SetupIntentStatusSucceeded:
		return setup.PaymentMethod
	case paid != nil && paid.Status == stripe.PaymentIntentStatusSucceeded &&
		paid.SetupFutureUsage == stripe.PaymentIntentSetupFutureUsageOffSession:
		return paid.PaymentMethod
	}
	return nil
}

// cardOf is what may be shown of a card; the zero Card for anything else.
func cardOf(method *stripe.PaymentMethod) payment.Card {
	if method == nil || method.Card == nil {
		return payment.Card{}
	}
	return payment.Card{
		ID: method.ID, Brand: string(method.Card.Brand), Last4: method.Card.Last4,
		ExpMonth: int(method.Card.ExpMonth), ExpYear: int(method.Card.ExpYear),
	}
}

// FindCard asks how a saved card stands; false: it is of no customer any more.
func (p *Processor) FindCard(ctx context.Context, cardID string) (payment.Card, bool, error) {
	method, err := p.client.V1PaymentMethods.Retrieve(ctx, cardID, nil)
	var refused *stripe.Error
	if errors.As(err, &refused) && refused.HTTPStatusCode == http.StatusNotFound {
		return payment.Card{}, false, nil
	}
	if err != nil {
		return payment.Card{}, false, fmt.Errorf("read card %s: %w", cardID, err)
	}
	if method.Livemode != p.live {
		return payment.Card{}, false, payment.ErrMode
	}
	card := cardOf(method)
	return card, method.Customer != nil && card.ID != "", nil
}

// DetachCard forgets a card; one that is gone stays so.
func (p *Processor) DetachCard(ctx context.Context, cardID string) error {
	_, err := p.client.V1PaymentMethods.Detach(ctx, cardID, &stripe.PaymentMethodDetachParams{})
	var refused *stripe.Error
	if errors.As(err, &refused) && (refused.HTTPStatusCode == http.StatusBadRequest || refused.HTTPStatusCode == http.StatusNotFound) {
		return nil // it is of no customer any more
	}
	if err != nil {
		return fmt.Errorf("detach card %s: %w", cardID, err)
	}
	return nil
}

// Charge has a saved card pay while its owner is not there. The same order again
// gives the same payment.
func (p *Processor) Charge(ctx context.Context, c payment.Charge) (payment.Payment, error) {
	about := map[string]string{payment.AutoOrderKey: c.ID.String(), teamKey: c.TeamID.String()}
	params := &stripe.PaymentIntentCreateParams{
		Amount: cents(c.Amount), Currency: stripe.String("usd"), Customer: stripe.String(c.CustomerID),
		PaymentMethod: stripe.String(c.CardID), PaymentMethodTypes: stripe.StringSlice([]string{"card"}),
		OffSession: stripe.Bool(true), Confirm: stripe.Bool(true),
		Description: stripe.String("Homeport wallet credit, automatic top-up"), Metadata: about,
	}
	if p.config.AutomaticTax {
		if err := p.addTax(ctx, c, params); err != nil {
			return p.refusal(c, err)
		}
	}
	params.SetIdempotencyKey("auto:" + c.ID.String())
	made, err := p.client.V1PaymentIntents.Create(ctx, params)
	if err != nil {
		return p.refusal(c, err)
	}
	if made.Livemode != p.live {
		return payment.Payment{}, payment.ErrMode
	}
	return payment.IntentOf(made), nil
}

// addTax has Stripe compute the tax on top, and report it once it is paid.
func (p *Processor) addTax(ctx context.Context, c payment.Charge, to *stripe.PaymentIntentCreateParams) error {
	params := &stripe.TaxCalculationCreateParams{
		Currency: stripe.String("usd"), Customer: stripe.String(c.CustomerID),
		LineItems: []*stripe.TaxCalculationCreateLineItemParams{{
			Amount: cents(c.Amount), Quantity: stripe.Int64(1), Reference: stripe.String("wallet credit"), TaxBehavior: stripe.String("exclusive"),
		}},
	}
	params.SetIdempotencyKey("autotax:" + c.ID.String())
	tax, err := p.client.V1TaxCalculations.Create(ctx, params)
	if err != nil {
		return err
	}
	to.Amount = stripe.Int64(tax.AmountTotal)
	to.Metadata[payment.TaxKey] = strconv.FormatInt(tax.AmountTotal-*cents(c.Amount), 10)
	to.Hooks = &stripe.PaymentIntentCreateHooksParams{Inputs: &stripe.PaymentIntentCreateHooksInputsParams{
		Tax: &stripe.PaymentIntentCreateHooksInputsTaxParams{Calculation: stripe.String(tax.ID)},
	}}
	return nil
}

// refusal is the payment behind an error: a card that was declined, or a request
// that Stripe will never accept, such as for a card that is gone. Of everything
// else nobody knows whether there is a payment.
func (p *Processor) refusal(c payment.Charge, err error) (payment.Payment, error) {
	var refused *stripe.Error
	if err = lost(err); errors.As(err, &refused) && !errors.Is(err, payment.ErrNoCustomer) {
		switch {
		case refused.PaymentIntent != nil && refused.PaymentIntent.ID != "":
			return payment.IntentOf(refused.PaymentIntent), nil
		case refused.Type == stripe.ErrorTypeCard, refused.Type == stripe.ErrorTypeInvalidRequest && final(refused.HTTPStatusCode):
			return payment.Payment{OrderID: c.ID, Amount: c.Amount, Total: c.Amount, Currency: "usd", State: payment.PaymentDeclined}, nil
		}
	}
	return payment.Payment{}, fmt.Errorf("charge card of order %s: %w", c.ID, err)
}

func final(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusPaymentRequired || status == http.StatusNotFound
}

// FindPayment looks for the payment of a charge among the customer's newest, and
// then among all: the customer may be gone, or be another by now. That search
// finds only what is a minute old.
func (p *Processor) FindPayment(ctx context.Context, c payment.Charge) (payment.Payment, bool, error) {
	if c.CustomerID != "" {
		params := &stripe.PaymentIntentListParams{
			ListParams: stripe.ListParams{Limit: stripe.Int64(100)}, Customer: stripe.String(c.CustomerID),
			CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: c.OrderedAt.Add(-clockSkew).Unix()},
		}
		made, err := p.ofOrder(c, p.client.V1PaymentIntents.List(ctx, params).All(ctx))
		if made != nil || err != nil && !errors.Is(lost(err), payment.ErrNoCustomer) {
			return found(made, err)
		}
	}
	return found(p.ofOrder(c, p.client.V1PaymentIntents.Search(ctx, &stripe.PaymentIntentSearchParams{
		SearchParams: stripe.SearchParams{Query: fmt.Sprintf("metadata[%q]:%q", payment.AutoOrderKey, c.ID.String()), Limit: stripe.Int64(10)},
	}).All(ctx)))
}

// ofOrder is the payment of a charge's order in a list; nil: there is none.
func (p *Processor) ofOrder(c payment.Charge, all stripe.Seq2[*stripe.PaymentIntent, error]) (*stripe.PaymentIntent, error) {
	for made, err := range all {
		if err != nil {
			return nil, fmt.Errorf("look for the payment of order %s: %w", c.ID, err)
		}
		if made.Livemode == p.live && made.Metadata[payment.AutoOrderKey] == c.ID.String() {
			return made, nil
		}
	}
	return nil, nil
}

func found(made *stripe.PaymentIntent, err error) (payment.Payment, bool, error) {
	if made == nil {
		return payment.Payment{}, false, err
	}
	return payment.IntentOf(made), true, nil
}
