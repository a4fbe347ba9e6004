package auth

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// An Invite is an invitation whose mail is about to be sent.
type Invite struct {
	InvitationID uuid.UUID
	Email        string
	For          time.Duration // how long the link lives at most
}

const sqlAddInviteLink = `
	insert into auth_link (id, token_hash, email, email_folded, may_create, redirect_to, invitation_id,
		browser_hash, client_hash, ip, user_agent, requested_at, expires_at, sent_at)
	values (@id, @token, @address, @email, true, @redirect, @invitation,
		@nobody, @nobody, '', '', @now, @expires, @now)`

// InviteLink makes a sign-in link for the mail of an invitation and returns its
// address, which is kept nowhere. Like any link it signs in once, and only
// after a click; beyond that it dies with its invitation. No browser asked for
// it, so every browser shows the page with the button. A mail that is sent
// again has another link, and the first one goes on working. The faults are
// those of CleanEmail.
func (s *Service) InviteLink(ctx context.Context, in Invite) (string, error) {
	email, err := CleanEmail(in.Email)
	if err != nil {
		return "", err
	}
	token, now := id.Token(), s.Clock.Wall()
	_, err = s.Pool.Exec(ctx, sqlAddInviteLink, pgx.NamedArgs{
		"id": id.New(), "token": id.Hash(token), "address": email, "email": FoldEmail(email), "redirect": s.PublicURL,
		"invitation": in.InvitationID, "nobody": id.Hash(id.Token()), "now": now, "expires": now.Add(in.For),
	})
	if err != nil {
		return "", fmt.Errorf("add the link of invitation %s: %w", in.InvitationID, err)
	}
	return s.linkAddress(token, "invite", s.PublicURL), nil
}

// linkAddress is where a link in a mail leads.
func (s *Service) linkAddress(token, kind, redirect string) string {
	return s.issuer + "/verify?" + url.Values{"token": {token}, "type": {kind}, "redirect_to": {redirect}}.Encode()
}

// waits says whether the invitation of a link still waits; a link without one
// always may.
func (s *Service) waits(ctx context.Context, q pg.Querier, invitation *uuid.UUID) (bool, error) {
	if invitation == nil {
		return true, nil
	}
	if s.InvitationWaits == nil {
		return false, nil
	}
	return s.InvitationWaits(ctx, q, *invitation)
}
