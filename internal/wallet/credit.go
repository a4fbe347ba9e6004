package wallet

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

// A wallet is at rest when it waits for nothing, nothing is owed or unpaid, and
// nobody watches its balance.
// What book.receive then changes is the balance and what was told of it. The
// update locks the wallet and looks at all that under the lock; it changes no row
// when the wallet is not at rest. That the key was not posted before is the
// unique index's to say, after which the whole transaction is tried again by the
// book. Two plain statements: as one with a common table expression they take a
// third more CPU.
const sqlAddAtRest = `
update wallet set balance_usd_micro = balance_usd_micro + @amount, warned = 0, empty_us = null, version = version + 1
where team_id = @team and next_us is null and receivable_usd_micro = 0 and exhausted_us is null and low_usd_micro is null
returning account_id`

const sqlPostAtRest = `
insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, reference_id, description, created_at)
values (@debit, @account, @amount, 'credit', @key, @team, @reference, @description, @at)`

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
	if pg.FirstTry(tx) {
		if done, err := s.creditAtRest(ctx, tx, c, from); done || err != nil {
			return done, err
		}
	}
	b, err := s.lock(ctx, tx, c.TeamID)
	if err != nil {
		return false, err
	}
	if err := b.credit(c, from); err != nil {
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

// creditAtRest says false, and has written nothing, when the wallet is not at
// rest. A credit that was posted before is an error after which pg.InTx tries again.
func (s *Service) creditAtRest(ctx context.Context, tx pgx.Tx, c Credit, from uuid.UUID) (bool, error) {
	args := pgx.NamedArgs{
		"team": c.TeamID, "debit": from, "amount": c.Amount, "key": c.Key, "reference": nil,
		"description": c.Description, "at": clock.FromMicros(c.At.UnixMicro()),
	}
	if c.ReferenceID != "" {
		args["reference"] = c.ReferenceID
	}
	var account uuid.UUID
	err := tx.QueryRow(ctx, sqlAddAtRest, pgx.NamedArgs{"team": c.TeamID, "amount": c.Amount}).Scan(&account)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("credit team %s: %w", c.TeamID, err)
	}
	args["account"] = account
	if _, err := tx.Exec(ctx, sqlPostAtRest, args); err != nil {
		return false, fmt.Errorf("credit team %s: %w", c.TeamID, pg.AgainAfter(err, "transfer_key_once"))
	}
	return true, nil
}

// credit books a credit, whatever the wallet's state.
func (b *book) credit(c Credit, from uuid.UUID) error {
	now := max(c.At.UnixMicro(), b.wallet.SettledUS)
	if err := b.roll(now); err != nil {
		return err
	}
	return b.receive(posting{
		Debit: from, Credit: b.wallet.AccountID, Amount: c.Amount, Code: credit, Key: c.Key,
		Reference: c.ReferenceID, Description: c.Description, AtUS: c.At.UnixMicro(),
	}, now)
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
