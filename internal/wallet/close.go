package wallet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
)

// ErrUnsettled refuses to close the wallet of a team that owes money, or whose
// payment is disputed.
var ErrUnsettled = fault.New(fault.Conflict, "wallet_unsettled", "Settle the balance first.")

// A Closing ends the wallet of a team that is being deleted.
type Closing struct {
	TeamID uuid.UUID
	Name   string // of the team, for the histories of those who get money back
	At     time.Time
	// Homes names, by the reference of a payment, the team whose wallet gets
	// back what is left of it.
	Homes func(ctx context.Context, tx pgx.Tx, payments []string) (map[string]uuid.UUID, error)
	// Taken tells, by the reference of a payment, what refunds and disputes took
	// of it already. nil: nothing.
	Taken func(ctx context.Context, tx pgx.Tx, payments []string) (map[string]money.USD, error)
	// Otherwise is the team whose wallet gets what Homes does not know.
	Otherwise uuid.UUID
}

// CloseTx settles a wallet to an instant and empties it: what is left of the
// newest payment first goes to the wallet of who paid it, through the account
// the payment came from, so that it is there as if it had been paid in there.
// Unspent promotional credit goes back to the house. Every meter has ended
// before. Closing again gives back what came since. The fault is ErrUnsettled.
func (s *Service) CloseTx(ctx context.Context, tx pgx.Tx, c Closing) error {
	b, err := s.lockAt(ctx, tx, c.TeamID, c.At)
	if err != nil {
		return err
	}
	switch held, err := isHeld(ctx, tx, c.TeamID); {
	case err != nil:
		return err
	case held:
		return ErrUnsettled.Because(ErrHeld)
	}
	now := c.At.UnixMicro()
	if err := b.settle(now); err != nil {
		return err
	}
	if b.wallet.Burn > 0 {
		return fmt.Errorf("close the wallet of team %s: something is still metered", c.TeamID)
	}
	if b.shown() < 0 {
		return ErrUnsettled
	}
	shares, err := s.shares(ctx, tx, c, b)
	if err != nil {
		return err
	}
	b.refresh(now)
	if err := s.save(ctx, tx, b); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlMarkClosed, c.TeamID, c.At); err != nil {
		return fmt.Errorf("close the wallet of team %s: %w", c.TeamID, err)
	}
	return s.giveBack(ctx, tx, shares, now)
}

const sqlMarkClosed = `update wallet set closed_at = coalesce(closed_at, $2) where team_id = $1`

// sqlListUnspent nets each payment with what left the wallet under its name
// before: refunds to the card, and what an earlier closing gave back.
const sqlListUnspent = `
with paid as (
  select coalesce(reference_id, '') as reference, max(id) filter (where code = 'credit') as last,
    sum(case code when 'credit' then amount_usd_micro else -amount_usd_micro end)::bigint as unspent_usd_micro
  from transfer where team_id = $1 and code in ('credit', 'debit')
  group by coalesce(reference_id, '')
)
select p.reference, p.unspent_usd_micro, c.debit_account_id as source_id
from paid p join transfer c on c.id = p.last
where p.unspent_usd_micro > 0
order by p.last desc`

// An unspentRow is a payment of which something may be left.
type unspentRow struct {
	Reference string    `db:"reference"`
	Unspent   money.USD `db:"unspent_usd_micro"`
	Source    uuid.UUID `db:"source_id"`
}

// shares takes everything out of a settled book, payment by payment, and
// returns what each receiving wallet gets.
func (s *Service) shares(ctx context.Context, tx pgx.Tx, c Closing, b *book) (map[uuid.UUID][]posting, error) {
	if b.wallet.Balance == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, sqlListUnspent, c.TeamID)
	if err != nil {
		return nil, fmt.Errorf("list the payments of team %s: %w", c.TeamID, err)
	}
	unspent, err := pgx.CollectRows(rows, pgx.RowToStructByName[unspentRow])
	if err != nil {
		return nil, fmt.Errorf("list the payments of team %s: %w", c.TeamID, err)
	}
	var payments []string
	for _, u := range unspent {
		payments = append(payments, u.Reference)
	}
	homes, err := c.Homes(ctx, tx, payments)
	if err != nil {
		return nil, err
	}
	var taken map[string]money.USD
	if c.Taken != nil {
		if taken, err = c.Taken(ctx, tx, payments); err != nil {
			return nil, err
		}
	}
	shares := map[uuid.UUID][]posting{}
	for _, u := range unspent {
		amount := min(u.Unspent-taken[u.Reference], b.wallet.Balance)
		if amount <= 0 {
			continue
		}
		out, in := c.postings(b, u, amount)
		b.postings = append(b.postings, out)
		b.wallet.Balance -= amount
		if u.Source == promoAccount {
			continue
		}
		home, known := homes[u.Reference]
		if !known {
			home = c.Otherwise
		}
		shares[home] = append(shares[home], in)
	}
	if b.wallet.Balance > 0 {
		return nil, fmt.Errorf("close the wallet of team %s: %d micro-dollars are left that nobody paid", c.TeamID, b.wallet.Balance)
	}
	return shares, nil
}

// postings are the two halves of giving something of a payment back.
func (c Closing) postings(b *book, u unspentRow, amount money.USD) (out, in posting) {
	key := fmt.Sprintf("return:%s:%s:%d", c.TeamID, u.Reference, u.Unspent)
	out = posting{
		Debit: b.wallet.AccountID, Credit: u.Source, Amount: amount, Code: debit, Key: key, Reference: u.Reference,
		Description: "Returned to who paid it: the team was deleted", AtUS: c.At.UnixMicro(),
	}
	in = posting{
		Debit: u.Source, Amount: amount, Code: credit, Key: key + ":in", Reference: u.Reference,
		Description: "Returned from team " + c.Name + ", which was deleted", AtUS: c.At.UnixMicro(),
	}
	return out, in
}

// giveBack credits the receiving wallets, in the order of their teams.
func (s *Service) giveBack(ctx context.Context, tx pgx.Tx, shares map[uuid.UUID][]posting, now int64) error {
	order := slices.SortedFunc(maps.Keys(shares), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, teamID := range order {
		b, err := s.lock(ctx, tx, teamID)
		if err != nil {
			return err
		}
		at := max(now, b.wallet.SettledUS)
		if err := b.roll(at); err != nil {
			return err
		}
		for _, p := range shares[teamID] {
			p.Credit = b.wallet.AccountID
			if err := b.receive(p, at); err != nil {
				return err
			}
		}
		if err := s.save(ctx, tx, b); err != nil {
			return err
		}
	}
	return nil
}

const sqlListClosedWithMoney = `
select team_id from wallet where closed_at is not null and balance_usd_micro > 0 order by team_id limit 100`

// ClosedWithMoney lists the teams whose wallet got money after it was closed:
// a checkout that was open then was paid. CloseTx gives it back.
func (s *Service) ClosedWithMoney(ctx context.Context) ([]uuid.UUID, error) {
	rows, err := s.Pool.Query(ctx, sqlListClosedWithMoney)
	if err != nil {
		return nil, fmt.Errorf("list closed wallets: %w", err)
	}
	teams, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list closed wallets: %w", err)
	}
	return teams, nil
}
