package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func TestTheTokenIsForgottenOnceTheMailIsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	link := r.ask("ada@example.com")
	r.post.answer = mail.ErrUnavailable
	if err := r.SendLink(t.Context(), link); !errors.Is(err, mail.ErrUnavailable) {
		t.Fatalf("SendLink while the mail server is down = %v", err)
	}
	r.post.answer = nil
	token := r.token(link)
	if err := r.SendLink(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	if len(r.post.got) != 1 || r.post.got[0].Key != "sign-in-"+link.LinkID.String() {
		t.Errorf("%d mails", len(r.post.got))
	}
	if n := r.count(`select count(*) from auth_link where sealed_token is null and sent_at is not null and ended_at is null`); n != 1 {
		t.Error("the sealed token was kept, or the link ended")
	}
	if _, err := r.Verify(t.Context(), token, Client{}); err != nil {
		t.Errorf("Verify = %v", err)
	}
	if err := r.SendLink(t.Context(), link); err != nil || len(r.post.got) != 1 {
		t.Errorf("the job after the sign-in = %v, %d mails", err, len(r.post.got))
	}
}

func TestMailsThatCannotHelpAreNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	late := r.ask("late@example.com")
	r.now.Advance(r.LinkTTL)
	refused := r.ask("refused@example.com")
	for _, link := range []SendLinkJob{late, {LinkID: uuid.New()}} {
		if err := r.SendLink(t.Context(), link); err != nil {
			t.Error(err)
		}
	}
	r.post.answer = mail.ErrRefused.Because(errors.New("550"))
	if err := r.SendLink(t.Context(), refused); err != nil {
		t.Errorf("a refused mail is tried again: %v", err)
	}
	if n := r.count(`select count(*) from auth_link where ended_at is not null and sealed_token is null`); n != 2 || len(r.post.got) != 0 {
		t.Errorf("%d links ended, %d mails", n, len(r.post.got))
	}
	if strings.Contains(r.log.String(), "refused@") {
		t.Errorf("the log names the address:\n%s", r.log)
	}
}

func TestOnlyTheInvitedSignUpWhenTheDoorIsClosed(t *testing.T) {
	t.Parallel()
	invited := map[string]bool{"guest@example.com": true, "fickle@example.com": true}
	r := newRig(t, pgtest.New(t), func(d *Deps) {
		d.SignUp = SignUpInvited
		d.Invited = func(_ context.Context, _ pgx.Tx, email string) (bool, error) { return invited[email], nil }
	})
	if err := r.SendLink(t.Context(), r.ask("stranger@example.com")); err != nil || len(r.post.got) != 0 {
		t.Errorf("a stranger got %d mails, %v", len(r.post.got), err)
	}
	r.signIn("guest@example.com")
	token := r.token(r.ask("fickle@example.com"))
	delete(invited, "fickle@example.com")
	if _, err := r.Verify(t.Context(), token, Client{}); !errors.Is(err, ErrSignUpClosed) {
		t.Errorf("Verify after the invitation was taken back = %v", err)
	}
	delete(invited, "guest@example.com")
	r.signIn("guest@example.com")
	if n := r.count(`select count(*) from auth_user`); n != 1 {
		t.Errorf("%d users", n)
	}
}

func TestAFailedSignInSpendsNothing(t *testing.T) {
	t.Parallel()
	failing, seen := true, 0
	r := newRig(t, pgtest.New(t), func(d *Deps) {
		d.OnSignIn = func(_ context.Context, _ pgx.Tx, _ uuid.UUID, email string) error {
			if failing {
				return errors.New("the team is busy")
			}
			seen++
			return nil
		}
	})
	token := r.token(r.ask("ada@example.com"))
	if _, err := r.Verify(t.Context(), token, Client{}); err == nil {
		t.Fatal("Verify succeeded although its hook failed")
	}
	if n := r.count(`select count(*) from auth_user`) + r.count(`select count(*) from auth_session`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	failing = false
	if _, err := r.Verify(t.Context(), token, Client{UserAgent: "bad\x00\xff"}); err != nil || seen != 1 {
		t.Errorf("Verify again = %v, hook called %d times", err, seen)
	}
}

func TestEndedSessionsAreRefusedOnEveryNode(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	plain := newRig(t, pool)
	hub := pg.NewHub(pool, plain.Logger)
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	listening := newRig(t, pool, func(d *Deps) { d.Hub = hub })
	deaf := newRig(t, pool, func(d *Deps) { d.Hub = pg.NewHub(pool, plain.Logger) }) // a hub that never hears anything
	told, cancel := hub.Subscribe(revokedChannel)
	t.Cleanup(cancel)
	grant := plain.signIn("ada@example.com")
	who := plain.identity(grant)
	for _, r := range []*rig{listening, deaf} {
		r.identity(grant)
	}
	if err := plain.SignOut(t.Context(), who, ScopeLocal); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Authenticate(t.Context(), grant.AccessToken); !errors.Is(err, ErrNoSession) {
		t.Errorf("the node that ended it: %v", err)
	}
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("the hub was never told")
	}
	_, done := hub.Subscribe("") // waits until the hub has told everyone
	done()
	if _, err := listening.Authenticate(t.Context(), grant.AccessToken); !errors.Is(err, ErrNoSession) {
		t.Errorf("the node that listens, whose clock stands still: %v", err)
	}
	deaf.now.Advance(liveFor - time.Microsecond)
	if _, err := deaf.Authenticate(t.Context(), grant.AccessToken); err != nil {
		t.Errorf("the deaf node trusts less than it may: %v", err)
	}
	deaf.now.Advance(time.Microsecond)
	if _, err := deaf.Authenticate(t.Context(), grant.AccessToken); !errors.Is(err, ErrNoSession) {
		t.Errorf("the deaf node after five seconds: %v", err)
	}
}

func TestUsersAreFoundForOtherPackages(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	ada := r.signIn("Ada@Example.com").User
	err := pg.InTx(t.Context(), r.Pool, func(tx pgx.Tx) error {
		found, ok, err := r.FindUserTx(t.Context(), tx, " ADA@example.com ")
		if err != nil || !ok || found.ID != ada.ID {
			t.Errorf("FindUserTx = %+v, %v, %v", found, ok, err)
		}
		if _, ok, err := r.FindUserTx(t.Context(), tx, "eve@example.com"); ok || err != nil {
			t.Errorf("FindUserTx of nobody = %v, %v", ok, err)
		}
		emails, err := r.EmailsTx(t.Context(), tx, []uuid.UUID{ada.ID, uuid.New()})
		if err != nil || len(emails) != 1 || emails[ada.ID] != "Ada@Example.com" {
			t.Errorf("EmailsTx = %v, %v", emails, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepForgetsWhatIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	r.signIn("ada@example.com")
	left := func() [3]int {
		t.Helper()
		if err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return [3]int{
			r.count(`select count(*) from auth_request`), r.count(`select count(*) from auth_link`), r.count(`select count(*) from auth_session`),
		}
	}
	for _, c := range []struct {
		advance time.Duration
		want    [3]int
	}{{time.Hour, [3]int{1, 1, 1}}, {time.Hour + time.Minute, [3]int{0, 0, 1}}, {SessionLifetime, [3]int{0, 0, 1}}, {24 * time.Hour, [3]int{}}} {
		r.now.Advance(c.advance)
		if got := left(); got != c.want {
			t.Errorf("after %v: %v, want %v", c.advance, got, c.want)
		}
	}
	if n := r.count(`select count(*) from auth_user`); n != 1 {
		t.Error("the sweep forgot a user")
	}
}
