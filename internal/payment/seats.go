package payment

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// Faults of changing a subscription.
var (
	// ErrNoSubscription occurs for a team that pays no subscription, or whose
	// subscription has ended.
	ErrNoSubscription = fault.New(fault.Conflict, "no_subscription", "This team has no subscription.")
	// ErrSeatsUnpaid occurs when the payment for more seats was declined.
	ErrSeatsUnpaid = fault.New(fault.PaymentRequired, "seats_unpaid", "The payment for the new seats was declined. Nothing was changed.")
)

// A SeatChange is a number of seats that a processor is asked to bill.
type SeatChange struct {
	ID             uuid.UUID // the idempotency key
	SubscriptionID string
	Seats          int
}

const sqlFindSubscription = `
select id, processor, seats from subscription
where team_id = $1 and status in ('trialing', 'active', 'past_due', 'unpaid')`

// A subscribed is what a team pays for.
type subscribed struct {
	ID        string        `db:"id"`
	Processor wallet.Source `db:"processor"`
	Seats     int           `db:"seats"`
}

// subscription finds what a team pays for, under the team's lock. The faults
// are ErrNoSubscription and ErrNotSetUp.
func (s *Service) subscription(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (subscribed, error) {
	rows, err := tx.Query(ctx, sqlFindSubscription, teamID)
	if err != nil {
		return subscribed{}, fmt.Errorf("find the subscription of team %s: %w", teamID, err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[subscribed])
	if errors.Is(err, pgx.ErrNoRows) {
		return subscribed{}, ErrNoSubscription
	}
	if err != nil {
		return subscribed{}, fmt.Errorf("find the subscription of team %s: %w", teamID, err)
	}
	if s.Processor == nil || s.Processor.Source() != found.Processor {
		return subscribed{}, ErrNotSetUp
	}
	return found, nil
}

// sqlAwaitAnswer has a subscription read should the node that asks the
// processor die, and no reading count that was asked for before: it would tell
// what is about to change.
const sqlAwaitAnswer = `update subscription set answered = asked, read_at = $2, reads = 0 where id = $1`

// change finds an admin's subscription, does in one transaction what is ours to
// do, asks the processor, and reads what came of it.
func (s *Service) change(
	ctx context.Context, scope team.Scope, ours func(tx pgx.Tx, scope team.Scope) error, ask func(subscribed) error,
) error {
	scope, err := scope.Require(team.Manage)
	if err != nil {
		return err
	}
	var sub subscribed
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		if sub, err = s.subscription(ctx, tx, scope.TeamID()); err != nil {
			return err
		}
		if err := ours(tx, scope); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlAwaitAnswer, sub.ID, s.Clock.Wall().Add(firstRead)); err != nil {
			return fmt.Errorf("await the answer about subscription %s: %w", sub.ID, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	asked := ask(sub)
	// An answer that got lost may hide a change: it is read all the same.
	read := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := s.note(ctx, tx, sub.ID)
		return err
	})
	if read == nil {
		read = s.ReadSubscription(ctx, SubscriptionJob{ID: sub.ID})
	}
	switch {
	case fault.Of(asked) != nil:
		return asked
	case asked != nil || read != nil:
		return ErrUnavailable.Because(errors.Join(asked, read))
	}
	return nil
}

// SetSeats changes how many seats a team pays for; members is a whole number as
// the client wrote it. Fewer than are taken is refused; fewer cost less from the
// next month on, more are charged for the rest of this month at once, and are
// there when that is paid. The scope needs the right team.Manage. The faults are
// team.ErrSeatCount, team.ErrSeatsTaken, ErrNoSubscription, ErrSeatsUnpaid,
// ErrNotSetUp, ErrUnavailable and those of team.LockTx.
func (s *Service) SetSeats(ctx context.Context, scope team.Scope, members string) (team.Team, error) {
	seats, err := team.ParseSeats(members)
	if err != nil {
		return team.Team{}, err
	}
	err = s.change(ctx, scope, func(tx pgx.Tx, scope team.Scope) error {
		return s.Teams.AskSeatsTx(ctx, tx, scope, seats, s.Clock.Now())
	}, func(sub subscribed) error {
		return s.Processor.SetSeats(ctx, SeatChange{ID: id.New(), SubscriptionID: sub.ID, Seats: seats})
	})
	if err != nil {
		return team.Team{}, err
	}
	t, err := s.Teams.Find(ctx, scope)
	if err == nil && (t.MaxMembers == nil || *t.MaxMembers < seats) {
		err = ErrSeatsUnpaid
	}
	return t, err
}

// EndSubscription has a team's subscription end with the month that is paid for.
// The scope needs the right team.Manage. The faults are ErrNoSubscription,
// ErrNotSetUp, ErrUnavailable and those of team.LockTx.
func (s *Service) EndSubscription(ctx context.Context, scope team.Scope) error {
	return s.change(ctx, scope, func(tx pgx.Tx, scope team.Scope) error {
		return s.Teams.EndingTx(ctx, tx, scope, s.Clock.Now())
	}, func(sub subscribed) error {
		return s.Processor.EndSubscription(ctx, sub.ID)
	})
}

// ResumeSubscription has a subscription go on that was to end with its month.
// The scope needs the right team.Manage. The faults are ErrNoSubscription,
// ErrNotSetUp, ErrUnavailable and those of team.LockTx.
func (s *Service) ResumeSubscription(ctx context.Context, scope team.Scope) error {
	return s.change(ctx, scope, func(tx pgx.Tx, scope team.Scope) error {
		return s.Teams.ResumedTx(ctx, tx, scope, s.Clock.Now())
	}, func(sub subscribed) error {
		return s.Processor.ResumeSubscription(ctx, sub.ID)
	})
}
