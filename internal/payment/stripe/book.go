package stripe

import (
	"context"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// ListMovements lists the balance transactions made in [from, to), the oldest
// first. What each is about is what the payer was charged, also where the
// account's balance is kept in another currency.
func (p *Processor) ListMovements(ctx context.Context, from, to time.Time) ([]payment.Movement, error) {
	params := &stripe.BalanceTransactionListParams{
		ListParams: stripe.ListParams{Limit: stripe.Int64(100)}, Expand: []*string{stripe.String("data.source")},
		CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: from.Unix(), LesserThan: to.Unix()},
	}
	var moved []payment.Movement
	for line, err := range p.client.V1BalanceTransactions.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list balance transactions: %w", err)
		}
		m := movementOf(line)
		if m.Kind == payment.PaymentMoved && m.OrderID == nil && m.PaymentID != "" {
			if err := p.explain(ctx, &m); err != nil {
				return nil, err
			}
		}
		moved = append(moved, m)
	}
	for i, j := 0, len(moved)-1; i < j; i, j = i+1, j-1 { // Stripe lists the newest first
		moved[i], moved[j] = moved[j], moved[i]
	}
	return moved, nil
}

// movementOf reads what we need of a balance transaction.
func movementOf(line *stripe.BalanceTransaction) payment.Movement {
	m := payment.Movement{
		ID: line.ID, Kind: kindOf(line), At: time.Unix(line.Created, 0).UTC(),
		Amount: money.USD(line.Amount) * money.Cent, Currency: string(line.Currency),
	}
	if line.Currency == stripe.CurrencyUSD {
		m.Fee = money.USD(line.Fee) * money.Cent
	}
	sign := money.USD(1)
	if line.Amount < 0 {
		sign = -1
	}
	about := func(amount int64, currency stripe.Currency, intent *stripe.PaymentIntent) {
		m.Amount, m.Currency = sign*money.USD(amount)*money.Cent, string(currency)
		if intent != nil {
			m.PaymentID = intent.ID
		}
	}
	switch source := line.Source; {
	case source == nil:
	case source.Charge != nil && m.Kind == payment.PaymentMoved:
		about(source.Charge.AmountCaptured, source.Charge.Currency, source.Charge.PaymentIntent)
		m.OrderID = payment.OrderOf(source.Charge.Metadata)
	case source.Refund != nil:
		about(source.Refund.Amount, source.Refund.Currency, source.Refund.PaymentIntent)
		m.CaseID = source.Refund.ID
	case source.Dispute != nil:
		about(source.Dispute.Amount, source.Dispute.Currency, source.Dispute.PaymentIntent)
		m.CaseID = source.Dispute.ID
	}
	return m
}

// kinds are what Stripe's types of balance transactions are to us. What stays
// with Stripe for a while, or comes back from it, is like a payout.
var kinds = map[stripe.BalanceTransactionType]payment.MovementKind{
	stripe.BalanceTransactionTypeCharge: payment.PaymentMoved, stripe.BalanceTransactionTypePayment: payment.PaymentMoved,
	stripe.BalanceTransactionTypeRefund: payment.RefundMoved, stripe.BalanceTransactionTypePaymentRefund: payment.RefundMoved,
	stripe.BalanceTransactionTypeRefundFailure: payment.RefundMoved, stripe.BalanceTransactionTypePaymentFailureRefund: payment.RefundMoved,
	stripe.BalanceTransactionTypeStripeFee: payment.FeeMoved, stripe.BalanceTransactionTypeStripeFxFee: payment.FeeMoved,
	stripe.BalanceTransactionTypeTaxFee: payment.FeeMoved,
	stripe.BalanceTransactionTypePayout: payment.PayoutMoved, stripe.BalanceTransactionTypePayoutCancel: payment.PayoutMoved,
	stripe.BalanceTransactionTypePayoutFailure:                payment.PayoutMoved,
	stripe.BalanceTransactionTypePayoutMinimumBalanceHold:     payment.PayoutMoved,
	stripe.BalanceTransactionTypePayoutMinimumBalanceRelease:  payment.PayoutMoved,
	stripe.BalanceTransactionTypePaymentNetworkReserveHold:    payment.PayoutMoved,
	stripe.BalanceTransactionTypePaymentNetworkReserveRelease: payment.PayoutMoved,
	stripe.BalanceTransactionTypeReserveHold:                  payment.PayoutMoved,
	stripe.BalanceTransactionTypeReserveRelease:               payment.PayoutMoved,
	stripe.BalanceTransactionTypeReserveTransaction:           payment.PayoutMoved,
	stripe.BalanceTransactionTypeReservedFunds:                payment.PayoutMoved,
	stripe.BalanceTransactionTypeTopup:                        payment.PayoutMoved,
	stripe.BalanceTransactionTypeTopupReversal:                payment.PayoutMoved,
}

func kindOf(line *stripe.BalanceTransaction) payment.MovementKind {
	switch line.ReportingCategory {
	case stripe.BalanceTransactionReportingCategoryDispute, stripe.BalanceTransactionReportingCategoryDisputeReversal:
		return payment.DisputeMoved
	default:
	}
	if line.Source != nil && line.Source.Dispute != nil {
		return payment.DisputeMoved
	}
	if kind, ok := kinds[line.Type]; ok {
		return kind
	}
	return payment.OtherMoved
}

// explain finds the subscription that a payment without an order pays, by its
// invoice.
func (p *Processor) explain(ctx context.Context, m *payment.Movement) error {
	invoice, err := p.invoiceOf(ctx, m.PaymentID)
	if err != nil || invoice == nil || invoice.Parent == nil || invoice.Parent.SubscriptionDetails == nil {
		return err
	}
	details := invoice.Parent.SubscriptionDetails
	m.OrderID = payment.OrderOf(details.Metadata)
	if details.Subscription != nil {
		m.SubscriptionID = details.Subscription.ID
	}
	return nil
}

// invoiceOf is the invoice that a payment pays; nil: there is none.
func (p *Processor) invoiceOf(ctx context.Context, paymentID string) (*stripe.Invoice, error) {
	params := &stripe.InvoicePaymentListParams{
		ListParams: stripe.ListParams{Limit: stripe.Int64(1)}, Expand: []*string{stripe.String("data.invoice")},
		Payment: &stripe.InvoicePaymentListPaymentParams{Type: stripe.String("payment_intent"), PaymentIntent: stripe.String(paymentID)},
	}
	for paid, err := range p.client.V1InvoicePayments.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("find the invoice of payment %s: %w", paymentID, err)
		}
		return paid.Invoice, nil
	}
	return nil, nil
}
