package testpay

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/payment"
)

const sqlFindPaidSession = `select id from testpay_session where payment_id = $1 and status = 'complete'`

// ReceiptURL is this processor's own page of a top-up.
func (p *Processor) ReceiptURL(ctx context.Context, paymentID string) (string, error) {
	var session string
	err := p.Pool.QueryRow(ctx, sqlFindPaidSession, paymentID).Scan(&session)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the checkout of %s: %w", paymentID, err)
	}
	return p.PublicURL + "/test-checkout/" + session + "/receipt", nil
}

//go:embed receipt.html
var receiptHTML string

var receiptTemplate = template.Must(template.New("receipt").Parse(receiptHTML))

type receiptData struct {
	Title, Amount, Payment string
	Lines                  []receiptLine
	Style                  template.CSS
}

// A receiptLine is one movement of the payment's money.
type receiptLine struct{ What, When, Amount string }

const sqlListMovementsOf = `
select id, kind, created_at as at, amount_usd_micro, 0::bigint as fee_usd_micro, 'usd' as currency, payment_id, case_id, order_id,
  subscription_id
from testpay_movement where payment_id = $1 order by created_at, id`

// Receipt writes the receipt of a paid checkout: what was paid, and what went
// back since. The fault is ErrNotFound.
func (p *Processor) Receipt(ctx context.Context, w http.ResponseWriter, sessionID string) error {
	s, err := p.find(ctx, sqlFindSession, sessionID)
	if err != nil {
		return err
	}
	if s.Status != "complete" || s.Amount == 0 {
		return ErrNotFound
	}
	rows, err := p.Pool.Query(ctx, sqlListMovementsOf, s.PaymentID)
	if err != nil {
		return fmt.Errorf("list what became of %s: %w", s.PaymentID, err)
	}
	moved, err := pgx.CollectRows(rows, pgx.RowToStructByName[payment.Movement])
	if err != nil {
		return fmt.Errorf("list what became of %s: %w", s.PaymentID, err)
	}
	data := receiptData{
		Title: "Wallet credit", Amount: dollars(s.Amount), Payment: s.PaymentID,
		Style: template.CSS(pageCSS), //nolint:gosec // our own file
	}
	if s.Mode == payment.SubscriptionMode {
		data.Title = "Homeport Pro"
	}
	for _, m := range moved {
		data.Lines = append(data.Lines, lineOf(m))
	}
	var page bytes.Buffer
	if err := receiptTemplate.Execute(&page, data); err != nil {
		return fmt.Errorf("write the receipt of %s: %w", s.PaymentID, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(page.Bytes())
	return err
}

func lineOf(m payment.Movement) receiptLine {
	what := map[payment.MovementKind]string{
		payment.PaymentMoved: "Paid by test card", payment.RefundMoved: "Refunded", payment.DisputeMoved: "Disputed",
	}[m.Kind]
	amount := dollars(max(m.Amount, -m.Amount))
	switch {
	case m.Kind == payment.RefundMoved && m.Amount > 0:
		what = "Refund failed"
	case m.Kind == payment.DisputeMoved && m.Amount > 0:
		what = "Dispute won"
	case m.Amount < 0:
		amount = "-" + amount
	}
	return receiptLine{What: what, When: m.At.Format("2 January 2006, 15:04 UTC"), Amount: amount}
}
