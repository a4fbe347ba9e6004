package team_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// A club is a service that remembers what its hooks were told.
type club struct {
	*team.Service
	t     *testing.T
	clock *clock.Manual
	mu    sync.Mutex
	users map[string]team.Person // verified, by address
	jobs  *job.Recorder
	links []team.InviteLink
	mails []mail.Message
	down  error // of the mail server
	log   bytes.Buffer
	left  []uuid.UUID
	ended []team.Ending
	block error // of BlockDelete
	owed  error // of OnDelete
}

func newClub(t *testing.T) *club {
	t.Helper()
	c := &club{t: t, clock: clock.Fixed(teamtest.Start), users: map[string]team.Person{}, jobs: &job.Recorder{}}
	logger := slog.New(slog.NewTextHandler(&c.log, nil))
	c.Service = team.New(team.Deps{Pool: pgtest.New(t), Clock: c.clock.Clock, Jobs: c.jobs, Mail: c, Logger: logger, Hooks: team.Hooks{
		FindUser: func(_ context.Context, _ pgx.Tx, email string) (team.Person, bool, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			p, ok := c.users[email]
			return p, ok, nil
		},
		InviteLink: func(_ context.Context, l team.InviteLink) (string, error) {
			c.links = append(c.links, l)
			return "https://homeport.example/join?n=" + strconv.Itoa(len(c.links)), nil
		},
		Emails: func(_ context.Context, _ pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error) {
			emails := map[uuid.UUID]string{}
			for _, u := range users {
				emails[u] = "user-" + id.First(u) + "@example.org"
			}
			return emails, nil
		},
		OnLeave: func(_ context.Context, _ pgx.Tx, _, userID uuid.UUID, _ time.Time) error {
			c.left = append(c.left, userID)
			return nil
		},
		BlockDelete: func(context.Context, pgx.Tx, uuid.UUID, time.Time) error { return c.block },
		OnDelete: func(_ context.Context, _ pgx.Tx, end team.Ending) error {
			c.ended = append(c.ended, end)
			return c.owed
		},
	}})
	return c
}

func (c *club) invite(scope team.Scope, email string) (team.InviteStatus, error) {
	return c.Invite(c.t.Context(), scope, email, idem.Request{})
}

func (c *club) members(scope team.Scope) int {
	c.t.Helper()
	list, err := c.Members(c.t.Context(), scope)
	if err != nil {
		c.t.Fatal(err)
	}
	return len(list)
}

func (c *club) pending(scope team.Scope) []team.Invitation {
	c.t.Helper()
	list, err := c.Invitations(c.t.Context(), scope)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}

// signIn is a person's first call.
func (c *club) signIn(email string) team.UserInfo {
	c.t.Helper()
	info, err := c.UserInfo(c.t.Context(), team.Person{ID: id.New(), Email: email})
	if err != nil {
		c.t.Fatal(err)
	}
	return info
}

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

func TestRemovingMembers(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	if err := c.RemoveMember(t.Context(), admin, admin.UserID()); !errors.Is(err, team.ErrLastMember) {
		t.Errorf("the last member: %v", err)
	}
	second := teamtest.Join(t, c.Pool, admin.TeamID(), team.Admin)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	viewer := teamtest.Join(t, c.Pool, admin.TeamID(), team.Viewer)
	personal := teamtest.Admin(t, c.Pool, team.Hobby)
	for _, tt := range []struct {
		name string
		by   team.Scope
		who  uuid.UUID
		want error
	}{
		{"from a personal team", personal, personal.UserID(), team.ErrPersonalMember},
		{"an admin themselves", admin, admin.UserID(), team.ErrAdminSelf},
		{"a stranger", admin, personal.UserID(), team.ErrMemberNotFound},
		{"nobody", admin, id.New(), team.ErrMemberNotFound},
		{"a member somebody else", member, viewer.UserID(), team.ErrForbidden},
		{"a viewer an admin", viewer, admin.UserID(), team.ErrForbidden},
		{"a viewer themselves", viewer, viewer.UserID(), nil},
		{"an admin a member", admin, member.UserID(), nil},
		{"the same again", admin, member.UserID(), team.ErrMemberNotFound},
		{"an admin an admin", admin, second.UserID(), nil},
		{"who is out", second, admin.UserID(), team.ErrNotFound},
		{"the last one", admin, admin.UserID(), team.ErrLastMember},
	} {
		if err := c.RemoveMember(t.Context(), tt.by, tt.who); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if len(c.left) != 3 {
		t.Errorf("told of %d who left, want 3", len(c.left))
	}
	for err, text := range map[*fault.Error]string{
		team.ErrPersonalMember: "Cannot remove member from personal team",
		team.ErrLastMember:     "Cannot remove the last team member",
		team.ErrAdminSelf:      "Admins cannot remove themselves",
	} {
		if err.Detail != text {
			t.Errorf("%q, want %q", err.Detail, text)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	for _, tt := range []struct {
		name string
		by   team.Scope
		who  uuid.UUID
		role team.Role
		want error
	}{
		{"no role", admin, member.UserID(), "owner", team.ErrRole},
		{"by a member", member, member.UserID(), team.Admin, team.ErrForbidden},
		{"a stranger", admin, id.New(), team.Viewer, team.ErrMemberNotFound},
		{"the last admin", admin, admin.UserID(), team.Member, team.ErrLastAdmin},
		{"the last admin stays", admin, admin.UserID(), team.Admin, nil},
		{"a member to admin", admin, member.UserID(), team.Admin, nil},
		{"one of two admins", admin, admin.UserID(), team.Viewer, nil},
		{"by who was admin", admin, member.UserID(), team.Viewer, team.ErrForbidden},
	} {
		m, err := c.SetRole(t.Context(), tt.by, tt.who, tt.role)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (m.UserID != tt.who || m.Role != tt.role) {
			t.Errorf("%s: answered %+v", tt.name, m)
		}
	}
}

// Admins who demote and remove each other and step down at once leave one of them.
func TestOneAdminAlwaysStays(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	for range 4 {
		first := teamtest.Admin(t, c.Pool, team.Pro)
		if _, err := c.Pool.Exec(t.Context(), `update team set max_members = 64 where id = $1`, first.TeamID()); err != nil {
			t.Fatal(err)
		}
		admins := []team.Scope{first}
		for range 7 {
			admins = append(admins, teamtest.Join(t, c.Pool, first.TeamID(), team.Admin))
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			by, who := admins[i%8], admins[(i+1+i/8)%8]
			wg.Go(func() {
				<-start
				var err error
				switch i % 3 {
				case 0:
					_, err = c.SetRole(t.Context(), by, who.UserID(), team.Member)
				case 1:
					err = c.RemoveMember(t.Context(), by, who.UserID())
				case 2:
					_, err = c.SetRole(t.Context(), by, by.UserID(), team.Viewer)
				}
				for _, refusal := range []error{
					nil, team.ErrLastAdmin, team.ErrLastMember, team.ErrAdminSelf, team.ErrMemberNotFound,
					team.ErrForbidden, team.ErrNotFound,
				} {
					if errors.Is(err, refusal) {
						return
					}
				}
				t.Error(err)
			})
		}
		close(start)
		wg.Wait()
		var left int
		err := c.Pool.QueryRow(t.Context(), `select count(*) from membership where team_id = $1 and role = 'admin'`, first.TeamID()).Scan(&left)
		if err != nil || left == 0 {
			t.Fatalf("%d admins, %v", left, err)
		}
	}
}

func TestDeletingATeam(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	personal := teamtest.Admin(t, c.Pool, team.Hobby)
	if err := c.Delete(t.Context(), personal); !errors.Is(err, team.ErrPersonal) {
		t.Errorf("a personal team: %v", err)
	}
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	info, err := c.UserInfo(t.Context(), team.Person{ID: admin.UserID(), Email: admin.Email()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.invite(admin, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), member); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("by a member: %v", err)
	}
	c.block = errors.New("pods run")
	if err := c.Delete(t.Context(), admin); !errors.Is(err, c.block) {
		t.Errorf("with pods: %v", err)
	}
	c.block, c.owed = nil, errors.New("owes money")
	if err := c.Delete(t.Context(), admin); !errors.Is(err, c.owed) || len(c.pending(admin)) != 1 {
		t.Errorf("owing money: %v, pending %v", err, c.pending(admin))
	}
	c.ended, c.owed = nil, nil
	if err := c.Delete(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	want := team.Ending{TeamID: admin.TeamID(), Name: "Test team", By: admin.UserID(), Personal: info.Personal.ID, At: c.clock.Now()}
	if len(c.ended) != 1 || c.ended[0] != want {
		t.Errorf("told of %+v, want %+v", c.ended, want)
	}
	if err := c.Delete(t.Context(), admin); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if after := c.signIn("ada@example.org"); len(after.Teams) != 1 {
		t.Errorf("an invitation outlived its team: %+v", after.Teams)
	}
}

// Who deletes a team without ever having asked who they are has a personal
// team all the same: what the team owned goes there.
func TestDeleterGetsAPersonalTeam(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	if err := c.Delete(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	info, err := c.UserInfo(t.Context(), team.Person{ID: admin.UserID(), Email: admin.Email()})
	if err != nil || len(info.Teams) != 1 || len(c.ended) != 1 || c.ended[0].Personal != info.Personal.ID {
		t.Errorf("told of %+v, has %+v, %v", c.ended, info.Teams, err)
	}
}

func TestRenaming(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	for name, want := range map[string]error{" ": team.ErrName, strings.Repeat("é", 81): team.ErrName, " Docks\n": nil} {
		got, err := c.Change(t.Context(), admin, team.Change{Name: &name})
		if !errors.Is(err, want) || err == nil && (got.Name != "Docks" || got.ID != admin.TeamID() || got.Role != team.Admin) {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	info, err := c.UserInfo(t.Context(), team.Person{ID: admin.UserID(), Email: admin.Email()})
	if err != nil || info.Teams[1].Name != "Docks" {
		t.Errorf("%+v, %v", info.Teams, err)
	}
}
