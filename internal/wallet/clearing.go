package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

// A Posted is money that went between a wallet and a processor.
type Posted struct {
	Key       string    `db:"key"` // of CreditTx or DebitTx
	TeamID    uuid.UUID `db:"team_id"`
	Amount    money.USD `db:"amount_usd_micro"`
	Reference string    `db:"reference_id"`
	At        time.Time `db:"created_at"` // business time
}

const sqlListPosted = `
select key, team_id, amount_usd_micro, coalesce(reference_id, '') as reference_id, created_at
from transfer where key = any($1)`

// Posted finds what was posted under keys of CreditTx and DebitTx, by the key.
// Those that were not are left out.
func (s *Service) Posted(ctx context.Context, db pg.Querier, keys []string) (map[string]Posted, error) {
	rows, err := db.Query(ctx, sqlListPosted, keys)
	if err != nil {
		return nil, fmt.Errorf("find what was posted: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Posted])
	if err != nil {
		return nil, fmt.Errorf("find what was posted: %w", err)
	}
	posted := make(map[string]Posted, len(found))
	for _, p := range found {
		posted[p.Key] = p
	}
	return posted, nil
}

const sqlListCleared = `
select key, team_id, amount_usd_micro, coalesce(reference_id, '') as reference_id, created_at
from transfer
where created_at >= $2 and created_at < $3 and (debit_account_id = $1 or credit_account_id = $1)
order by id`

// Cleared lists what was posted between wallets and a source in [from, to) of
// business time, the oldest first. It reads all transfers: it is made for a
// nightly look.
func (s *Service) Cleared(ctx context.Context, source Source, from, to time.Time) ([]Posted, error) {
	account, ok := source.clearing()
	if !ok {
		return nil, fmt.Errorf("list what was cleared: source %q has no account", source)
	}
	var found []Posted
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlTakeTime); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sqlListCleared, account, from, to)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[Posted])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list what was cleared with %s: %w", source, err)
	}
	return found, nil
}
