package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// A Scope is the proven right of one person to act for one team. Only
// Authorize and Claim.Read make one; the zero Scope is of no team and finds nothing.
type Scope struct {
	team     uuid.UUID
	person   Person
	role     Role
	plan     Plan
	personal bool
	need     Right
}

// TeamID is the team acted for.
func (s Scope) TeamID() uuid.UUID { return s.team }

// UserID is the person who acts.
func (s Scope) UserID() uuid.UUID { return s.person.ID }

// Email is the person's address.
func (s Scope) Email() string { return s.person.Email }

// Role is the person's role when the scope was made or last locked.
func (s Scope) Role() Role { return s.role }

// Plan is the team's plan when the scope was made or last locked.
func (s Scope) Plan() Plan { return s.plan }

// IsPersonal says whether it is the person's own team.
func (s Scope) IsPersonal() bool { return s.personal }

// IsAdmin says whether the person is an admin of the team.
func (s Scope) IsAdmin() bool { return s.role == Admin }

// Require returns the scope for an act that needs a right: a method that writes
// asks for what it needs itself, whatever the edge asked for. The fault is
// ErrForbidden.
func (s Scope) Require(need Right) (Scope, error) {
	if !s.role.allows(need) {
		return Scope{}, ErrForbidden
	}
	s.need = need
	return s, nil
}

const sqlFindMembership = `
select m.role, t.plan, t.personal_of is not null as personal
from membership m join team t on t.id = m.team_id
where m.team_id = $1 and m.user_id = $2 and t.state = 'active'`

const sqlLockTeam = `select id from team where id = $1 for update`

// Authorize proves that a person may act for a team. The faults are ErrNotFound
// for a team that is unknown, not active or not theirs, and ErrForbidden for a
// role without the right.
func (s *Service) Authorize(ctx context.Context, p Person, teamID uuid.UUID, need Right) (Scope, error) {
	return authorize(ctx, s.Pool, p, teamID, need)
}

func authorize(ctx context.Context, q pg.Querier, p Person, teamID uuid.UUID, need Right) (Scope, error) {
	rows, err := q.Query(ctx, sqlFindMembership, teamID, p.ID)
	if err != nil {
		return Scope{}, fmt.Errorf("authorize for team %s: %w", teamID, err)
	}
	return ClaimOf(p, teamID, need).prove(rows)
}

// LockTx locks the team's row until the transaction ends and proves the scope
// once more within it, with the role and plan of now. The faults are those of
// Authorize. It is the first lock of every write for a team.
func LockTx(ctx context.Context, tx pgx.Tx, s Scope) (Scope, error) {
	if _, err := tx.Exec(ctx, sqlLockTeam, s.team); err != nil {
		return Scope{}, fmt.Errorf("lock team %s: %w", s.team, err)
	}
	return authorize(ctx, tx, s.person, s.team, s.need)
}

const sqlLockActive = `select plan from team where id = $1 and state = 'active' for update`

// LockPlanTx locks the row of a team that is active, as LockTx does, and reads
// its plan: for background work. The fault is ErrNotFound.
func LockPlanTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (Plan, error) {
	var plan Plan
	err := tx.QueryRow(ctx, sqlLockActive, teamID).Scan(&plan)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("lock team %s: %w", teamID, err)
	}
	return plan, nil
}

const sqlFindPlan = `select plan from team where id = $1`

// PlanTx reads a team's plan, whatever its state: for background work. The
// fault is ErrNotFound.
func PlanTx(ctx context.Context, q pg.Querier, teamID uuid.UUID) (Plan, error) {
	var plan Plan
	err := q.QueryRow(ctx, sqlFindPlan, teamID).Scan(&plan)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read the plan of team %s: %w", teamID, err)
	}
	return plan, nil
}
