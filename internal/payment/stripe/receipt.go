package stripe

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v85"
)

// ReceiptURL is the page of the payment's invoice, where it can be saved, too;
// of a payment without one the receipt of its charge.
func (p *Processor) ReceiptURL(ctx context.Context, paymentID string) (string, error) {
	invoice, err := p.invoiceOf(ctx, paymentID)
	if err != nil {
		return "", err
	}
	if invoice != nil && invoice.HostedInvoiceURL != "" {
		return invoice.HostedInvoiceURL, nil
	}
	paid, err := p.client.V1PaymentIntents.Retrieve(ctx, paymentID, &stripe.PaymentIntentRetrieveParams{
		Expand: []*string{stripe.String("latest_charge")},
	})
	if err != nil {
		return "", fmt.Errorf("read payment %s: %w", paymentID, err)
	}
	if paid.LatestCharge == nil {
		return "", nil
	}
	return paid.LatestCharge.ReceiptURL, nil
}
