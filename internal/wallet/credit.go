package wallet

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

const sqlFindPosted = `
select team_id, code, amount_usd_micro, coalesce(reference_id, '') as reference_id from transfer where key = $1`

type postedRow struct {
	TeamID    uuid.UUID `db:"team_id"`
	Code      code      `db:"code"`
	Amount    money.USD `db:"amount_usd_micro"`
	Reference string    `db:"reference_id"`
}

// CreditTx adds money to a wallet and says whether it did: a key that was
// posted before changes nothing. The same key with another team, amount or
// reference is an error. What the team owes is paid first.
func (s *Service) CreditTx(ctx context.Context, tx pgx.Tx, c Credit) (bool, error) {
	from, ok := c.Source.clearing()
	if !ok || c.Amount <= 0 || c.Key == "" {
		return false, fmt.Errorf("credit team %s: source %q, amount %d and key %q must be set", c.TeamID, c.Source, c.Amount, c.Key)
	}
	b, err := s.lock(ctx, tx, c.TeamID)
	if err != nil {
		return false, err
	}
	now := max(c.At.UnixMicro(), b.wallet.SettledUS)
	if err := b.roll(now); err != nil {
		return false, err
	}
	err = b.receive(posting{
		Debit: from, Credit: b.wallet.AccountID, Amount: c.Amount, Code: credit, Key: c.Key,
		Reference: c.ReferenceID, Description: c.Description, AtUS: c.At.UnixMicro(),
	}, now)
	if err != nil {
		return false, err
	}
	if b.plain() {
		written, err := s.savePlain(ctx, tx, b)
		if written || err != nil {
			return written, err
		}
	}
	posted, err := s.posted(ctx, tx, c)
	if posted || err != nil {
		return false, err
	}
	return true, s.save(ctx, tx, b)
}

// posted says whether the credit was posted before. Under the wallet's lock.
func (s *Service) posted(ctx context.Context, tx pgx.Tx, c Credit) (bool, error) {
	rows, err := tx.Query(ctx, sqlFindPosted, c.Key)
	if err != nil {
		return false, fmt.Errorf("find credit %q of team %s: %w", c.Key, c.TeamID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[postedRow])
	if err != nil {
		return false, fmt.Errorf("find credit %q of team %s: %w", c.Key, c.TeamID, err)
	}
	want := postedRow{TeamID: c.TeamID, Code: credit, Amount: c.Amount, Reference: c.ReferenceID}
	if len(found) > 0 && found[0] != want {
		return false, fmt.Errorf("credit team %s: key %q was posted with other values before", c.TeamID, c.Key)
	}
	return len(found) > 0, nil
}
