package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
)

// How long a team keeps everything after a failed payment, and how long before
// the end of that it is told once more (server rule 25).
const (
	graceFor  = 7 * 24 * time.Hour
	graceWarn = 72 * time.Hour
)

// ErrRolesUnpaid occurs when roles are to be changed in a team whose
// subscription is not paid.
var ErrRolesUnpaid = fault.New(fault.Conflict, "roles_unpaid", "Roles cannot be changed until the subscription of this team is paid.")

// A Dun is what a team is told of its unpaid subscription, once each.
type Dun struct {
	TeamID uuid.UUID
	Last   bool // the second and last time: 72 h before the end
	At     time.Time
	Until  time.Time // when the grace ends
}

const sqlBeginGrace = `
update team set grace_until = $3
where id = $1 and subscription_id = $2 and state = 'active' and plan = 'pro' and grace_until is null`

// UnpaidTx notes that a payment of a team's subscription failed: from the first
// one that did, the team has seven days with everything. The team is locked.
func (s *Service) UnpaidTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, subscriptionID string, failedAt time.Time) error {
	until := failedAt.Add(graceFor)
	tag, err := tx.Exec(ctx, sqlBeginGrace, teamID, subscriptionID, until)
	if err != nil {
		return fmt.Errorf("begin the grace of team %s: %w", teamID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	if err := s.dun(ctx, tx, Dun{TeamID: teamID, At: failedAt, Until: until}); err != nil {
		return err
	}
	return recordOwn(ctx, tx, teamID, "team.unpaid", map[string]any{"grace_until": until}, failedAt)
}

func (s *Service) dun(ctx context.Context, tx pgx.Tx, d Dun) error {
	if s.Hooks.OnUnpaid == nil {
		return nil
	}
	return s.Hooks.OnUnpaid(ctx, tx, d)
}

const sqlEndGrace = `
update team set grace_until = null, grace_warned_at = null
where id = $1 and subscription_id = $2 and state = 'active' and grace_until is not null`

const sqlUpgrade = `
update team set plan = 'pro', max_members = $3
where id = $1 and subscription_id = $2 and state = 'active' and plan = 'hobby'`

const sqlRestoreRoles = `
update membership set role = role_before, role_before = null where team_id = $1 and role_before is not null`

// PaidTx notes that a team's subscription is paid: a grace is over, and a team
// that lost its plan has it back, with its seats and everybody's role. The team
// is locked.
func (s *Service) PaidTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, subscriptionID string, seats int, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlEndGrace, teamID, subscriptionID); err != nil {
		return fmt.Errorf("end the grace of team %s: %w", teamID, err)
	}
	tag, err := tx.Exec(ctx, sqlUpgrade, teamID, subscriptionID, seats)
	if err != nil {
		return fmt.Errorf("give team %s its plan back: %w", teamID, err)
	}
	if tag.RowsAffected() == 0 {
		return s.PaidSeatsTx(ctx, tx, teamID, seats)
	}
	if _, err := tx.Exec(ctx, sqlRestoreRoles, teamID); err != nil {
		return fmt.Errorf("give the roles of team %s back: %w", teamID, err)
	}
	return s.planned(ctx, tx, teamID, Pro, now)
}

const sqlDowngrade = `
update team set plan = 'hobby', max_members = null, grace_until = null, grace_warned_at = null
where id = $1 and subscription_id = $2 and state = 'active' and plan = 'pro'`

// sqlKeepOneAdmin leaves the subscriber, if an admin, or else the
// longest-standing admin what they are.
const sqlKeepOneAdmin = `
update membership set role_before = role, role = 'viewer'
where team_id = $1 and role <> 'viewer' and id <> (
  select m.id from membership m join team t on t.id = m.team_id
  where m.team_id = $1 and m.role = 'admin'
  order by (m.user_id = t.subscriber_id) is not true, m.created_at, m.id limit 1)`

// EndPlanTx takes a team's plan away, because its subscription ended or its
// grace is over: the rules of Hobby hold, pending invitations are cancelled, and
// all but one admin become viewers, who get their roles back by a payment. What
// the team owns stays. The team is locked; it is done once.
func (s *Service) EndPlanTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, subscriptionID string, at time.Time) error {
	tag, err := tx.Exec(ctx, sqlDowngrade, teamID, subscriptionID)
	if err != nil {
		return fmt.Errorf("take the plan of team %s away: %w", teamID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, sqlCancelInvitations, teamID, at); err != nil {
		return fmt.Errorf("cancel the invitations of team %s: %w", teamID, err)
	}
	if _, err := tx.Exec(ctx, sqlKeepOneAdmin, teamID); err != nil {
		return fmt.Errorf("make viewers of the members of team %s: %w", teamID, err)
	}
	return s.planned(ctx, tx, teamID, Hobby, at)
}

// planned tells those who follow a plan that it changed.
func (s *Service) planned(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan Plan, at time.Time) error {
	if s.Hooks.OnPlan != nil {
		if err := s.Hooks.OnPlan(ctx, tx, teamID, plan, at); err != nil {
			return fmt.Errorf("follow the plan of team %s: %w", teamID, err)
		}
	}
	return recordOwn(ctx, tx, teamID, "team.plan", map[string]any{"plan": plan}, at)
}

const sqlListGraces = `
select id, subscription_id from team
where state = 'active' and subscription_id is not null
  and (grace_until <= @now or grace_warned_at is null and grace_until <= @soon)
order by grace_until, id limit @most`

// A Grace is a team in its grace with something due.
type Grace struct {
	TeamID         uuid.UUID `db:"id"`
	SubscriptionID string    `db:"subscription_id"`
}

// DueGraces lists teams whose grace is over by now, or which are to be told
// that it soon is, the longest due first.
func (s *Service) DueGraces(ctx context.Context, now time.Time, most int) ([]Grace, error) {
	rows, err := s.Pool.Query(ctx, sqlListGraces, pgx.NamedArgs{"now": now, "soon": now.Add(graceWarn), "most": most})
	if err != nil {
		return nil, fmt.Errorf("list due graces: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByName[Grace])
	if err != nil {
		return nil, fmt.Errorf("list due graces: %w", err)
	}
	return due, nil
}

const sqlFindGrace = `
select grace_until, grace_warned_at is not null from team
where id = $1 and subscription_id = $2 and state = 'active' and grace_until is not null`

const sqlWarnGrace = `update team set grace_warned_at = $2 where id = $1`

// FollowGrace does what a team's grace asks for by now, each as of the instant
// at which it was due. What was paid since is not acted on.
func (s *Service) FollowGrace(ctx context.Context, g Grace, now time.Time) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := LockRowTx(ctx, tx, g.TeamID); err != nil {
			return err
		}
		var until time.Time
		var warned bool
		err := tx.QueryRow(ctx, sqlFindGrace, g.TeamID, g.SubscriptionID).Scan(&until, &warned)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find the grace of team %s: %w", g.TeamID, err)
		}
		until = until.UTC()
		if soon := until.Add(-graceWarn); !warned && !now.Before(soon) {
			if _, err := tx.Exec(ctx, sqlWarnGrace, g.TeamID, soon); err != nil {
				return fmt.Errorf("note the warning of team %s: %w", g.TeamID, err)
			}
			if err := s.dun(ctx, tx, Dun{TeamID: g.TeamID, Last: true, At: soon, Until: until}); err != nil {
				return err
			}
		}
		if now.Before(until) {
			return nil
		}
		return s.EndPlanTx(ctx, tx, g.TeamID, g.SubscriptionID, until)
	})
}

const sqlFindGraceUntil = `select grace_until from team where id = $1`

// GraceUntil is when the grace of the scope's team ends; nil: it is in none.
func (s *Service) GraceUntil(ctx context.Context, scope Scope) (*time.Time, error) {
	var until *time.Time
	if err := s.Pool.QueryRow(ctx, sqlFindGraceUntil, scope.team).Scan(&until); err != nil {
		return nil, fmt.Errorf("find the grace of team %s: %w", scope.team, err)
	}
	return until, nil
}

// recordOwn writes down what was done to a team without anybody asking.
func recordOwn(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, action string, detail map[string]any, at time.Time) error {
	return audit.RecordTx(ctx, tx, audit.Entry{At: at, TeamID: teamID, Action: action, ObjectID: teamID, Detail: detail})
}
