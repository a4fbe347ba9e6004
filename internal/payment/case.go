package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// A Case is a refund or a dispute of a payment, as it stands at a processor.
type Case struct {
	ID        string
	Kind      CaseKind
	PaymentID string
	Amount    money.USD // with the tax
	Currency  string    // lower case
	State     CaseState
}

// A CaseKind says why money goes back.
type CaseKind string

// The kinds.
const (
	Refund  CaseKind = "refund"
	Dispute CaseKind = "dispute"
)

// A CaseState is where the money of a case is.
type CaseState string

// The states. A case only ever goes on to a later one.
const (
	Untouched CaseState = ""         // a bank asks; nothing was moved
	Taken     CaseState = "taken"    // it left; of a dispute: and that is open
	Lost      CaseState = "lost"     // a dispute was lost: it will not come back
	Returned  CaseState = "returned" // a refund failed, a dispute was won
)

// after says whether a state is news for a case that was in another.
func (s CaseState) after(known CaseState) bool {
	order := map[CaseState]int{Untouched: 0, Taken: 1, Lost: 2, Returned: 3}
	return order[s] > order[known]
}

// RefundOf reads what we need of a refund in Stripe's format.
func RefundOf(r *stripe.Refund) Case {
	c := Case{ID: r.ID, Kind: Refund, Amount: money.USD(r.Amount) * money.Cent, Currency: string(r.Currency), State: Taken}
	if r.PaymentIntent != nil {
		c.PaymentID = r.PaymentIntent.ID
	}
	if r.Status == stripe.RefundStatusFailed || r.Status == stripe.RefundStatusCanceled {
		c.State = Returned
	}
	return c
}

// DisputeOf reads what we need of a dispute in Stripe's format. The warnings
// are a bank's questions: no money moves.
func DisputeOf(d *stripe.Dispute) Case {
	c := Case{ID: d.ID, Kind: Dispute, Amount: money.USD(d.Amount) * money.Cent, Currency: string(d.Currency)}
	if d.PaymentIntent != nil {
		c.PaymentID = d.PaymentIntent.ID
	}
	switch d.Status {
	case stripe.DisputeStatusWon, stripe.DisputeStatusPrevented:
		c.State = Returned
	case stripe.DisputeStatusLost:
		c.State = Lost
	case stripe.DisputeStatusNeedsResponse, stripe.DisputeStatusUnderReview:
		c.State = Taken
	default: // a warning
	}
	return c
}

// A payment's credit and its cases wait for each other: whichever comes second
// sees the first.
const sqlLockPayment = `select pg_advisory_xact_lock(hashtextextended('payment:' || $1, 0))`

const sqlInsertCase = `
insert into payment_case (id, processor, kind, payment_id, amount_usd_micro, state, created_at, updated_at)
values (@id, @processor, @kind, @payment, @amount, @state, @now, @now)
on conflict (id) do nothing`

const sqlLockCase = `
select id, kind, payment_id, amount_usd_micro, state, team_id, coalesce(debit_usd_micro, 0) as debit_usd_micro
from payment_case where id = $1 for update`

const sqlMoveCase = `update payment_case set state = $2, updated_at = $3 where id = $1`

const sqlDebitCase = `update payment_case set team_id = $2, debit_usd_micro = $3 where id = $1`

// A caseRow is a row of table payment_case. It is locked after its payment.
type caseRow struct {
	ID        string     `db:"id"`
	Kind      CaseKind   `db:"kind"`
	PaymentID string     `db:"payment_id"`
	Amount    money.USD  `db:"amount_usd_micro"`
	State     CaseState  `db:"state"`
	TeamID    *uuid.UUID `db:"team_id"` // nil: nothing was debited
	Debit     money.USD  `db:"debit_usd_micro"`
}

// applyCase does what the state of a refund or a dispute asks for, whichever
// way it was learnt.
func (s *Service) applyCase(ctx context.Context, tx pgx.Tx, c Case) (outcome string, err error) {
	if c.ID == "" || c.PaymentID == "" || c.State == Untouched {
		return ignored, nil
	}
	if c.Amount <= 0 || c.Currency != "usd" {
		return refused, nil
	}
	if err := lockPayment(ctx, tx, c.PaymentID); err != nil {
		return "", err
	}
	now := s.Clock.Now()
	made, err := tx.Exec(ctx, sqlInsertCase, pgx.NamedArgs{
		"id": c.ID, "processor": s.Processor.Source(), "kind": c.Kind, "payment": c.PaymentID, "amount": c.Amount,
		"state": c.State, "now": now,
	})
	if err != nil {
		return "", fmt.Errorf("record case %s: %w", c.ID, err)
	}
	row, err := lockCase(ctx, tx, c.ID)
	switch {
	case err != nil:
		return "", err
	case row.PaymentID != c.PaymentID || row.Kind != c.Kind || row.Amount != c.Amount:
		return refused, nil
	case made.RowsAffected() == 0 && !c.State.after(row.State):
		return repeated, nil
	}
	row.State = c.State
	if _, err := tx.Exec(ctx, sqlMoveCase, row.ID, row.State, now); err != nil {
		return "", fmt.Errorf("move case %s: %w", row.ID, err)
	}
	return s.settleCase(ctx, tx, row, now)
}

func lockPayment(ctx context.Context, tx pgx.Tx, paymentID string) error {
	if _, err := tx.Exec(ctx, sqlLockPayment, paymentID); err != nil {
		return fmt.Errorf("lock payment %s: %w", paymentID, err)
	}
	return nil
}

func lockCase(ctx context.Context, tx pgx.Tx, caseID string) (*caseRow, error) {
	rows, err := tx.Query(ctx, sqlLockCase, caseID)
	if err != nil {
		return nil, fmt.Errorf("lock case %s: %w", caseID, err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[caseRow])
	if err != nil {
		return nil, fmt.Errorf("lock case %s: %w", caseID, err)
	}
	return &row, nil
}

const sqlFindPaid = `
select team_id, amount_usd_micro, coalesce(charged_usd_micro, amount_usd_micro) as charged_usd_micro
from topup where payment_id = $1 and processor = $2 and status = 'paid'`

// A paidRow is the top-up that a case is about.
type paidRow struct {
	TeamID  uuid.UUID `db:"team_id"`
	Amount  money.USD `db:"amount_usd_micro"`
	Charged money.USD `db:"charged_usd_micro"`
}

// share is the part of an amount that was credited: the tax never was.
func (p paidRow) share(amount money.USD) money.USD {
	return (amount / money.Cent) * (p.Amount / money.Cent) / (p.Charged / money.Cent) * money.Cent
}

// settleCase makes the wallet agree with a case whose payment is locked. A case
// of a payment that is not credited waits for it.
func (s *Service) settleCase(ctx context.Context, tx pgx.Tx, row *caseRow, now time.Time) (string, error) {
	if row.TeamID == nil && row.State != Returned {
		if err := s.debitCase(ctx, tx, row, now); err != nil {
			return "", err
		}
	}
	if row.TeamID == nil {
		return waiting, nil
	}
	hold := wallet.Hold{TeamID: *row.TeamID, ReferenceID: row.ID}
	switch {
	case row.Kind == Dispute && row.State == Taken:
		return debited, s.Wallet.HoldTx(ctx, tx, hold, now)
	case row.State != Returned:
		return debited, s.Wallet.LiftTx(ctx, tx, hold)
	}
	if row.Debit > 0 {
		if err := s.returnCase(ctx, tx, row, now); err != nil {
			return "", err
		}
	}
	return returned, s.Wallet.LiftTx(ctx, tx, hold)
}

const sqlSumDebits = `
select coalesce(sum(amount_usd_micro), 0)::bigint, coalesce(sum(debit_usd_micro), 0)::bigint from payment_case
where payment_id = $1 and processor = $2 and team_id is not null and state <> 'returned'`

// debitOf is what a case takes of a wallet: with what the payment's others took,
// the share of them all, so that parts add up to the cent. The payment is locked.
func (s *Service) debitOf(ctx context.Context, tx pgx.Tx, paid paidRow, row *caseRow) (money.USD, error) {
	var amount, debit money.USD
	if err := tx.QueryRow(ctx, sqlSumDebits, row.PaymentID, s.Processor.Source()).Scan(&amount, &debit); err != nil {
		return 0, fmt.Errorf("sum what was taken of payment %s: %w", row.PaymentID, err)
	}
	return max(0, paid.share(amount+row.Amount)-debit), nil
}

// debitCase takes the money of a case from the wallet that the payment is in,
// once there is one.
func (s *Service) debitCase(ctx context.Context, tx pgx.Tx, row *caseRow, now time.Time) error {
	rows, err := tx.Query(ctx, sqlFindPaid, row.PaymentID, s.Processor.Source())
	if err != nil {
		return fmt.Errorf("find payment %s: %w", row.PaymentID, err)
	}
	paid, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[paidRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find payment %s: %w", row.PaymentID, err)
	}
	holder, err := s.Wallet.HolderTx(ctx, tx, paid.TeamID, row.PaymentID)
	if err != nil {
		return err
	}
	if row.Debit, err = s.debitOf(ctx, tx, paid, row); err != nil {
		return err
	}
	row.TeamID = &holder
	if _, err := tx.Exec(ctx, sqlDebitCase, row.ID, holder, row.Debit); err != nil {
		return fmt.Errorf("debit case %s: %w", row.ID, err)
	}
	if row.Debit == 0 {
		return nil
	}
	_, err = s.Wallet.DebitTx(ctx, tx, wallet.Debit{
		TeamID: holder, Amount: row.Debit, To: s.receiver(row.Kind), ReferenceID: row.ID, Key: row.key(),
		Description: row.describe(), At: now,
	})
	return err
}

// returnCase gives back what was taken for a case.
func (s *Service) returnCase(ctx context.Context, tx pgx.Tx, row *caseRow, now time.Time) error {
	_, err := s.Wallet.CreditTx(ctx, tx, wallet.Credit{
		TeamID: *row.TeamID, Amount: row.Debit, Source: s.receiver(row.Kind), ReferenceID: row.ID, Key: row.key() + returnedKey,
		Description: row.describe(), At: now,
	})
	return err
}

// receiver is where the money of a case is while it is gone.
func (s *Service) receiver(kind CaseKind) wallet.Source {
	if kind == Dispute {
		return wallet.Disputed
	}
	return s.Processor.Source()
}

// key is the ledger's key of the case's debit.
func (c *caseRow) key() string { return caseKey(c.Kind, c.ID) }

// describe is what the history says of a case.
func (c *caseRow) describe() string {
	switch {
	case c.Kind == Dispute && c.State == Returned:
		return "Dispute won: the payment counts again"
	case c.Kind == Dispute:
		return "Payment disputed by the card's owner"
	case c.State == Returned:
		return "Refund failed: the payment counts again"
	}
	return "Refunded to the card"
}

const sqlListWaiting = `
select id from payment_case where payment_id = $1 and processor = $2 and team_id is null and state <> 'returned' order by id`

// settleWaiting takes the money of cases that were heard of before their
// payment was credited.
func (s *Service) settleWaiting(ctx context.Context, tx pgx.Tx, paymentID string, now time.Time) error {
	rows, err := tx.Query(ctx, sqlListWaiting, paymentID, s.Processor.Source())
	if err != nil {
		return fmt.Errorf("list the cases of payment %s: %w", paymentID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list the cases of payment %s: %w", paymentID, err)
	}
	for _, caseID := range found {
		row, err := lockCase(ctx, tx, caseID)
		if err != nil {
			return err
		}
		if _, err := s.settleCase(ctx, tx, row, now); err != nil {
			return err
		}
	}
	return nil
}

const sqlSumTaken = `
select payment_id, sum(debit_usd_micro)::bigint as debit_usd_micro from payment_case
where payment_id = any($1) and state <> 'returned' and debit_usd_micro > 0 group by payment_id`

// TakenTx tells what refunds and disputes took of payments, by the payment's
// id. Those of which nothing was taken are left out.
func (s *Service) TakenTx(ctx context.Context, tx pgx.Tx, payments []string) (map[string]money.USD, error) {
	rows, err := tx.Query(ctx, sqlSumTaken, payments)
	if err != nil {
		return nil, fmt.Errorf("sum what was taken: %w", err)
	}
	taken := map[string]money.USD{}
	var payment string
	var amount money.USD
	_, err = pgx.ForEachRow(rows, []any{&payment, &amount}, func() error {
		taken[payment] = amount
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sum what was taken: %w", err)
	}
	return taken, nil
}
