package auth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// open is a set of invitations that wait.
type openInvitations struct{ sync.Map }

func (o *openInvitations) waits(_ context.Context, _ pg.Querier, invitation uuid.UUID) (bool, error) {
	_, ok := o.Load(invitation)
	return ok, nil
}

// inviteLink returns the token of a link for a new invitation that waits.
func (r *rig) inviteLink(o *openInvitations, email string) (token string, invitation uuid.UUID) {
	r.t.Helper()
	invitation = uuid.New()
	o.Store(invitation, true)
	address, err := r.InviteLink(r.t.Context(), Invite{InvitationID: invitation, Email: email, For: 14 * 24 * time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, testURL+"/auth/v1/verify?") || u.Query().Get("type") != "invite" || u.Query().Get("redirect_to") != testURL {
		r.t.Fatalf("the link is %s, %v", address, err)
	}
	return u.Query().Get("token"), invitation
}

// The link of an invitation makes its user, once, whoever races; looking at it
// spends nothing, no browser passes without the click, and it works where only
// the invited may sign up.
func TestLinkOfAnInvitation(t *testing.T) {
	t.Parallel()
	open := &openInvitations{}
	var signedIn atomic.Int64
	r := newRig(t, pgtest.New(t), func(d *Deps) {
		d.SignUp, d.InvitationWaits = SignUpInvited, open.waits
		d.Invited = func(_ context.Context, _ pgx.Tx, email string) (bool, error) { return email == "ada@example.com", nil }
		d.OnSignIn = func(_ context.Context, _ pgx.Tx, _ uuid.UUID, email string) error {
			signedIn.Add(1)
			if email != "ada@example.com" {
				t.Errorf("signed in as %s", email)
			}
			return nil
		}
	})
	token, invitation := r.inviteLink(open, "ada@example.com")
	if n := r.count(`select count(*) from auth_link where token_hash = $1`, []byte(token)); n != 0 {
		t.Error("the token is stored as it is")
	}
	r.now.Advance(13 * 24 * time.Hour)
	for range 3 {
		link, err := r.PeekLink(t.Context(), token)
		if err != nil || link.Email != "ada@example.com" || link.InvitationID == nil || *link.InvitationID != invitation || link.AskedFrom(token) {
			t.Fatalf("peeked at %+v, %v", link, err)
		}
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch _, err := r.Verify(t.Context(), token, Client{}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrLinkDead):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || signedIn.Load() != 1 || r.count(`select count(*) from auth_user`) != 1 {
		t.Errorf("%d sign-ins, %d told", won.Load(), signedIn.Load())
	}
}

// A link dies with its invitation, and with its time.
func TestLinkOfAnInvitationThatIsOver(t *testing.T) {
	t.Parallel()
	open := &openInvitations{}
	r := newRig(t, pgtest.New(t), func(d *Deps) { d.InvitationWaits = open.waits })
	dead := func(what, token string) {
		t.Helper()
		if _, err := r.PeekLink(t.Context(), token); !errors.Is(err, ErrLinkDead) {
			t.Errorf("%s: peek %v", what, err)
		}
		if _, err := r.Verify(t.Context(), token, Client{}); !errors.Is(err, ErrLinkDead) {
			t.Errorf("%s: verify %v", what, err)
		}
	}
	token, invitation := r.inviteLink(open, "ada@example.com")
	open.Delete(invitation)
	dead("cancelled", token)
	open.Store(invitation, true)
	if _, err := r.Verify(t.Context(), token, Client{}); err != nil {
		t.Errorf("a refused link is spent: %v", err)
	}
	late, _ := r.inviteLink(open, "late@example.com")
	r.now.Advance(14 * 24 * time.Hour)
	dead("after 14 days", late)
	if n := r.count(`select count(*) from auth_user where email = 'late@example.com'`); n != 0 {
		t.Error("a dead link made a user")
	}
	r.InvitationWaits = nil
	unknown, _ := r.inviteLink(open, "eve@example.com")
	dead("without anybody to ask", unknown)
	if _, err := r.InviteLink(t.Context(), Invite{InvitationID: uuid.New(), Email: "no address"}); !errors.Is(err, ErrEmailInvalid) {
		t.Errorf("no address: %v", err)
	}
	// A request of one's own ends no invitation, and is ended by none.
	first, _ := r.inviteLink(open, "bob@example.com")
	r.InvitationWaits = open.waits
	own := r.token(r.ask("bob@example.com"))
	if _, err := r.Verify(t.Context(), first, Client{}); err != nil {
		t.Error(err)
	}
	if _, err := r.Verify(t.Context(), own, Client{}); err != nil {
		t.Error(err)
	}
}
