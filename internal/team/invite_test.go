package team_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

func TestInvitedAddresses(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	for email, want := range map[string]string{
		"": "Email is required", "  ": "Email is required", "ada": "Please enter a valid email address",
		"ada@example": "Please enter a valid email address", "ada example.org": "Please enter a valid email address",
		"a@b@example.org": "Please enter a valid email address", "a\x00@example.org": "Please enter a valid email address",
		"Ada <ada@example.org>":              "Please enter a valid email address",
		"ada@münchen.example":                "Please enter a valid email address",
		"ädå@example.org":                    "Please enter a valid email address",
		"ada@-example.org":                   "Please enter a valid email address",
		"ada@example.org.":                   "Please enter a valid email address",
		strings.Repeat("a", 255) + "@ex.org": "Email must be less than 255 characters",
	} {
		if _, err := c.invite(scope, email); !errors.Is(err, team.ErrEmail) || fault.Of(err).Detail != want {
			t.Errorf("%q: %v", email, err)
		}
	}
	if status, err := c.invite(scope, "  Ada@Example.ORG "); status != team.Pending || err != nil {
		t.Errorf("%q, %v", status, err)
	}
	if list := c.pending(scope); len(list) != 1 || list[0].Email != "ada@example.org" {
		t.Errorf("pending %+v", list)
	}
}

func TestUserWithAnAccountJoinsAtOnce(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	bob := teamtest.Person()
	c.users["bob@example.org"] = bob
	if status, err := c.invite(scope, "Bob@example.org"); status != team.Accepted || err != nil {
		t.Fatalf("%q, %v", status, err)
	}
	if joined, err := c.Authorize(t.Context(), bob, scope.TeamID(), team.Use); err != nil || joined.Role() != team.Member {
		t.Errorf("%+v, %v", joined, err)
	}
	if _, err := c.invite(scope, "bob@example.org"); !errors.Is(err, team.ErrMemberAlready) {
		t.Errorf("again: %v", err)
	}
	if jobs := c.jobs.Take(); len(c.pending(scope)) != 0 || len(jobs) != 0 {
		t.Errorf("pending %v, jobs %v", c.pending(scope), jobs)
	}
}

func TestInvitationIsAcceptedAtTheFirstSignIn(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	for _, email := range []string{"ada@example.org", "late@example.org"} {
		if _, err := c.invite(scope, email); err != nil {
			t.Fatal(err)
		}
	}
	info := c.signIn("ADA@example.org")
	if len(info.Teams) != 2 || info.Teams[1].ID != scope.TeamID() || info.Teams[1].Role != team.Member {
		t.Errorf("teams %+v", info.Teams)
	}
	if other := c.signIn("ada+x@example.org"); len(other.Teams) != 1 {
		t.Errorf("another address got in: %+v", other.Teams)
	}
	c.clock.Advance(14 * 24 * time.Hour)
	if late := c.signIn("late@example.org"); len(late.Teams) != 1 || len(c.pending(scope)) != 0 {
		t.Errorf("after 14 days: %+v, %+v", late.Teams, c.pending(scope))
	}
	if _, err := c.invite(scope, "late@example.org"); err != nil {
		t.Fatal(err)
	}
	if again := c.signIn("late@example.org"); len(again.Teams) != 2 {
		t.Errorf("after it was renewed: %+v", again.Teams)
	}
}

func TestCancelledAndDowngradedInvitationsLetNobodyIn(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope, other := teamtest.Admin(t, c.Pool, team.Pro), teamtest.Admin(t, c.Pool, team.Pro)
	if _, err := c.invite(scope, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	waiting := c.pending(scope)[0].ID
	if err := c.CancelInvitation(t.Context(), other, waiting); !errors.Is(err, team.ErrInvitationNotFound) {
		t.Errorf("another team cancels: %v", err)
	}
	if err := c.CancelInvitation(t.Context(), scope, waiting); err != nil {
		t.Fatal(err)
	}
	if err := c.CancelInvitation(t.Context(), scope, waiting); !errors.Is(err, team.ErrInvitationNotFound) {
		t.Errorf("again: %v", err)
	}
	if info := c.signIn("ada@example.org"); len(info.Teams) != 1 {
		t.Errorf("cancelled: %+v", info.Teams)
	}
	if _, err := c.invite(scope, "bob@example.org"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pool.Exec(t.Context(), `update team set plan = 'hobby', max_members = null where id = $1`, scope.TeamID()); err != nil {
		t.Fatal(err)
	}
	if info := c.signIn("bob@example.org"); len(info.Teams) != 1 {
		t.Errorf("downgraded: %+v", info.Teams)
	}
	if _, err := c.invite(scope, "eve@example.org"); !errors.Is(err, team.ErrInvitePlan) {
		t.Errorf("a hobby team invites: %v", err)
	}
	personal := teamtest.Admin(t, c.Pool, team.Hobby)
	if _, err := c.Invitations(t.Context(), personal); !errors.Is(err, team.ErrInvitePlan) {
		t.Errorf("a personal team lists invitations: %v", err)
	}
}

// However many are asked at once, members and invitations stay within the seats.
func TestSeatsAreNeverOversold(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro) // 5 seats, one taken
	for i := range 64 {
		if i%2 == 0 {
			c.users[fmt.Sprintf("u%d@example.org", i)] = teamtest.Person()
		}
	}
	var invited, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			_, err := c.invite(scope, fmt.Sprintf("u%d@example.org", i))
			switch {
			case err == nil:
				invited.Add(1)
			case errors.Is(err, team.ErrSeats):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if invited.Load() != 4 || refused.Load() != 60 || c.members(scope)+len(c.pending(scope)) != 5 {
		t.Errorf("%d invited, %d refused, %d members, %d pending", invited.Load(), refused.Load(), c.members(scope), len(c.pending(scope)))
	}
	if list := c.pending(scope); len(list) > 0 {
		if _, err := c.invite(scope, list[0].Email); err != nil {
			t.Errorf("renewing in a full team: %v", err)
		}
	}
	if _, err := c.Pool.Exec(t.Context(), `update team set max_members = 1 where id = $1`, scope.TeamID()); err != nil {
		t.Fatal(err)
	}
	for _, inv := range c.pending(scope) {
		if info := c.signIn(inv.Email); len(info.Teams) != 1 {
			t.Errorf("%s got a seat that is gone", inv.Email)
		}
	}
}

// However many invited people sign in at once, nobody gets a seat that is taken.
func TestTheLastSeatIsTakenOnce(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	for i := range 4 { // with the admin all five seats
		if _, err := c.invite(admin, fmt.Sprintf("u%d@example.org", i)); err != nil {
			t.Fatal(err)
		}
	}
	// Three of the seats go away while the invitations are out: one is left.
	if _, err := c.Pool.Exec(t.Context(), `update team set max_members = 2 where id = $1`, admin.TeamID()); err != nil {
		t.Fatal(err)
	}
	people := make([]team.Person, 4)
	for i := range people {
		people[i] = team.Person{ID: id.New(), Email: fmt.Sprintf("u%d@example.org", i)}
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 64 {
		wg.Go(func() {
			<-start
			err := pg.InTx(t.Context(), c.Pool, func(tx pgx.Tx) error { return c.AcceptTx(t.Context(), tx, people[i%4]) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	if n := c.members(admin); n != 2 {
		t.Errorf("%d members on 2 seats", n)
	}
}

func TestInvitingIsLimitedByTheHour(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	scope := teamtest.Admin(t, c.Pool, team.Pro)
	for range 20 { // renewing counts: each sends a mail
		if _, err := c.invite(scope, "ada@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.invite(scope, "ada@example.org"); !errors.Is(err, team.ErrInviteRate) {
		t.Errorf("the 21st in an hour: %v", err)
	}
	c.clock.SetOffset(48 * time.Hour) // moved business time opens no gate
	if _, err := c.invite(scope, "ada@example.org"); !errors.Is(err, team.ErrInviteRate) {
		t.Errorf("two days of business time later: %v", err)
	}
	c.clock.Advance(time.Hour)
	if _, err := c.invite(scope, "ada@example.org"); err != nil || len(c.pending(scope)) != 1 {
		t.Errorf("an hour later: %v", err)
	}
}
