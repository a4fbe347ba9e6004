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

// Faults of changing members.
var (
	// ErrMemberNotFound occurs when the user is not in the team.
	ErrMemberNotFound = fault.New(fault.NotFound, "member_not_found", "There is no such member.")
	// ErrPersonalMember occurs when somebody is to leave a personal team.
	ErrPersonalMember = fault.New(fault.Conflict, "member_personal", "Cannot remove member from personal team")
	// ErrLastMember occurs when the only member is to leave.
	ErrLastMember = fault.New(fault.Conflict, "member_last", "Cannot remove the last team member")
	// ErrAdminSelf occurs when an admin is to leave by themselves.
	ErrAdminSelf = fault.New(fault.Conflict, "member_admin_self", "Admins cannot remove themselves")
	// ErrLastAdmin occurs when the only admin is to become something else.
	ErrLastAdmin = fault.New(fault.Conflict, "member_last_admin", "The last admin of a team stays admin.")
	// ErrRole occurs when a role is none.
	ErrRole = fault.New(fault.Invalid, "member_role", "The role must be admin, member or viewer.")
)

const sqlFindRole = `select role from membership where team_id = $1 and user_id = $2`

const sqlCountMembers = `
select count(*) as members, count(*) filter (where role = 'admin') as admins
from membership where team_id = $1`

const sqlDeleteMembership = `delete from membership where team_id = $1 and user_id = $2`

// RemoveMember takes a user out of the team: an admin anybody else, and
// everybody but an admin themselves. Their pods stay, their keys go (OnLeave).
// The faults are ErrMemberNotFound, ErrPersonalMember, ErrLastMember,
// ErrAdminSelf and those of Authorize.
func (s *Service) RemoveMember(ctx context.Context, scope Scope, userID uuid.UUID) error {
	return s.change(ctx, scope, Read, func(tx pgx.Tx, scope Scope, now time.Time) error {
		role, counts, err := findMember(ctx, tx, scope, userID)
		if err != nil {
			return err
		}
		self := userID == scope.UserID()
		switch {
		case scope.personal:
			return ErrPersonalMember
		case counts.Members <= 1:
			return ErrLastMember
		case self && role == Admin:
			return ErrAdminSelf
		case !self && !scope.IsAdmin():
			return ErrForbidden
		}
		if _, err := tx.Exec(ctx, sqlDeleteMembership, scope.team, userID); err != nil {
			return fmt.Errorf("remove user %s from team %s: %w", userID, scope.team, err)
		}
		if s.Hooks.OnLeave != nil {
			if err := s.Hooks.OnLeave(ctx, tx, scope.team, userID, now); err != nil {
				return err
			}
		}
		return record(ctx, tx, scope, "member.remove", userID, nil, now)
	})
}

const sqlSetRole = `update membership set role = $3 where team_id = $1 and user_id = $2`

// SetRole gives a member another role and returns them. An admin does it. The
// faults are ErrRole, ErrRolesUnpaid, ErrMemberNotFound, ErrLastAdmin and those
// of Authorize.
func (s *Service) SetRole(ctx context.Context, scope Scope, userID uuid.UUID, role Role) (Membership, error) {
	if !role.allows(Read) {
		return Membership{}, ErrRole
	}
	var changed Membership
	err := s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		if err := s.setRoleTx(ctx, tx, scope, userID, role, now); err != nil {
			return err
		}
		var err error
		changed, err = s.memberTx(ctx, tx, scope.team, userID)
		return err
	})
	return changed, err
}

func (s *Service) setRoleTx(ctx context.Context, tx pgx.Tx, scope Scope, userID uuid.UUID, role Role, now time.Time) error {
	if scope.plan == Hobby && !scope.personal {
		return ErrRolesUnpaid
	}
	before, counts, err := findMember(ctx, tx, scope, userID)
	if err != nil {
		return err
	}
	if before == role {
		return nil
	}
	if before == Admin && counts.Admins <= 1 {
		return ErrLastAdmin
	}
	if _, err := tx.Exec(ctx, sqlSetRole, scope.team, userID, role); err != nil {
		return fmt.Errorf("change the role of user %s in team %s: %w", userID, scope.team, err)
	}
	if before == Admin && s.Hooks.OnDemote != nil {
		if err := s.Hooks.OnDemote(ctx, tx, scope.team, userID); err != nil {
			return err
		}
	}
	return record(ctx, tx, scope, "member.role", userID, map[string]any{"from": before, "to": role}, now)
}

const sqlFindMember = `
select id, user_id, role, '' as email from membership where team_id = $1 and user_id = $2`

// memberTx reads one member, with their address.
func (s *Service) memberTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) (Membership, error) {
	rows, err := tx.Query(ctx, sqlFindMember, teamID, userID)
	if err != nil {
		return Membership{}, fmt.Errorf("find user %s in team %s: %w", userID, teamID, err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Membership])
	if err != nil {
		return Membership{}, fmt.Errorf("find user %s in team %s: %w", userID, teamID, err)
	}
	one := []Membership{m}
	err = s.addEmails(ctx, tx, one)
	return one[0], err
}

type memberCounts struct{ Members, Admins int }

// findMember reads a member's role and the team's numbers. The team is locked.
func findMember(ctx context.Context, tx pgx.Tx, scope Scope, userID uuid.UUID) (Role, memberCounts, error) {
	var role Role
	var n memberCounts
	err := tx.QueryRow(ctx, sqlFindRole, scope.team, userID).Scan(&role)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", n, ErrMemberNotFound
	}
	if err != nil {
		return "", n, fmt.Errorf("find user %s in team %s: %w", userID, scope.team, err)
	}
	if err := tx.QueryRow(ctx, sqlCountMembers, scope.team).Scan(&n.Members, &n.Admins); err != nil {
		return "", n, fmt.Errorf("count the members of team %s: %w", scope.team, err)
	}
	return role, n, nil
}

// change runs a write for a team under its lock, with a scope of that instant.
func (s *Service) change(ctx context.Context, scope Scope, need Right, do func(tx pgx.Tx, scope Scope, now time.Time) error) error {
	scope, err := scope.Require(need)
	if err != nil {
		return err
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		return do(tx, scope, s.Clock.Now())
	})
}

func record(ctx context.Context, tx pgx.Tx, scope Scope, action string, object uuid.UUID, detail map[string]any, now time.Time) error {
	return audit.RecordTx(ctx, tx, audit.Entry{
		At: now, TeamID: scope.team, ActorID: scope.UserID(), Action: action, ObjectID: object, Detail: detail,
	})
}
