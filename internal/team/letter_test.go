package team_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// Send makes the club its own mail server.
func (c *club) Send(_ context.Context, m mail.Message) error {
	if c.down != nil {
		return c.down
	}
	c.mails = append(c.mails, m)
	return m.Check()
}

// run carries out the jobs that wait and returns them.
func (c *club) run() []job.Args {
	c.t.Helper()
	jobs := c.jobs.Take()
	for _, j := range jobs {
		if err := c.SendInvitation(c.t.Context(), j.(team.SendInvitationJob)); err != nil {
			c.t.Fatal(err)
		}
	}
	return jobs
}

var anyURL = regexp.MustCompile(`https?://\S+`)

func TestLetterOfAnInvitation(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	if _, err := c.invite(scope, "Ada@example.org"); err != nil {
		t.Fatal(err)
	}
	c.clock.Advance(time.Hour)
	c.run()
	if len(c.mails) != 1 || len(c.links) != 1 {
		t.Fatalf("%d mails, %d links", len(c.mails), len(c.links))
	}
	waiting := c.pending(scope)[0]
	if l := c.links[0]; l.InvitationID != waiting.ID || l.Email != "ada@example.org" || l.For != 14*24*time.Hour-time.Hour {
		t.Errorf("the link is for %+v", l)
	}
	m := c.mails[0]
	if m.To != "ada@example.org" || m.Subject != "Join Test team on Homeport" {
		t.Errorf("to %s: %q", m.To, m.Subject)
	}
	if urls := anyURL.FindAllString(m.Text, -1); len(urls) != 1 || urls[0] != "https://homeport.example/join?n=1" {
		t.Errorf("the text has the addresses %q", urls)
	}
	for _, text := range []string{"user-" + id.First(scope.UserID()) + "@example.org invited you to the team Test team", "29 January 2030, 12:00 UTC"} {
		if !strings.Contains(m.Text, text) || !strings.Contains(m.HTML, text) {
			t.Errorf("it does not say %q:\n%s", text, m.Text)
		}
	}
	if !strings.Contains(m.HTML, `href="https://homeport.example/join?n=1"`) {
		t.Error("the HTML part has no link")
	}
}

// Names that users choose neither break a letter nor smuggle an address into it.
func TestLetterWithAHostileName(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	for name, subject := range map[string]string{
		"Free GPUs: https://evil.example/": "Join a team on Homeport",
		"WWW.evil.example":                 "Join a team on Homeport",
		strings.Repeat("é", 80):            "Join " + strings.Repeat("é", 39) + "… on Homeport",
		"<b>Docks</b> & Co":                "Join <b>Docks</b> & Co on Homeport",
	} {
		c.mails = nil
		scope := teamtest.Admin(t, c.Pool, team.Pro)
		if _, err := c.Change(t.Context(), scope, team.Change{Name: &name}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.invite(scope, "ada@example.org"); err != nil {
			t.Fatal(err)
		}
		c.run()
		if len(c.mails) != 1 || c.mails[0].Subject != subject || c.mails[0].Check() != nil {
			t.Fatalf("%q: %+v", name, c.mails)
		}
		if n := len(anyURL.FindAllString(c.mails[0].Text, -1)); n != 1 || strings.Contains(c.mails[0].HTML, "<b>Docks") {
			t.Errorf("%q: %d addresses in\n%s", name, n, c.mails[0].Text)
		}
	}
}

// A mail that came too late is not sent; one that could not be sent is tried
// again; one that never can is given up, without naming the address.
func TestLettersThatAreNotSent(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	if _, err := c.invite(scope, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.invite(scope, "ada@example.org"); err != nil { // renews
		t.Fatal(err)
	}
	if jobs := c.run(); len(jobs) != 2 || len(c.mails) != 1 || c.links[0].InvitationID != c.pending(scope)[0].ID {
		t.Errorf("%d jobs sent %d mails", len(jobs), len(c.mails))
	}
	if err := c.CancelInvitation(t.Context(), scope, c.pending(scope)[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.invite(scope, "bob@example.org"); err != nil {
		t.Fatal(err)
	}
	bob := c.jobs.Take()[0].(team.SendInvitationJob)
	c.down = mail.ErrUnavailable
	if err := c.SendInvitation(t.Context(), bob); !errors.Is(err, mail.ErrUnavailable) {
		t.Errorf("while the mail server is down: %v", err)
	}
	c.down = mail.ErrRefused
	if err := c.SendInvitation(t.Context(), bob); err != nil {
		t.Errorf("an address that takes no mail: %v", err)
	}
	if !strings.Contains(c.log.String(), "refused") || strings.Contains(c.log.String(), "bob@") {
		t.Errorf("the log: %s", c.log.String())
	}
	c.down = nil
	c.clock.Advance(14 * 24 * time.Hour)
	if err := c.SendInvitation(t.Context(), bob); err != nil || len(c.mails) != 1 {
		t.Errorf("after it expired: %v, %d mails", err, len(c.mails))
	}
}

// A refused or undone invitation sends nothing: the job is in its transaction.
func TestOnlyWhoIsInvitedGetsAMail(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Hobby)
	if _, err := c.invite(scope, "ada@example.org"); !errors.Is(err, team.ErrInvitePlan) {
		t.Fatal(err)
	}
	if jobs := c.jobs.Take(); len(jobs) != 0 {
		t.Errorf("jobs: %v", jobs)
	}
}

// invited and waits ask as auth does.
func (c *club) invited(email string) bool {
	c.t.Helper()
	ok, err := c.IsInvitedTx(c.t.Context(), c.Pool, email)
	if err != nil {
		c.t.Fatal(err)
	}
	return ok
}

func TestWhoIsInvited(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	if _, err := c.invite(scope, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	ada := c.pending(scope)[0].ID
	waits := func() bool {
		ok, err := c.InvitationWaitsTx(t.Context(), c.Pool, ada)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !c.invited(" ADA@Example.org") || c.invited("bob@example.org") || c.invited("no address") || !waits() {
		t.Error("before the sign-in")
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Pool.Exec(t.Context(), sql, scope.TeamID()); err != nil {
			t.Fatal(err)
		}
	}
	exec(`update team set plan = 'hobby' where id = $1`)
	if c.invited("ada@example.org") || waits() {
		t.Error("after a downgrade")
	}
	exec(`update team set plan = 'pro' where id = $1`)
	c.signIn("ada@example.org")
	if c.invited("ada@example.org") || waits() {
		t.Error("after the sign-in")
	}
}

// Signing in accepts in the sign-in's own transaction; what is undone with it
// is not accepted, and cancelling at the same moment has one winner.
func TestAcceptingWithTheSignIn(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	a, b := teamtest.Admin(t, c.Pool, team.Pro), teamtest.Admin(t, c.Pool, team.Pro)
	for _, scope := range []team.Scope{a, b} {
		if _, err := c.invite(scope, "ada@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	ada := team.Person{ID: id.New(), Email: "Ada@example.org"}
	accept := func(end error) error {
		return pg.InTx(t.Context(), c.Pool, func(tx pgx.Tx) error {
			return errors.Join(c.AcceptTx(t.Context(), tx, ada), end)
		})
	}
	undone := errors.New("undone")
	if err := accept(undone); !errors.Is(err, undone) || c.members(a) != 1 || len(c.pending(b)) != 1 {
		t.Errorf("undone: %v, %d members", err, c.members(a))
	}
	if err := accept(nil); err != nil || c.members(a) != 2 || c.members(b) != 2 || len(c.pending(a)) != 0 {
		t.Errorf("accepted: %v, %d and %d members", err, c.members(a), c.members(b))
	}
	for range 10 {
		scope := teamtest.Admin(t, c.Pool, team.Pro)
		if _, err := c.invite(scope, "ada@example.org"); err != nil {
			t.Fatal(err)
		}
		waiting := c.pending(scope)[0].ID
		var accepted, cancelled error
		var wg sync.WaitGroup
		wg.Go(func() { accepted = accept(nil) })
		wg.Go(func() { cancelled = c.CancelInvitation(t.Context(), scope, waiting) })
		wg.Wait()
		joined := c.members(scope) == 2
		if accepted != nil || joined != errors.Is(cancelled, team.ErrInvitationNotFound) || !joined && cancelled != nil {
			t.Fatalf("joined %t; accepted %v, cancelled %v", joined, accepted, cancelled)
		}
	}
}
