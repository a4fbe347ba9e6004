package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// A Plan is what a team pays each month, as the processor said last.
type Plan struct {
	Status    string     `db:"status"` // Stripe's word
	Seats     int        `db:"seats"`
	SeatPrice money.USD  `db:"seat_usd_micro"`        // per month
	EndAt     *time.Time `db:"period_end_at"`         // of the month that is paid for; nil until it was read
	Ends      bool       `db:"cancels_at_period_end"` // no month follows
	// Taken is how many seats members and pending invitations take.
	Taken int `db:"-"`
}

const sqlFindPlan = `
select status, seats, seat_usd_micro, period_end_at, cancels_at_period_end from subscription
where team_id = $1 and status in ('trialing', 'active', 'past_due', 'unpaid')`

// FindPlan finds what the scope's team pays for. The fault is ErrNoSubscription.
func (s *Service) FindPlan(ctx context.Context, scope team.Scope) (Plan, error) {
	rows, err := s.Pool.Query(ctx, sqlFindPlan, scope.TeamID())
	if err != nil {
		return Plan{}, fmt.Errorf("find the plan of team %s: %w", scope.TeamID(), err)
	}
	plan, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Plan])
	if errors.Is(err, pgx.ErrNoRows) {
		return Plan{}, ErrNoSubscription
	}
	if err != nil {
		return Plan{}, fmt.Errorf("find the plan of team %s: %w", scope.TeamID(), err)
	}
	plan.Taken, err = s.Teams.Taken(ctx, scope, s.Clock.Now())
	return plan, err
}
