package sshkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const sqlMarkDeleted = `
update ssh_key set deleted_at = $2 where id = $1 and deleted_at is null`

// Delete removes a key of the team: by the person who added it, or an admin.
// Running pods drop it through OnDeleteTx. The faults are ErrNotFound,
// ErrNotYours and those of a scope that may not use the team.
func (s *Service) Delete(ctx context.Context, scope team.Scope, keyID uuid.UUID) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		key, err := s.FindTx(ctx, tx, scope, keyID)
		if err != nil {
			return err
		}
		if _, err := scope.Require(team.Use); err != nil {
			return err
		}
		if !scope.IsAdmin() && key.CreatedBy != scope.UserID() {
			return ErrNotYours
		}
		return s.deleteTx(ctx, tx, key.TeamID, scope.UserID(), key.ID, s.Clock.Now())
	})
}

const sqlListKeysOfUser = `
select id from ssh_key
where team_id = $1 and created_by = $2 and deleted_at is null order by id for update`

// LeaveTx removes the keys of a person who left the team, or was removed, and
// returns which those were.
func (s *Service) LeaveTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, now time.Time) ([]uuid.UUID, error) {
	return s.deleteAllTx(ctx, tx, teamID, userID, now, sqlListKeysOfUser, teamID, userID)
}

const sqlListKeysOfTeam = `
select id from ssh_key where team_id = $1 and deleted_at is null order by id for update`

// EndTeamTx removes every key of a team that is being deleted by a person.
func (s *Service) EndTeamTx(ctx context.Context, tx pgx.Tx, teamID, by uuid.UUID, now time.Time) error {
	_, err := s.deleteAllTx(ctx, tx, teamID, by, now, sqlListKeysOfTeam, teamID)
	return err
}

func (s *Service) deleteAllTx(ctx context.Context, tx pgx.Tx, teamID, by uuid.UUID, now time.Time, list string, args ...any) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, list, args...)
	if err != nil {
		return nil, fmt.Errorf("list the SSH keys of team %s: %w", teamID, err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list the SSH keys of team %s: %w", teamID, err)
	}
	for _, key := range keys {
		if err := s.deleteTx(ctx, tx, teamID, by, key, now); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func (s *Service) deleteTx(ctx context.Context, tx pgx.Tx, teamID, by, keyID uuid.UUID, now time.Time) error {
	tag, err := tx.Exec(ctx, sqlMarkDeleted, keyID, now)
	if err != nil {
		return fmt.Errorf("delete SSH key %s: %w", keyID, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	err = audit.RecordTx(ctx, tx, audit.Entry{At: now, TeamID: teamID, ActorID: by, Action: "ssh_key.delete", ObjectID: keyID})
	if err != nil || s.OnDeleteTx == nil {
		return err
	}
	return s.OnDeleteTx(ctx, tx, keyID)
}

const sqlFindKey = `
select id, team_id, name, public_key, key_type, fingerprint, created_at, created_by
from ssh_key where id = $1 and team_id = $2 and deleted_at is null`

// FindTx returns a key of the team. The fault is ErrNotFound.
func (s *Service) FindTx(ctx context.Context, tx pgx.Tx, scope team.Scope, keyID uuid.UUID) (SSHKey, error) {
	rows, err := tx.Query(ctx, sqlFindKey, keyID, scope.TeamID())
	if err != nil {
		return SSHKey{}, fmt.Errorf("find SSH key %s: %w", keyID, err)
	}
	key, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[SSHKey])
	if errors.Is(err, pgx.ErrNoRows) {
		return SSHKey{}, ErrNotFound
	}
	if err != nil {
		return SSHKey{}, fmt.Errorf("find SSH key %s: %w", keyID, err)
	}
	return key, nil
}

const sqlListKeys = `
select id, team_id, name, public_key, key_type, fingerprint, created_at, created_by
from ssh_key where team_id = $1 and deleted_at is null order by created_at desc, id`

// List returns the team's keys, newest first.
func (s *Service) List(ctx context.Context, scope team.Scope) ([]SSHKey, error) {
	rows, err := s.Pool.Query(ctx, sqlListKeys, scope.TeamID())
	if err != nil {
		return nil, fmt.Errorf("list SSH keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[SSHKey])
	if err != nil {
		return nil, fmt.Errorf("list SSH keys: %w", err)
	}
	return keys, nil
}

const sqlListLines = `
select id, public_key from ssh_key where id = any($1) and deleted_at is null`

// LinesTx returns the authorized_keys lines of those keys that are not deleted,
// by id: what a running pod may let in.
func (s *Service) LinesTx(ctx context.Context, q pg.Querier, keyIDs []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := q.Query(ctx, sqlListLines, keyIDs)
	if err != nil {
		return nil, fmt.Errorf("read SSH keys: %w", err)
	}
	type line struct {
		ID        uuid.UUID
		PublicKey string
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[line])
	if err != nil {
		return nil, fmt.Errorf("read SSH keys: %w", err)
	}
	lines := make(map[uuid.UUID]string, len(found))
	for _, l := range found {
		lines[l.ID] = l.PublicKey
	}
	return lines, nil
}
