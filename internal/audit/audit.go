// Package audit owns the append-only log of who did what: one row per act,
// written in the transaction of the act, never changed and never removed.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// An Entry is one act. It never holds a secret, nor an e-mail address.
type Entry struct {
	At       time.Time
	TeamID   uuid.UUID // Nil: of no team
	ActorID  uuid.UUID // the user; Nil: the platform itself
	Action   string    // "team.delete"
	ObjectID uuid.UUID // what it was done to; Nil: nothing with an id
	Detail   map[string]any
}

const sqlInsertEntry = `
insert into audit_log (at, team_id, actor_id, action, object_id, detail)
values (@at, @team, @actor, @action, @object, @detail)`

// RecordTx adds an entry in the caller's transaction.
func RecordTx(ctx context.Context, tx pgx.Tx, e Entry) error {
	detail := []byte("{}")
	if len(e.Detail) > 0 {
		var err error
		if detail, err = json.Marshal(e.Detail); err != nil {
			return fmt.Errorf("record %s: %w", e.Action, err)
		}
	}
	_, err := tx.Exec(ctx, sqlInsertEntry, pgx.NamedArgs{
		"at": e.At, "team": orNull(e.TeamID), "actor": orNull(e.ActorID),
		"action": e.Action, "object": orNull(e.ObjectID), "detail": detail,
	})
	if err != nil {
		return fmt.Errorf("record %s: %w", e.Action, err)
	}
	return nil
}

const sqlListEntries = `
select at, coalesce(team_id, '00000000-0000-0000-0000-000000000000') as team_id,
  coalesce(actor_id, '00000000-0000-0000-0000-000000000000') as actor_id, action,
  coalesce(object_id, '00000000-0000-0000-0000-000000000000') as object_id, detail
from audit_log where team_id = $1 order by id desc limit $2`

// List returns a team's latest entries, newest first.
func List(ctx context.Context, q pg.Querier, teamID uuid.UUID, limit int) ([]Entry, error) {
	rows, err := q.Query(ctx, sqlListEntries, teamID, limit)
	if err != nil {
		return nil, fmt.Errorf("list the audit log of team %s: %w", teamID, err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByName[Entry])
	if err != nil {
		return nil, fmt.Errorf("list the audit log of team %s: %w", teamID, err)
	}
	return entries, nil
}

func orNull(u uuid.UUID) *uuid.UUID {
	if u == uuid.Nil {
		return nil
	}
	return &u
}
