package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// A Link is a sign-in link that would work, as the confirmation page shows it.
type Link struct {
	Email        string     `db:"email"`
	RedirectTo   string     `db:"redirect_to"`
	IP           string     `db:"ip"`
	UserAgent    string     `db:"user_agent"`
	RequestedAt  time.Time  `db:"requested_at"`
	BrowserHash  []byte     `db:"browser_hash"`
	InvitationID *uuid.UUID `db:"invitation_id"` // nil: somebody asked for it themselves
}

// AskedFrom says whether the browser that holds this secret asked for the link.
func (l Link) AskedFrom(browser string) bool {
	return isToken(browser) && subtle.ConstantTimeCompare(l.BrowserHash, id.Hash(browser)) == 1
}

// Destination is the address at which the web application redeems the link.
// The token stands in the fragment, which no server sees.
func (l Link) Destination(token string) string {
	return l.RedirectTo + "#token_hash=" + token + "&type=magiclink"
}

const sqlPeekLink = `
	select email, redirect_to, ip, user_agent, requested_at, browser_hash, invitation_id
	from auth_link
	where token_hash = $1 and used_at is null and ended_at is null and expires_at > $2`

// PeekLink returns the link of a token that would work now, and changes
// nothing: mail scanners open links too. The fault is ErrLinkDead.
func (s *Service) PeekLink(ctx context.Context, token string) (Link, error) {
	if !isToken(token) {
		return Link{}, ErrLinkDead
	}
	rows, err := s.Pool.Query(ctx, sqlPeekLink, id.Hash(token), s.Clock.Wall())
	if err != nil {
		return Link{}, fmt.Errorf("peek at a link: %w", err)
	}
	link, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Link])
	if errors.Is(err, pgx.ErrNoRows) {
		return Link{}, ErrLinkDead
	}
	if err != nil {
		return Link{}, fmt.Errorf("peek at a link: %w", err)
	}
	alive, err := s.waits(ctx, s.Pool, link.InvitationID)
	if err == nil && !alive {
		err = ErrLinkDead
	}
	if err != nil {
		return Link{}, err
	}
	return link, nil
}

const sqlUseLink = `
	update auth_link set used_at = $2, sealed_token = null
	where token_hash = $1 and used_at is null and ended_at is null and expires_at > $2
	returning email, may_create, invitation_id`

// Verify redeems a link, once whoever races: it makes the user if the address
// has none, and opens a session. The faults are ErrLinkDead and ErrSignUpClosed.
func (s *Service) Verify(ctx context.Context, token string, client Client) (Grant, error) {
	if !isToken(token) {
		return Grant{}, ErrLinkDead
	}
	if _, _, err := s.signingKey(ctx); err != nil { // before the link is spent
		return Grant{}, err
	}
	var user User
	var opened uuid.UUID
	var refresh string
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		var err error
		now := s.Clock.Wall()
		if user, err = s.useLinkTx(ctx, tx, token, now); err != nil {
			return err
		}
		opened, refresh, err = s.addSessionTx(ctx, tx, user.ID, client, now)
		if err != nil || s.OnSignIn == nil {
			return err
		}
		return s.OnSignIn(ctx, tx, user.ID, user.Email)
	})
	if err != nil {
		return Grant{}, err
	}
	s.Logger.InfoContext(ctx, "user signed in", "user_id", user.ID, "session_id", opened)
	return s.grant(ctx, user, opened, refresh)
}

// useLinkTx spends a link and returns its user, who may be new.
func (s *Service) useLinkTx(ctx context.Context, tx pgx.Tx, token string, now time.Time) (User, error) {
	var email string
	var mayCreate bool
	var invitation *uuid.UUID
	err := tx.QueryRow(ctx, sqlUseLink, id.Hash(token), now).Scan(&email, &mayCreate, &invitation)
	if errors.Is(err, pgx.ErrNoRows) {
		return User{}, ErrLinkDead
	}
	if err != nil {
		return User{}, fmt.Errorf("use a link: %w", err)
	}
	if alive, err := s.waits(ctx, tx, invitation); err != nil || !alive {
		return User{}, cmp.Or(err, error(ErrLinkDead))
	}
	allowed, err := s.maySignInTx(ctx, tx, email, mayCreate)
	if err != nil {
		return User{}, err
	}
	if !allowed {
		return User{}, ErrSignUpClosed
	}
	return signInUserTx(ctx, tx, id.New(), email, now)
}
