package team_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

const week = 7 * 24 * time.Hour

// A crew is a Pro team with its subscription: two admins, a member and a
// viewer; the second admin pays.
type crew struct {
	*club
	first, payer, mate, guest team.Scope
	mu                        sync.Mutex
	duns                      []team.Dun
	plans                     []team.Plan
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{club: newClub(t)}
	c.first = teamtest.Admin(t, c.Pool, team.Pro)
	c.payer = teamtest.Join(t, c.Pool, c.first.TeamID(), team.Admin)
	c.mate = teamtest.Join(t, c.Pool, c.first.TeamID(), team.Member)
	c.guest = teamtest.Join(t, c.Pool, c.first.TeamID(), team.Viewer)
	_, err := c.Pool.Exec(t.Context(), `update team set subscription_id = 'sub_1', subscriber_id = $2 where id = $1`,
		c.first.TeamID(), c.payer.UserID())
	c.must(err)
	c.Hooks.OnUnpaid = func(_ context.Context, _ pgx.Tx, d team.Dun) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.duns = append(c.duns, d)
		return nil
	}
	c.Hooks.OnPlan = func(_ context.Context, _ pgx.Tx, _ uuid.UUID, plan team.Plan, _ time.Time) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.plans = append(c.plans, plan)
		return nil
	}
	return c
}

func (c *crew) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// locked runs what a reading of the subscription does.
func (c *crew) locked(do func(ctx context.Context, tx pgx.Tx) error) {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	err := pg.InTx(ctx, c.Pool, func(tx pgx.Tx) error {
		if err := team.LockRowTx(ctx, tx, c.first.TeamID()); err != nil {
			return err
		}
		return do(ctx, tx)
	})
	if err != nil {
		c.t.Error(err)
	}
}

func (c *crew) unpaid(sub string) {
	c.locked(func(ctx context.Context, tx pgx.Tx) error {
		return c.UnpaidTx(ctx, tx, c.first.TeamID(), sub, c.clock.Now())
	})
}

func (c *crew) paid(sub string, seats int) {
	c.locked(func(ctx context.Context, tx pgx.Tx) error {
		return c.PaidTx(ctx, tx, c.first.TeamID(), sub, seats, c.clock.Now())
	})
}

func (c *crew) ended(sub string) {
	c.locked(func(ctx context.Context, tx pgx.Tx) error {
		return c.EndPlanTx(ctx, tx, c.first.TeamID(), sub, c.clock.Now())
	})
}

// sweep does what is due of graces.
func (c *crew) sweep() {
	c.t.Helper()
	due, err := c.DueGraces(c.t.Context(), c.clock.Now(), 10)
	c.must(err)
	for _, g := range due {
		c.must(c.FollowGrace(c.t.Context(), g, c.clock.Now()))
	}
}

// want checks what each person sees of the team.
func (c *crew) want(when string, plan team.Plan, seats int, roles ...team.Role) {
	c.t.Helper()
	for i, scope := range []team.Scope{c.first, c.payer, c.mate, c.guest} {
		info, err := c.UserInfo(c.t.Context(), team.Person{ID: scope.UserID(), Email: scope.Email()})
		c.must(err)
		at := slices.IndexFunc(info.Teams, func(t team.Team) bool { return t.ID == c.first.TeamID() })
		if at < 0 {
			c.t.Fatalf("%s: person %d lost the team", when, i)
		}
		got, max := info.Teams[at], 0
		if got.MaxMembers != nil {
			max = *got.MaxMembers
		}
		if got.Plan != plan || max != seats || got.Role != roles[i] {
			c.t.Errorf("%s: person %d sees %s with %d seats as %s, want %s with %d as %s", when, i, got.Plan, max, got.Role, plan, seats, roles[i])
		}
	}
}

func TestAnUnpaidTeamKeepsEverythingForSevenDays(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	all := []team.Role{team.Admin, team.Admin, team.Member, team.Viewer}
	one := []team.Role{team.Viewer, team.Admin, team.Viewer, team.Viewer}
	if _, err := c.invite(c.first, "new@example.org"); err != nil {
		t.Fatal(err)
	}
	invitation := c.pending(c.first)[0].ID
	began := c.clock.Now()
	c.unpaid("sub_1")
	c.clock.Advance(24 * time.Hour)
	c.unpaid("sub_1") // tried again: the first failure counts
	c.sweep()
	c.want("in the grace", team.Pro, 5, all...)
	if len(c.duns) != 1 || c.duns[0].Last || !c.duns[0].Until.Equal(began.Add(week)) {
		t.Errorf("told %+v", c.duns)
	}
	c.clock.Advance(72*time.Hour - time.Microsecond)
	c.sweep()
	if len(c.duns) != 1 {
		t.Errorf("told early: %+v", c.duns)
	}
	c.clock.Advance(time.Microsecond)
	c.sweep()
	c.sweep()
	if len(c.duns) != 2 || !c.duns[1].Last || !c.duns[1].At.Equal(began.Add(week-72*time.Hour)) {
		t.Errorf("told %+v", c.duns)
	}
	c.clock.Advance(72*time.Hour - time.Microsecond)
	c.sweep()
	c.want("a microsecond before the end", team.Pro, 5, all...)
	c.clock.Advance(time.Microsecond)
	c.sweep()
	c.want("after the grace", team.Hobby, 0, one...)
	if waits, err := c.InvitationWaitsTx(t.Context(), c.Pool, invitation); err != nil || waits {
		t.Errorf("the link of a cancelled invitation lives (%v)", err)
	}
	c.unpaid("sub_1")
	c.ended("sub_1")
	c.sweep()
	c.want("after more readings", team.Hobby, 0, one...)
	payer, err := c.Authorize(t.Context(), team.Person{ID: c.payer.UserID()}, c.first.TeamID(), team.Manage)
	c.must(err)
	if _, err := c.SetRole(t.Context(), payer, c.mate.UserID(), team.Admin); !errors.Is(err, team.ErrRolesUnpaid) {
		t.Errorf("a role was given without a payment: %v", err)
	}
	if _, err := c.invite(payer, "other@example.org"); !errors.Is(err, team.ErrInvitePlan) {
		t.Errorf("invited without a plan: %v", err)
	}
	c.paid("sub_1", 7)
	c.paid("sub_1", 7)
	c.want("after the payment", team.Pro, 7, all...)
	if !slices.Equal(c.plans, []team.Plan{team.Hobby, team.Pro}) {
		t.Errorf("the plans were %v", c.plans)
	}
	c.unpaid("sub_1")
	if len(c.duns) != 3 || !c.duns[2].Until.Equal(c.clock.Now().Add(week)) {
		t.Errorf("a second grace was told as %+v", c.duns[2:])
	}
}

func TestAPaymentEndsTheGrace(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	c.unpaid("sub_1")
	c.clock.Advance(5 * 24 * time.Hour)
	c.sweep()
	c.paid("sub_1", 5)
	c.clock.Advance(30 * 24 * time.Hour)
	c.sweep()
	c.want("a month after the payment", team.Pro, 5, team.Admin, team.Admin, team.Member, team.Viewer)
	if len(c.plans) != 0 || len(c.duns) != 2 {
		t.Errorf("plans %v, told %v", c.plans, c.duns)
	}
}

func TestAnEndedSubscriptionEndsThePlanAtOnce(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	c.unpaid("sub_of_another_team")
	c.ended("sub_of_another_team")
	c.want("after readings of another subscription", team.Pro, 5, team.Admin, team.Admin, team.Member, team.Viewer)
	// The subscriber is no admin any more: the longest-standing one stays.
	if _, err := c.SetRole(t.Context(), c.first, c.payer.UserID(), team.Member); err != nil {
		t.Fatal(err)
	}
	c.ended("sub_1")
	c.want("after the end", team.Hobby, 0, team.Admin, team.Viewer, team.Viewer, team.Viewer)
	if len(c.duns) != 0 {
		t.Errorf("told %v", c.duns)
	}
}

// A downgrade and a payment at once come to one of the two in full, and the
// payment last read wins.
func TestAPaymentRacesTheEndOfTheGrace(t *testing.T) {
	t.Parallel()
	for range 5 {
		c := newCrew(t)
		c.unpaid("sub_1")
		c.clock.Advance(week)
		due, err := c.DueGraces(t.Context(), c.clock.Now(), 10)
		c.must(err)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if err := c.FollowGrace(context.WithoutCancel(t.Context()), due[0], c.clock.Now()); err != nil {
					t.Error(err)
				}
			})
			wait.Go(func() { c.paid("sub_1", 5) })
		}
		wait.Wait()
		c.want("after the race", team.Pro, 5, team.Admin, team.Admin, team.Member, team.Viewer)
		if downs := len(c.plans); downs != 0 && downs != 2 {
			t.Errorf("the plans were %v", c.plans)
		}
	}
}
