package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// An Ending is a team that is being deleted.
type Ending struct {
	TeamID   uuid.UUID
	Name     string
	By       uuid.UUID // who deletes it
	Personal uuid.UUID // their own team
	At       time.Time
}

const sqlCancelInvitations = `
update invitation set state = 'cancelled', closed_at = $2 where team_id = $1 and state = 'pending'`

const sqlDeleteTeam = `
update team set state = 'deleted', deleted_at = $2, deleted_by = $3, expires_at = null where id = $1
returning name`

// Delete ends a team: BlockDelete may refuse, then its invitations are revoked
// and OnDelete ends what it owned. An admin does it; a personal team stays. The
// faults are ErrPersonal, those of the hooks and those of Authorize.
func (s *Service) Delete(ctx context.Context, scope Scope) error {
	return s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		if scope.personal {
			return ErrPersonal
		}
		if s.Hooks.BlockDelete != nil {
			if err := s.Hooks.BlockDelete(ctx, tx, scope.team, now); err != nil {
				return err
			}
		}
		end := Ending{TeamID: scope.team, By: scope.UserID(), At: now}
		if _, err := tx.Exec(ctx, sqlCancelInvitations, end.TeamID, now); err != nil {
			return fmt.Errorf("revoke the invitations of team %s: %w", end.TeamID, err)
		}
		if err := tx.QueryRow(ctx, sqlDeleteTeam, end.TeamID, now, end.By).Scan(&end.Name); err != nil {
			return fmt.Errorf("delete team %s: %w", end.TeamID, err)
		}
		if err := record(ctx, tx, scope, "team.delete", end.TeamID, nil, now); err != nil || s.Hooks.OnDelete == nil {
			return err
		}
		var err error
		if end.Personal, err = s.PersonalTx(ctx, tx, end.By, now); err != nil {
			return err
		}
		return s.Hooks.OnDelete(ctx, tx, end)
	})
}

const sqlFindEnded = `
select name, deleted_by from team where id = $1 and state = 'deleted' and deleted_by is not null`

// EndedTx returns how a deleted team ended, for what comes late; At is now. The
// fault is ErrNotFound for a team that was not deleted by a person.
func (s *Service) EndedTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (Ending, error) {
	end := Ending{TeamID: teamID, At: now}
	err := tx.QueryRow(ctx, sqlFindEnded, teamID).Scan(&end.Name, &end.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return Ending{}, ErrNotFound
	}
	if err != nil {
		return Ending{}, fmt.Errorf("find deleted team %s: %w", teamID, err)
	}
	end.Personal, err = s.PersonalTx(ctx, tx, end.By, now)
	return end, err
}
