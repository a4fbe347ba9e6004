package sshkey

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// Create keeps a public key for the team. A key that the team has already is
// returned as it is. The faults are those of Parse, ErrName, and those of a
// scope that may not use the team.
func (s *Service) Create(ctx context.Context, scope team.Scope, name, publicKey string, once idem.Request) (SSHKey, error) {
	parsed, err := Parse(publicKey)
	if err != nil {
		return SSHKey{}, err
	}
	if name, err = cleanName(name); err != nil {
		return SSHKey{}, err
	}
	if scope, err = scope.Require(team.Use); err != nil {
		return SSHKey{}, err
	}
	var key SSHKey
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		key, err = idem.RunTx(ctx, tx, once, func() (SSHKey, error) { return s.createTx(ctx, tx, scope, name, parsed) })
		return err
	})
	return key, err
}

const sqlFindFingerprint = `
select id, team_id, name, public_key, key_type, fingerprint, created_at, created_by
from ssh_key where team_id = $1 and fingerprint = $2 and deleted_at is null`

const sqlInsertKey = `
insert into ssh_key (id, team_id, name, public_key, key_type, fingerprint, created_by, created_at)
values (@id, @team, @name, @line, @type, @fingerprint, @user, @now)`

// createTx runs under the team's lock, so that two equal keys find each other.
func (s *Service) createTx(ctx context.Context, tx pgx.Tx, scope team.Scope, name string, parsed Key) (SSHKey, error) {
	rows, err := tx.Query(ctx, sqlFindFingerprint, scope.TeamID(), parsed.Fingerprint)
	if err != nil {
		return SSHKey{}, fmt.Errorf("look for an SSH key: %w", err)
	}
	have, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[SSHKey])
	if err == nil {
		return have, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return SSHKey{}, fmt.Errorf("look for an SSH key: %w", err)
	}
	key := SSHKey{
		ID: id.New(), TeamID: scope.TeamID(), Name: name, PublicKey: parsed.Line, KeyType: parsed.Type,
		Fingerprint: parsed.Fingerprint, CreatedAt: s.Clock.Now(), CreatedBy: scope.UserID(),
	}
	_, err = tx.Exec(ctx, sqlInsertKey, pgx.NamedArgs{
		"id": key.ID, "team": key.TeamID, "name": key.Name, "line": key.PublicKey, "type": key.KeyType,
		"fingerprint": key.Fingerprint, "user": key.CreatedBy, "now": key.CreatedAt,
	})
	if err != nil {
		return SSHKey{}, fmt.Errorf("keep an SSH key: %w", err)
	}
	return key, audit.RecordTx(ctx, tx, audit.Entry{
		At: key.CreatedAt, TeamID: key.TeamID, ActorID: key.CreatedBy, Action: "ssh_key.create", ObjectID: key.ID,
		Detail: map[string]any{"fingerprint": key.Fingerprint},
	})
}
