package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

// A Debit is money that goes out again: refunded to a card, or disputed.
type Debit struct {
	TeamID      uuid.UUID
	Amount      money.USD // above zero
	To          Source    // where it goes
	ReferenceID string    // the case's id
	Key         string    // idempotency: one key is posted once, for ever
	Description string
	At          time.Time // business time
}

// DebitTx takes money out of a wallet at once and says whether it did: a key
// that was posted before changes nothing. What was used up to that instant is
// paid before; what the wallet cannot cover the team owes, and pods do not run
// on debt: their meters end at that instant.
func (s *Service) DebitTx(ctx context.Context, tx pgx.Tx, d Debit) (bool, error) {
	to, ok := d.To.clearing()
	if !ok || d.Amount <= 0 || d.Key == "" {
		return false, fmt.Errorf("debit team %s: receiver %q, amount %d and key %q must be set", d.TeamID, d.To, d.Amount, d.Key)
	}
	b, err := s.lock(ctx, tx, d.TeamID)
	if err != nil {
		return false, err
	}
	switch posted, err := s.debited(ctx, tx, d); {
	case err != nil:
		return false, err
	case posted:
		return false, nil
	}
	now := max(d.At.UnixMicro(), b.wallet.SettledUS)
	if err := b.roll(now); err != nil {
		return false, err
	}
	if err := b.settle(now); err != nil {
		return false, err
	}
	b.take(posting{
		Debit: b.wallet.ReceivableID, Credit: to, Amount: d.Amount, Code: debit, Key: d.Key,
		Reference: d.ReferenceID, Description: d.Description, AtUS: d.At.UnixMicro(),
	}, now)
	if err := b.roll(now); err != nil {
		return false, err
	}
	return true, s.save(ctx, tx, b)
}

// take books money that goes out, in a book that is settled to now: the team
// owes it, and pays what it can of it.
func (b *book) take(p posting, now int64) {
	w := &b.wallet
	b.postings = append(b.postings, p)
	w.Receivable += p.Amount
	if pay := min(w.Balance, w.Receivable); pay > 0 {
		b.postings = append(b.postings, posting{
			Debit: w.AccountID, Credit: w.ReceivableID, Amount: pay, Code: repayment, Key: "repay:" + p.Key, AtUS: p.AtUS,
		})
		w.Balance -= pay
		w.Receivable -= pay
	}
	b.refresh(now)
}

// debited says whether the debit was posted before. Under the wallet's lock.
func (s *Service) debited(ctx context.Context, tx pgx.Tx, d Debit) (bool, error) {
	rows, err := tx.Query(ctx, sqlFindPosted, d.Key)
	if err != nil {
		return false, fmt.Errorf("find debit %q of team %s: %w", d.Key, d.TeamID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[postedRow])
	if err != nil {
		return false, fmt.Errorf("find debit %q of team %s: %w", d.Key, d.TeamID, err)
	}
	want := postedRow{TeamID: d.TeamID, Code: debit, Amount: d.Amount, Reference: d.ReferenceID}
	if len(found) > 0 && found[0] != want {
		return false, fmt.Errorf("debit team %s: key %q was posted with other values before", d.TeamID, d.Key)
	}
	return len(found) > 0, nil
}

const sqlLockWallet = `select team_id from wallet where team_id = $1 for update`

// sqlFindHolder finds what was given back of a payment when its team was deleted:
// the two halves of that have one key (Closing.postings). It goes to the wallets
// of people, which are never closed.
const sqlFindHolder = `
select i.team_id from transfer o join transfer i on i.key = o.key || ':in'
where o.team_id = $1 and o.code = 'debit' and o.reference_id = $2 and o.key like 'return:%'
order by i.id desc limit 1`

// HolderTx tells whose wallet a payment's money is in: that of the team that it
// was paid for, or, once that team is deleted, of who got it back. It locks the
// wallet of the first.
func (s *Service) HolderTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, paymentID string) (uuid.UUID, error) {
	if _, err := tx.Exec(ctx, sqlLockWallet, teamID); err != nil {
		return uuid.Nil, fmt.Errorf("lock wallet of team %s: %w", teamID, err)
	}
	holder := teamID
	err := tx.QueryRow(ctx, sqlFindHolder, teamID, paymentID).Scan(&holder)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, fmt.Errorf("find who holds payment %s: %w", paymentID, err)
	}
	return holder, nil
}
