package payment

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/team"
)

const (
	// receiptLasts is how long the address of a receipt is passed on: Stripe's
	// end after 30 days.
	receiptLasts = 20 * 24 * time.Hour
	// receiptWait bounds what a statement waits for fresh addresses.
	receiptWait = 10 * time.Second
	// receiptBatch is how many of them it reads at most.
	receiptBatch = 50
)

const sqlListReceiptsToRead = `
select payment_id from topup
where status = 'paid' and receipt_url is null and receipt_reads < 20 and coalesce(receipt_read_at, '-infinity') <= $1 and processor = $3
order by coalesce(receipt_read_at, '-infinity'), id limit $2`

const sqlReadReceiptAgain = `
update topup set receipt_read_at = $2::timestamptz + least($3::interval, $4::interval * power(2, least(receipt_reads, 10))),
  receipt_reads = receipt_reads + 1
where payment_id = $1 and receipt_url is null`

// readReceipt asks the processor where the receipt of a payment is; it may be
// made a little after the payment.
func (s *Service) readReceipt(ctx context.Context, paymentID string) error {
	if _, err := s.Pool.Exec(ctx, sqlReadReceiptAgain, paymentID, s.Clock.Wall(), readLimit, firstRead); err != nil {
		return fmt.Errorf("note that the receipt of %s is read: %w", paymentID, err)
	}
	_, err := s.freshReceipt(ctx, paymentID)
	return err
}

const sqlKeepReceipt = `
update topup set receipt_url = $2, receipt_seen_at = $3, receipt_read_at = null where payment_id = $1`

// freshReceipt reads and keeps the address of a receipt; empty: there is none.
func (s *Service) freshReceipt(ctx context.Context, paymentID string) (string, error) {
	address, err := s.Processor.ReceiptURL(ctx, paymentID)
	if err != nil || address == "" {
		return "", err
	}
	if _, err := s.Pool.Exec(ctx, sqlKeepReceipt, paymentID, address, s.Clock.Wall()); err != nil {
		return "", fmt.Errorf("keep the receipt of %s: %w", paymentID, err)
	}
	return address, nil
}

const sqlListReceipts = `
select payment_id, processor, coalesce(receipt_url, '') as url, coalesce(receipt_seen_at, '-infinity'::timestamptz) > $2 as fresh
from topup where payment_id = any($1) and status = 'paid' order by closed_at desc, id`

type receiptRow struct {
	PaymentID string `db:"payment_id"`
	Processor string `db:"processor"`
	URL       string `db:"url"`
	Fresh     bool   `db:"fresh"`
}

// Receipts returns the addresses of the receipts of payments, by the payment's
// id. Whoever knows one can see it: they are for the payment's team. Those that
// are missing or old are read from the processor first, as far as that answers
// in time; payments without a receipt are left out.
func (s *Service) Receipts(ctx context.Context, payments []string) (map[string]string, error) {
	rows, err := s.Pool.Query(ctx, sqlListReceipts, payments, s.Clock.Wall().Add(-receiptLasts))
	if err != nil {
		return nil, fmt.Errorf("list receipts: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[receiptRow])
	if err != nil {
		return nil, fmt.Errorf("list receipts: %w", err)
	}
	ask, cancel := context.WithTimeout(ctx, receiptWait)
	defer cancel()
	receipts := make(map[string]string, len(found))
	asked := 0
	for _, r := range found {
		address := r.URL
		if !r.Fresh && asked < receiptBatch && s.Processor != nil && string(s.Processor.Source()) == r.Processor {
			asked++
			fresh, err := s.freshReceipt(ask, r.PaymentID)
			if err != nil {
				s.Logger.WarnContext(ctx, "a receipt cannot be read", slog.String("payment", r.PaymentID), slog.Any("err", err))
				asked = receiptBatch // the old ones have to do
			}
			if fresh != "" {
				address = fresh
			}
		}
		if address != "" {
			receipts[r.PaymentID] = address
		}
	}
	return receipts, ctx.Err()
}

const sqlListKnownReceipts = `
select payment_id, receipt_url from topup
where team_id = $1 and payment_id = any($2) and status = 'paid' and receipt_url is not null and receipt_seen_at > $3`

// KnownReceipts returns the addresses of the receipts of the scope's team's
// payments, by the payment's id, as far as they are known and still last. Nobody
// is asked; a statement has the others, too.
func (s *Service) KnownReceipts(ctx context.Context, scope team.Scope, payments []string) (map[string]string, error) {
	rows, err := s.Pool.Query(ctx, sqlListKnownReceipts, scope.TeamID(), payments, s.Clock.Wall().Add(-receiptLasts))
	if err != nil {
		return nil, fmt.Errorf("list the receipts of team %s: %w", scope.TeamID(), err)
	}
	receipts := make(map[string]string)
	var paymentID, address string
	_, err = pgx.ForEachRow(rows, []any{&paymentID, &address}, func() error {
		receipts[paymentID] = address
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the receipts of team %s: %w", scope.TeamID(), err)
	}
	return receipts, nil
}
