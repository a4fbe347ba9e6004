package payment

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sqlListPayers = `select payment_id, user_id from topup where payment_id = any($1)`

// PayersTx tells who made payments, by the payment's id. Those that were no
// top-up are left out.
func (s *Service) PayersTx(ctx context.Context, tx pgx.Tx, payments []string) (map[string]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlListPayers, payments)
	if err != nil {
		return nil, fmt.Errorf("list who paid: %w", err)
	}
	payers := make(map[string]uuid.UUID, len(payments))
	var payment string
	var user uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&payment, &user}, func() error {
		payers[payment] = user
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list who paid: %w", err)
	}
	return payers, nil
}
