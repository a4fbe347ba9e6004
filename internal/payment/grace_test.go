package payment_test

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
)

// status has the bank's subscription stand otherwise, and tells of it.
func (f *found) status(to string, edit ...func(*payment.Subscription)) {
	f.t.Helper()
	f.bank.change("sub_1", func(s *payment.Subscription) {
		s.Status = to
		for _, e := range edit {
			e(s)
		}
	})
	f.mustReceive(subscription("customer.subscription.updated", "sub_1"))
	f.read()
}

func (f *found) wantPlan(when string, plan team.Plan) {
	f.t.Helper()
	if got := f.teams()[0]; got.Plan != plan || got.Role != team.Admin {
		f.t.Errorf("%s the payer sees %s as %s, want %s", when, got.Plan, got.Role, plan)
	}
}

func (f *found) until() (at time.Time) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), `select coalesce(grace_until, 'epoch') from team where id = $1`, f.team).Scan(&at); err != nil {
		f.t.Fatal(err)
	}
	return at.UTC()
}

func (f *found) followGraces() {
	f.t.Helper()
	if err := f.pay.FollowGraces(f.t.Context()); err != nil {
		f.t.Error(err)
	}
}

// next is the subscription's second month.
func next(s *payment.Subscription) {
	s.PeriodStartAt, s.PeriodEndAt = s.PeriodEndAt, s.PeriodEndAt.AddDate(0, 1, 0)
}

func TestStatusesOfASubscriptionMakeThePlan(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	april := noon.AddDate(0, 1, 0)
	f.clock.Advance(april.Sub(noon) + 3*time.Hour)
	f.status("past_due", next)
	if got := f.until(); !got.Equal(april.AddDate(0, 0, 7)) {
		t.Errorf("the grace ends %s, want a week from the month's start", got)
	}
	f.clock.Advance(24 * time.Hour)
	f.status("unpaid")
	if got := f.until(); !got.Equal(april.AddDate(0, 0, 7)) {
		t.Errorf("the grace moved to %s", got)
	}
	f.wantPlan("in the grace", team.Pro)
	f.clock.Advance(6*24*time.Hour - 3*time.Hour - time.Microsecond)
	f.followGraces()
	f.wantPlan("before the end", team.Pro)
	f.clock.Advance(time.Microsecond)
	f.followGraces()
	f.followGraces()
	f.wantPlan("after the grace", team.Hobby)
	f.status("past_due")
	f.wantPlan("after another decline", team.Hobby)
	f.status("active")
	f.wantPlan("after the payment", team.Pro)
	f.wantTeam(2)
	f.status("canceled")
	f.wantPlan("after the end", team.Hobby)
}

// An event of a payment that got lost costs nobody the plan, and a processor
// that cannot be asked ends none.
func TestAGraceIsNotEndedUnseen(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.status("past_due")
	f.clock.Advance(8 * 24 * time.Hour)
	f.bank.down = true
	if err := f.pay.FollowGraces(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	f.wantPlan("while the bank is down", team.Pro)
	f.bank.down = false
	f.bank.change("sub_1", func(s *payment.Subscription) { s.Status = "active" })
	f.followGraces()
	f.wantPlan("after a payment nobody told of", team.Pro)
	if got := f.until(); got.Unix() != 0 {
		t.Errorf("the grace goes on until %s", got)
	}
}

// A payment that fails within a month counts from when it was last seen paid.
func TestAFailureWithinTheMonth(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.clock.Advance(20 * 24 * time.Hour)
	f.status("active")
	seen := f.clock.Now()
	f.clock.Advance(time.Hour)
	f.status("past_due")
	if got := f.until(); !got.Equal(seen.Add(7 * 24 * time.Hour)) {
		t.Errorf("the grace ends %s, want a week from %s", got, seen)
	}
}
