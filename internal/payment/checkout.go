package payment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// firstRead is how long after its making a checkout is read for the first
// time, in case its event got lost.
const firstRead = 2 * time.Minute

// ParseAmount reads the amount of a top-up as the client wrote it, a decimal
// of at most 2 places. The fault is ErrAmount.
func ParseAmount(text string) (money.USD, error) {
	amount, err := money.Parse(text)
	if err != nil {
		return 0, ErrAmount.Because(err)
	}
	if amount < MinTopUp || amount > MaxTopUp {
		return 0, ErrAmount
	}
	if amount%money.Cent != 0 {
		return 0, ErrAmount.With("Please enter an amount with at most 2 decimals.")
	}
	return amount, nil
}

const sqlInsertTopUp = `
insert into topup (id, team_id, user_id, amount_usd_micro, processor, status, created_at, opened_at, read_at)
values (@id, @team, @user, @amount, @processor, 'open', @now, @wall, @read)`

const sqlSetSession = `update topup set session_id = coalesce(session_id, $2) where id = $1 returning session_id`

// sqlSetBothSessions does so for a top-up whose card is saved: both orders have
// one id.
const sqlSetBothSessions = `
with card as (update card_setup set session_id = coalesce(session_id, $2) where id = $1)
update topup set session_id = coalesce(session_id, $2) where id = $1 returning session_id`

// A CreditRequest is what somebody wants to pay.
type CreditRequest struct {
	Amount   string // USD, as the client wrote it
	SaveCard bool   // the team keeps the card for automatic top-ups
}

// CheckoutCredit opens a checkout over an amount for the scope's team, and
// returns the address that the payer goes to. A request repeated under its
// Idempotency-Key gets the checkout of the first one. The scope needs the right
// team.Fund, and team.Manage where the card is to be saved. The faults are
// ErrAmount, ErrNotSetUp, ErrUnavailable, ErrOutdated and those of team.LockTx
// and idem.RunTx.
func (s *Service) CheckoutCredit(ctx context.Context, scope team.Scope, r CreditRequest, once idem.Request) (string, error) {
	if s.Processor == nil {
		return "", ErrNotSetUp
	}
	amount, err := ParseAmount(strings.TrimSpace(r.Amount))
	if err != nil {
		return "", err
	}
	if least := s.Processor.Minimum(); amount < least {
		return "", ErrAmount.With("The minimum payment is %s", least)
	}
	if r.SaveCard {
		if scope, err = scope.Require(team.Manage); err != nil {
			return "", err
		}
	}
	o := Order{
		TeamID: scope.TeamID(), Email: scope.Email(), Amount: amount, SaveCard: r.SaveCard,
		SuccessURL: s.PublicURL + "/billing?checkout=success", CancelURL: s.PublicURL + "/billing?checkout=cancel",
	}
	wall := s.Clock.Wall()
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := team.LockTx(ctx, tx, scope); err != nil {
			return err
		}
		var err error
		o.ID, err = idem.RunTx(ctx, tx, once, func() (uuid.UUID, error) {
			order := id.New()
			_, err := tx.Exec(ctx, sqlInsertTopUp, pgx.NamedArgs{
				"id": order, "team": o.TeamID, "user": scope.UserID(), "amount": amount, "processor": s.Processor.Source(),
				"now": s.Clock.Now(), "wall": wall, "read": wall.Add(firstRead),
			})
			if err == nil && o.SaveCard {
				err = s.orderCard(ctx, tx, order, scope)
			}
			return order, err
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("order a top-up for team %s: %w", o.TeamID, err)
	}
	record := sqlSetSession
	if o.SaveCard {
		record = sqlSetBothSessions
	}
	return s.open(ctx, o.ID, record, func() (Session, error) {
		return s.asCustomer(ctx, Customer{TeamID: o.TeamID, Email: o.Email}, func(customer string) (Session, error) {
			o.CustomerID = customer
			return s.Processor.CreateTopUp(ctx, o)
		})
	})
}

// open asks the processor for the checkout of an order that is committed, and
// records it with a statement, which tells the one that is recorded. Nobody is
// sent to any other: what is paid there would be refused.
func (s *Service) open(ctx context.Context, order uuid.UUID, record string, create func() (Session, error)) (string, error) {
	fail.Point("payment.checkout.committed")
	session, err := create()
	if fault.Of(err) != nil {
		return "", err
	}
	if err != nil {
		return "", ErrUnavailable.Because(fmt.Errorf("open the checkout of order %s: %w", order, err))
	}
	var recorded string
	if err := s.Pool.QueryRow(ctx, record, order, session.ID).Scan(&recorded); err != nil {
		return "", fmt.Errorf("record the checkout of order %s: %w", order, err)
	}
	if recorded != session.ID {
		return "", ErrOutdated
	}
	return session.URL, nil
}
