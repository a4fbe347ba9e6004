package auth

import (
	"context"

	"github.com/google/uuid"
)

// An Identity is a user proven by an access token whose session is alive.
type Identity struct {
	UserID    uuid.UUID
	Email     string
	SessionID uuid.UUID
}

// Authenticate says whose access token this is. It is called for every
// request: signatures are remembered, and with a Hub the session's row is read
// at most every five seconds. The faults, both Unauthenticated, are ErrBadToken
// and ErrNoSession. An absent token is for the caller to tell apart.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Identity, error) {
	claims, err := s.readToken(ctx, bearer)
	if err != nil {
		return Identity{}, err
	}
	user, session, err := claims.ids()
	if err != nil {
		return Identity{}, ErrBadToken.Because(err)
	}
	who := Identity{UserID: user, Email: claims.Email, SessionID: session}
	if known, ok := s.sessions.find(session, s.Clock.Wall()); ok && known.user == user {
		return who, nil
	}
	_, err = s.User(ctx, who)
	return who, err
}

const sqlFindSession = `
	select s.id as session_id, s.sealed_secret, s.generation, s.expires_at, s.idle_expires_at, s.revoked_at,
		u.id, u.email, u.created_at, u.email_confirmed_at, u.last_sign_in_at
	from auth_session s join auth_user u on u.id = s.user_id
	where s.id = $1`

// User reads the user of an identity, and their session, from the database.
// The fault is ErrNoSession.
func (s *Service) User(ctx context.Context, who Identity) (User, error) {
	mark, now := s.sessions.mark(), s.Clock.Wall()
	found, err := oneSession(ctx, s.Pool, sqlFindSession, who.SessionID, ErrNoSession)
	if err != nil {
		return User{}, err
	}
	if !found.alive(now) || found.User.ID != who.UserID {
		return User{}, ErrNoSession
	}
	until := found.ExpiresAt
	if found.IdleExpiresAt.Before(until) {
		until = found.IdleExpiresAt
	}
	s.sessions.keep(who.SessionID, liveSession{user: who.UserID, until: until, readAt: now}, mark)
	return found.User, nil
}
