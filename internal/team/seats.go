package team

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
)

// ErrSeatsTaken occurs when fewer seats are asked for than members and pending
// invitations take.
var ErrSeatsTaken = fault.New(fault.Conflict, "seats_taken", "More seats are taken than that.")

const sqlCountTaken = `
select (select count(*) from membership where team_id = $1)
  + (select count(*) from invitation where team_id = $1 and state = 'pending' and expires_at > $2)`

const sqlLowerSeats = `update team set max_members = $2 where id = $1 and max_members > $2`

// AskSeatsTx checks, under the team's lock, that what is taken fits into a
// number of seats (server rule 22). Fewer than now count at once, so that nobody
// is invited into a seat that is being given back; more count when they are
// paid. The fault is ErrSeatsTaken.
func (s *Service) AskSeatsTx(ctx context.Context, tx pgx.Tx, scope Scope, seats int, now time.Time) error {
	var taken int
	if err := tx.QueryRow(ctx, sqlCountTaken, scope.team, now).Scan(&taken); err != nil {
		return fmt.Errorf("count what is taken in team %s: %w", scope.team, err)
	}
	if taken > seats {
		return ErrSeatsTaken.With("%d seats are taken by members and pending invitations. Remove some first.", taken)
	}
	if _, err := tx.Exec(ctx, sqlLowerSeats, scope.team, seats); err != nil {
		return fmt.Errorf("lower the seats of team %s: %w", scope.team, err)
	}
	return record(ctx, tx, scope, "team.seats", scope.team, map[string]any{"seats": seats}, now)
}

// Taken is how many seats the members and pending invitations of the scope's
// team take.
func (s *Service) Taken(ctx context.Context, scope Scope, now time.Time) (int, error) {
	var taken int
	if err := s.Pool.QueryRow(ctx, sqlCountTaken, scope.team, now).Scan(&taken); err != nil {
		return 0, fmt.Errorf("count what is taken in team %s: %w", scope.team, err)
	}
	return taken, nil
}

// EndingTx notes that a team's subscription is to end with its period.
func (s *Service) EndingTx(ctx context.Context, tx pgx.Tx, scope Scope, now time.Time) error {
	return record(ctx, tx, scope, "team.subscription_end", scope.team, nil, now)
}

// ResumedTx notes that a team's subscription is not to end after all.
func (s *Service) ResumedTx(ctx context.Context, tx pgx.Tx, scope Scope, now time.Time) error {
	return record(ctx, tx, scope, "team.subscription_resume", scope.team, nil, now)
}

const sqlSetPaidSeats = `
update team set max_members = $2 where id = $1 and plan = 'pro' and state = 'active' and max_members is distinct from $2`

// PaidSeatsTx makes a Pro team's seats those of its subscription, as the
// processor says. The team is locked.
func (s *Service) PaidSeatsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, seats int) error {
	if _, err := tx.Exec(ctx, sqlSetPaidSeats, teamID, seats); err != nil {
		return fmt.Errorf("set the seats of team %s: %w", teamID, err)
	}
	return nil
}

// LockRowTx locks a team's row until the transaction ends, for background work
// that has no scope.
func LockRowTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	if _, err := tx.Exec(ctx, sqlLockTeam, teamID); err != nil {
		return fmt.Errorf("lock team %s: %w", teamID, err)
	}
	return nil
}

// Find returns the scope's team as its person sees it.
func (s *Service) Find(ctx context.Context, scope Scope) (Team, error) {
	return findTeam(ctx, s.Pool, scope)
}
