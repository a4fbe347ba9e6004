package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// A Scope says which sessions a sign-out ends.
type Scope string

// The scopes of a sign-out.
const (
	ScopeLocal  Scope = "local"  // the caller's session
	ScopeGlobal Scope = "global" // every session of the user
	ScopeOthers Scope = "others" // every session but the caller's
)

// SignOut ends sessions of a user. Their access tokens are refused from now
// on. Ending what has ended is no error. The fault is ErrScope.
func (s *Service) SignOut(ctx context.Context, who Identity, scope Scope) error {
	if scope != ScopeLocal && scope != ScopeGlobal && scope != ScopeOthers {
		return ErrScope
	}
	var ended []uuid.UUID
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		ended, err = s.endSessionsTx(ctx, tx, who.UserID, who.SessionID, scope, "sign_out")
		return err
	})
	for _, session := range ended {
		s.sessions.end(session)
	}
	return err
}

const sqlEndSessions = `
	update auth_session set revoked_at = @now, revoked_by = @by
	where user_id = @user and revoked_at is null and (
		(@scope::text = 'local' and id = @session) or (@scope = 'others' and id <> @session) or @scope = 'global')
	returning id`

// endSessionsTx ends sessions and tells every node, at commit.
func (s *Service) endSessionsTx(ctx context.Context, tx pgx.Tx, user, own uuid.UUID, scope Scope, by string) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlEndSessions, pgx.NamedArgs{
		"user": user, "session": own, "scope": string(scope), "by": by, "now": s.Clock.Wall(),
	})
	if err != nil {
		return nil, fmt.Errorf("end sessions of user %s: %w", user, err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("end sessions of user %s: %w", user, err)
	}
	for _, session := range ended {
		if err := pg.NotifyTx(ctx, tx, revokedChannel, session.String()); err != nil {
			return nil, err
		}
	}
	return ended, nil
}
