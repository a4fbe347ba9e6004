package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// A Grant is what a client gets to act for a user.
type Grant struct {
	AccessToken  string
	ExpiresAt    time.Time // of the access token, whole seconds
	ExpiresIn    int       // the same, in seconds from now
	RefreshToken string
	User         User
}

// A Client is where a sign-in comes from, for the user to recognise later.
type Client struct {
	IP        string
	UserAgent string
}

// A session is a row of auth_session with its user.
type session struct {
	ID            uuid.UUID  `db:"session_id"`
	SealedSecret  []byte     `db:"sealed_secret"`
	Generation    int32      `db:"generation"`
	ExpiresAt     time.Time  `db:"expires_at"`
	IdleExpiresAt time.Time  `db:"idle_expires_at"`
	RevokedAt     *time.Time `db:"revoked_at"`
	User
}

// alive says that the session may still be used.
func (s session) alive(now time.Time) bool {
	return s.RevokedAt == nil && now.Before(s.ExpiresAt) && now.Before(s.IdleExpiresAt)
}

func secretPurpose(session uuid.UUID) string { return "session secret " + session.String() }

const sqlAddSession = `
	insert into auth_session (id, user_id, sealed_secret, generation, ip, user_agent,
		created_at, refreshed_at, idle_expires_at, expires_at)
	values (@id, @user, @sealed, 1, @ip, @agent, @now, @now, @idle, @expires)`

// addSessionTx opens a session and returns its id and first refresh token.
func (s *Service) addSessionTx(ctx context.Context, tx pgx.Tx, user uuid.UUID, client Client, now time.Time) (uuid.UUID, string, error) {
	newID, secret := id.New(), id.Bytes(32)
	_, err := tx.Exec(ctx, sqlAddSession, pgx.NamedArgs{
		"id": newID, "user": user, "sealed": s.Box.Seal(secret, secretPurpose(newID)),
		"ip": network(client.IP), "agent": cleanText(client.UserAgent, 300),
		"now": now, "idle": now.Add(SessionIdle), "expires": now.Add(SessionLifetime),
	})
	if err != nil {
		return uuid.Nil, "", fmt.Errorf("open a session: %w", err)
	}
	return newID, newRefreshToken(newID, 1, secret), nil
}

// grant signs the access token that goes with a refresh token.
func (s *Service) grant(ctx context.Context, user User, session uuid.UUID, refresh string) (Grant, error) {
	now := s.Clock.Wall()
	access, expires, err := s.newAccessToken(ctx, user, session, now)
	if err != nil {
		return Grant{}, err
	}
	return Grant{
		AccessToken: access, ExpiresAt: expires, ExpiresIn: int(AccessTTL / time.Second),
		RefreshToken: refresh, User: user,
	}, nil
}

// Refresh gives a new access token for a refresh token, and the refresh token
// to use from now on: the next one, or, when the one just before the current is
// presented (an answer that was lost, several tabs at once), the current one
// again. A token older than that ends the session. The faults are
// ErrRefreshUnknown, ErrRefreshReused and ErrSessionExpired.
func (s *Service) Refresh(ctx context.Context, token string) (Grant, error) {
	presented, ok := parseRefreshToken(token)
	if !ok {
		return Grant{}, ErrRefreshUnknown
	}
	var next string
	var user User
	var refused error
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		found, err := lockSession(ctx, tx, presented.session)
		if err != nil {
			return err
		}
		user = found.User
		next, refused, err = s.turnTx(ctx, tx, found, presented)
		return err
	})
	if err != nil {
		return Grant{}, err
	}
	if refused != nil {
		if errors.Is(refused, ErrRefreshReused) {
			s.sessions.end(presented.session)
			s.Logger.WarnContext(ctx, "refresh token reused, session ended", "session_id", presented.session)
		}
		return Grant{}, refused
	}
	return s.grant(ctx, user, presented.session, next)
}

// turnTx applies a presented token to its locked session. refused is a fault
// whose consequence must be committed; err undoes everything.
func (s *Service) turnTx(ctx context.Context, tx pgx.Tx, found session, presented refreshToken) (next string, refused, err error) {
	now := s.Clock.Wall()
	secret, err := s.Box.Open(found.SealedSecret, secretPurpose(found.ID))
	if err != nil {
		return "", nil, fmt.Errorf("open the secret of session %s: %w", found.ID, err)
	}
	if !presented.genuine(secret) || found.RevokedAt != nil {
		return "", ErrRefreshUnknown, nil
	}
	if !found.alive(now) {
		return "", ErrSessionExpired, nil
	}
	current := uint32(found.Generation)
	switch decide(presented.generation, current) {
	case turnSame:
		return newRefreshToken(found.ID, current, secret), nil, nil
	case turnRotate:
		idle := now.Add(SessionIdle)
		if idle.After(found.ExpiresAt) {
			idle = found.ExpiresAt
		}
		if _, err := tx.Exec(ctx, sqlRotateSession, found.ID, now, idle); err != nil {
			return "", nil, fmt.Errorf("rotate session %s: %w", found.ID, err)
		}
		return newRefreshToken(found.ID, current+1, secret), nil, nil
	case turnReused:
		_, err := s.endSessionsTx(ctx, tx, found.User.ID, found.ID, ScopeLocal, "reuse")
		return "", ErrRefreshReused, err
	case turnNone:
	}
	return "", ErrRefreshUnknown, nil
}

const sqlLockSession = `
	select s.id as session_id, s.sealed_secret, s.generation, s.expires_at, s.idle_expires_at, s.revoked_at,
		u.id, u.email, u.created_at, u.email_confirmed_at, u.last_sign_in_at
	from auth_session s join auth_user u on u.id = s.user_id
	where s.id = $1 for update of s`

func lockSession(ctx context.Context, tx pgx.Tx, id uuid.UUID) (session, error) {
	return oneSession(ctx, tx, sqlLockSession, id, ErrRefreshUnknown)
}

// oneSession reads the row of one session; missing is what its absence means.
func oneSession(ctx context.Context, q pg.Querier, sql string, id uuid.UUID, missing error) (session, error) {
	rows, err := q.Query(ctx, sql, id)
	if err != nil {
		return session{}, fmt.Errorf("find session %s: %w", id, err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[session])
	if errors.Is(err, pgx.ErrNoRows) {
		return session{}, missing
	}
	if err != nil {
		return session{}, fmt.Errorf("find session %s: %w", id, err)
	}
	return found, nil
}

const sqlRotateSession = `
	update auth_session set generation = generation + 1, refreshed_at = $2, idle_expires_at = $3
	where id = $1`
