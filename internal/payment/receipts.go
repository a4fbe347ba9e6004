package payment

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/wallet"
)

const sqlListSessions = `
select payment_id, session_id from topup
where payment_id = any($1) and processor = $2 and session_id is not null`

// ReceiptsTx returns the addresses of the receipts of payments, by the
// payment's id: those of the test checkout are its own pages. Stripe mails its
// receipts to the payer, so its payments are left out.
func (s *Service) ReceiptsTx(ctx context.Context, tx pgx.Tx, payments []string) (map[string]string, error) {
	rows, err := tx.Query(ctx, sqlListSessions, payments, wallet.Test)
	if err != nil {
		return nil, fmt.Errorf("list receipts: %w", err)
	}
	receipts := make(map[string]string, len(payments))
	var payment, session string
	_, err = pgx.ForEachRow(rows, []any{&payment, &session}, func() error {
		receipts[payment] = s.PublicURL + "/test-checkout/" + session
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list receipts: %w", err)
	}
	return receipts, nil
}
