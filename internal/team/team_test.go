package team_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

func TestFirstCallsAtOnceMakeOnePersonalTeam(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var mu sync.Mutex
	opened := map[uuid.UUID]int{}
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock, Hooks: team.Hooks{
		OpenWallet: func(_ context.Context, _ pgx.Tx, teamID uuid.UUID, _ time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			opened[teamID]++
			return nil
		},
	}})
	p := team.Person{ID: id.New(), Email: "ada@example.org"}
	var wg sync.WaitGroup
	infos := make([]team.UserInfo, 64)
	for i := range infos {
		wg.Go(func() {
			info, err := s.UserInfo(t.Context(), p)
			if err != nil {
				t.Error(err)
			}
			infos[i] = info
		})
	}
	wg.Wait()
	for _, info := range infos {
		if diff := cmp.Diff(infos[0], info); diff != "" {
			t.Fatalf("two answers differ: %s", diff)
		}
	}
	got := infos[0]
	want := team.Team{
		ID: got.Personal.ID, Name: "ada's team", Plan: team.Hobby, IsPersonal: true,
		Role: team.Admin, CreatedAt: teamtest.Start,
	}
	if diff := cmp.Diff([]team.Team{want}, got.Teams); diff != "" {
		t.Error(diff)
	}
	if len(opened) != 1 || opened[want.ID] != 1 {
		t.Errorf("wallets opened: %v, want one, of the team", opened)
	}
}

func TestPersonalTeamComesFirst(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start.Add(time.Hour)).Clock})
	scope := teamtest.Admin(t, pool, team.Pro)
	info, err := s.UserInfo(t.Context(), team.Person{ID: scope.UserID(), Email: scope.Email()})
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Teams) != 2 || !info.Teams[0].IsPersonal || info.Teams[1].ID != scope.TeamID() {
		t.Errorf("teams = %+v", info.Teams)
	}
	if info.Teams[1].MaxMembers == nil || *info.Teams[1].MaxMembers != 5 {
		t.Errorf("seats = %v", info.Teams[1].MaxMembers)
	}
}

func TestFailedWalletLeavesNoTeam(t *testing.T) {
	t.Parallel()
	fail := true
	s := team.New(team.Deps{Pool: pgtest.New(t), Clock: clock.Fixed(teamtest.Start).Clock, Hooks: team.Hooks{
		OpenWallet: func(context.Context, pgx.Tx, uuid.UUID, time.Time) error {
			if fail {
				return errors.New("no wallet today")
			}
			return nil
		},
	}})
	p := teamtest.Person()
	if _, err := s.UserInfo(t.Context(), p); err == nil {
		t.Fatal("a team was made without a wallet")
	}
	fail = false
	if _, err := s.UserInfo(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestLongAddressMakesAValidName(t *testing.T) {
	t.Parallel()
	s := team.New(team.Deps{Pool: pgtest.New(t), Clock: clock.Fixed(teamtest.Start).Clock})
	info, err := s.UserInfo(t.Context(), team.Person{ID: id.New(), Email: strings.Repeat("é", 200) + "@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(info.Personal.Name)); n != 80 || !strings.HasSuffix(info.Personal.Name, "'s team") {
		t.Errorf("name %q has %d characters", info.Personal.Name, n)
	}
}

func TestAuthorizeByRole(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock})
	admin := teamtest.Admin(t, pool, team.Pro)
	member := teamtest.Join(t, pool, admin.TeamID(), team.Member)
	viewer := teamtest.Join(t, pool, admin.TeamID(), team.Viewer)
	stranger := teamtest.Admin(t, pool, team.Pro)
	for _, tt := range []struct {
		name string
		who  team.Scope
		need team.Right
		want error
	}{
		{"admin reads", admin, team.Read, nil},
		{"admin uses", admin, team.Use, nil},
		{"admin manages", admin, team.Manage, nil},
		{"admin funds", admin, team.Fund, nil},
		{"member reads", member, team.Read, nil},
		{"member uses", member, team.Use, nil},
		{"member manages", member, team.Manage, team.ErrForbidden},
		{"member funds", member, team.Fund, nil},
		{"viewer reads", viewer, team.Read, nil},
		{"viewer uses", viewer, team.Use, team.ErrForbidden},
		{"viewer manages", viewer, team.Manage, team.ErrForbidden},
		{"viewer funds", viewer, team.Fund, nil},
		{"stranger reads", stranger, team.Read, team.ErrNotFound},
		{"stranger manages", stranger, team.Manage, team.ErrNotFound},
	} {
		p := team.Person{ID: tt.who.UserID(), Email: tt.who.Email()}
		scope, err := s.Authorize(t.Context(), p, admin.TeamID(), tt.need)
		if !errors.Is(err, tt.want) || (tt.want == nil && err != nil) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (scope.TeamID() != admin.TeamID() || scope.Role() != tt.who.Role() || scope.Plan() != team.Pro) {
			t.Errorf("%s: scope %+v", tt.name, scope)
		}
		if err != nil && scope != (team.Scope{}) {
			t.Errorf("%s: a refused scope is not zero", tt.name)
		}
		var proven team.Scope
		err = team.ClaimOf(p, admin.TeamID(), tt.need).Read(t.Context(), pool, `select 1`, nil, func(s team.Scope, rows pgx.Rows) error {
			if !rows.Next() {
				t.Errorf("%s: the rows are not there: %v", tt.name, rows.Err())
			}
			proven = s
			return nil
		})
		if !errors.Is(err, tt.want) || (tt.want == nil && err != nil) || proven != scope {
			t.Errorf("%s: the claim gives %+v, %v, want %+v, %v", tt.name, proven, err, scope, tt.want)
		}
	}
}

// TestClaimedReadsTakeTurns: however many clients there are, no more reads than
// that are with the database at once; all are answered, and one whose caller is
// gone asks nothing.
func TestClaimedReadsTakeTurns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	admin := teamtest.Admin(t, pool, team.Pro)
	c := team.ClaimOf(team.Person{ID: admin.UserID()}, admin.TeamID(), team.Read)
	const busy = `select count(*), pg_sleep(0.02) from pg_stat_activity where state = 'active' and query like '%pg_sleep(0.02)%' and datname = current_database()`
	var most atomic.Int64
	var all errgroup.Group
	for range 8 * team.ReadsAtOnce {
		all.Go(func() error {
			return c.Read(t.Context(), pool, busy, nil, func(_ team.Scope, rows pgx.Rows) error {
				var n int64
				_, err := pgx.ForEachRow(rows, []any{&n, nil}, func() error {
					for {
						if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
							return nil
						}
					}
				})
				return err
			})
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n < 2 || n > int64(team.ReadsAtOnce) {
		t.Errorf("%d reads were at the database at once, of at most %d", n, team.ReadsAtOnce)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Read(gone, pool, `select 1`, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a read for nobody: %v", err)
	}
}

func TestUnknownAndForeignTeamsLookTheSame(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock})
	mine, other := teamtest.Admin(t, pool, team.Pro), teamtest.Admin(t, pool, team.Pro)
	p := team.Person{ID: mine.UserID()}
	_, foreign := s.Authorize(t.Context(), p, other.TeamID(), team.Read)
	_, unknown := s.Authorize(t.Context(), p, id.New(), team.Read)
	if foreign == nil || foreign.Error() != unknown.Error() {
		t.Errorf("foreign: %v, unknown: %v", foreign, unknown)
	}
	if _, err := pool.Exec(t.Context(), `update team set state = 'deleted', deleted_at = $2 where id = $1`,
		mine.TeamID(), teamtest.Start); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authorize(t.Context(), p, mine.TeamID(), team.Read); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

// What changed between Authorize and the write is seen by the write.
func TestLockReadsRoleAndPlanAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	admin := teamtest.Admin(t, pool, team.Pro)
	lock := func() (scope team.Scope, err error) {
		err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			scope, err = team.LockTx(t.Context(), tx, admin)
			return err
		})
		return scope, err
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, admin.TeamID()); err != nil {
			t.Fatal(err)
		}
	}
	exec(`update team set plan = 'hobby' where id = $1`)
	if scope, err := lock(); err != nil || scope.Plan() != team.Hobby {
		t.Errorf("after a downgrade: plan %q, error %v", scope.Plan(), err)
	}
	exec(`update membership set role = 'viewer' where team_id = $1`)
	if _, err := lock(); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("after a demotion: %v", err)
	}
	exec(`delete from membership where team_id = $1`)
	if _, err := lock(); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("after a removal: %v", err)
	}
}

// A scope made for reading does not write.
func TestRequireRaisesTheNeed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	admin := teamtest.Admin(t, pool, team.Pro)
	viewer := teamtest.Join(t, pool, admin.TeamID(), team.Viewer)
	if _, err := viewer.Require(team.Use); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a viewer's scope may use: %v", err)
	}
	if _, err := (team.Scope{}).Require(team.Read); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("the zero scope may read: %v", err)
	}
	member := teamtest.Join(t, pool, admin.TeamID(), team.Member)
	using, err := member.Require(team.Use)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `update membership set role = 'viewer' where user_id = $1`, member.UserID()); err != nil {
		t.Fatal(err)
	}
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := team.LockTx(t.Context(), tx, using)
		return err
	})
	if !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a demoted member may use: %v", err)
	}
}

// A write that waited for the lock acts on what the holder left behind.
func TestLockWaitsAndSeesTheHoldersChange(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	admin := teamtest.Admin(t, pool, team.Pro)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := team.LockTx(t.Context(), holder, admin); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `update membership set role = 'member' where team_id = $1`, admin.TeamID()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := team.LockTx(t.Context(), tx, admin)
			return err
		})
	}()
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, team.ErrForbidden) {
		t.Errorf("the waiting write got %v, want %v", err, team.ErrForbidden)
	}
}

func TestMembersShowAddresses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	admin := teamtest.Admin(t, pool, team.Pro)
	member := teamtest.Join(t, pool, admin.TeamID(), team.Member)
	emails := map[uuid.UUID]string{admin.UserID(): admin.Email(), member.UserID(): member.Email()}
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock, Hooks: team.Hooks{
		Emails: func(context.Context, pgx.Tx, []uuid.UUID) (map[uuid.UUID]string, error) { return emails, nil },
	}})
	members, err := s.Members(t.Context(), admin)
	if err != nil || len(members) != 2 {
		t.Fatalf("members %v, error %v", members, err)
	}
	for _, m := range members {
		if m.Email == "" || m.Email != emails[m.UserID] {
			t.Errorf("member %s has address %q", m.UserID, m.Email)
		}
	}
}

func TestPlanOfUnknownTeam(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := team.PlanTx(t.Context(), pool, id.New()); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	admin := teamtest.Admin(t, pool, team.Pro)
	if plan, err := team.PlanTx(t.Context(), pool, admin.TeamID()); err != nil || plan != team.Pro {
		t.Errorf("plan %q, error %v", plan, err)
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
