package payment_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
)

func (f *found) scope() team.Scope {
	f.t.Helper()
	scope, err := f.desk.teams.Authorize(f.t.Context(), f.payer, f.team, team.Manage)
	if err != nil {
		f.t.Fatal(err)
	}
	return scope
}

func (f *found) setSeats(n string) error {
	_, err := f.pay.SetSeats(f.t.Context(), f.scope(), n)
	return err
}

// bought is what the bank bills.
func (f *found) bought() int {
	f.bank.mu.Lock()
	defer f.bank.mu.Unlock()
	return f.bank.subs["sub_1"].Seats
}

func TestSeatsAreThoseThatArePaid(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("3", active("sub_1", 3))
	for _, one := range []struct {
		ask  string
		want int
	}{{"5", 5}, {"5", 5}, {"1", 1}, {"100", 100}} {
		if err := f.setSeats(one.ask); err != nil || f.bought() != one.want {
			t.Errorf("%s seats: %d are billed, %v", one.ask, f.bought(), err)
		}
		f.wantTeam(one.want)
	}
	for _, ask := range []string{"", "0", "-1", "101", "2.5", "ten"} {
		if err := f.setSeats(ask); !errors.Is(err, team.ErrSeatCount) {
			t.Errorf("%q seats: %v", ask, err)
		}
	}
	f.wantTeam(100)
}

func TestSeatsThatAreTakenStay(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("3", active("sub_1", 3))
	if _, err := f.desk.teams.Invite(t.Context(), f.scope(), "mate@homeport.test", idem.Request{}); err != nil {
		t.Fatal(err)
	}
	err := f.setSeats("1")
	if !errors.Is(err, team.ErrSeatsTaken) || !strings.Contains(fault.Of(err).Detail, "2 seats") {
		t.Errorf("1 seat for a member and an invitation: %v", err)
	}
	if f.bought() != 3 {
		t.Errorf("%d seats are billed", f.bought())
	}
	f.wantTeam(3)
	if err := f.setSeats("2"); err != nil {
		t.Error(err)
	}
	f.wantTeam(2)
}

// The last free seat is either invited into or given back.
func TestGivingASeatBackAgainstAnInvitation(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	for range 8 {
		var invited, lowered error
		var wg sync.WaitGroup
		wg.Go(func() {
			_, invited = f.desk.teams.Invite(t.Context(), f.scope(), "mate@homeport.test", idem.Request{})
		})
		wg.Go(func() { lowered = f.setSeats("1") })
		wg.Wait()
		taken := 1 + f.count(`select count(*) from invitation where team_id = $1 and state = 'pending'`, f.team)
		if (invited == nil) == (lowered == nil) || taken > f.bought() {
			t.Fatalf("invited: %v, lowered: %v; %d taken of %d", invited, lowered, taken, f.bought())
		}
		if _, err := f.pool.Exec(t.Context(), `delete from invitation where team_id = $1`, f.team); err != nil {
			t.Fatal(err)
		}
		if err := f.setSeats("2"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADeclinedCardBuysNoSeats(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.bank.broke = true
	if err := f.setSeats("5"); !errors.Is(err, payment.ErrSeatsUnpaid) {
		t.Errorf("seats that nobody paid: %v", err)
	}
	f.wantTeam(2)
}

// What a lost answer hides is found: the seats are those that are billed.
func TestALostAnswerAboutSeats(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.bank.lost = true
	if err := f.setSeats("5"); !errors.Is(err, payment.ErrUnavailable) {
		t.Errorf("the answer got lost, but: %v", err)
	}
	f.wantTeam(5)
	f.bank.lost, f.bank.down = false, true
	if err := f.setSeats("3"); !errors.Is(err, payment.ErrUnavailable) {
		t.Errorf("the bank is down, but: %v", err)
	}
	f.wantTeam(3) // not billed as such yet, so nobody is invited into what may go
	f.bank.down = false
	f.read()
	f.wantTeam(5)
}

// An asked bank lets something happen before it is told of other seats.
type asked struct {
	payment.Processor
	before func()
}

func (a asked) SetSeats(ctx context.Context, c payment.SeatChange) error {
	a.before()
	return a.Processor.SetSeats(ctx, c)
}

// Seats that are given back are not there for an invitation until the bank was
// asked: no reading raises them again, queued before or with the change, and
// none that was under way.
func TestSeatsThatAreGivenBackStayTakenUntilTheBankIsAsked(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.mustReceive(subscription("customer.subscription.updated", "sub_1"))
	queued := f.jobs.Take()[0].(payment.SubscriptionJob)
	begun, slow, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var first atomic.Bool
	f.bank.slow = func() {
		if first.CompareAndSwap(false, true) {
			close(begun)
			<-slow
		}
	}
	go func() { done <- f.pay.ReadSubscription(t.Context(), queued) }()
	<-begun
	f.mustReceive(subscription("invoice.paid", "sub_1"))
	f.pay.Processor = asked{f.bank, func() {
		f.read()
		close(slow)
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.wantTeam(1)
		if _, err := f.desk.teams.Invite(t.Context(), f.scope(), "mate@homeport.test", idem.Request{}); err == nil {
			t.Error("somebody was invited into a seat that is given back")
		}
	}}
	if err := f.setSeats("1"); err != nil || f.bought() != 1 {
		t.Errorf("%d seats are billed, %v", f.bought(), err)
	}
	f.wantTeam(1)
}

// A node that died before it asked the bank leaves a reading behind.
func TestAChangeThatWasNeverAskedForIsRead(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	ctx, die := context.WithCancel(t.Context())
	f.pay.Processor = asked{f.bank, func() {
		die()
		f.bank.mu.Lock()
		f.bank.down = true
		f.bank.mu.Unlock()
	}}
	if _, err := f.pay.SetSeats(ctx, f.scope(), "1"); err == nil {
		t.Fatal("the node did not die")
	}
	f.bank.down = false
	f.wantTeam(1)
	f.clock.Advance(3 * time.Minute)
	if err := f.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantTeam(2)
}

func TestOnlyWhatIsSubscribedCanBeChanged(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	if _, err := f.pay.SetSeats(t.Context(), f.desk.scope, "2"); !errors.Is(err, payment.ErrNoSubscription) {
		t.Errorf("a team without a subscription: %v", err)
	}
	if err := f.pay.EndSubscription(t.Context(), f.scope()); err != nil {
		t.Fatal(err)
	}
	if got := f.stored(); got.status != "active" || !got.ends {
		t.Errorf("stored %+v, want one that ends with its month", got)
	}
	if plan, err := f.pay.FindPlan(t.Context(), f.scope()); err != nil || !plan.Ends || plan.Seats != 2 || plan.Taken != 1 || plan.SeatPrice != 100*money.Dollar {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	if err := f.pay.ResumeSubscription(t.Context(), f.scope()); err != nil {
		t.Fatal(err)
	}
	if got := f.stored(); got.status != "active" || got.ends {
		t.Errorf("stored %+v, want one that goes on", got)
	}
	f.bank.change("sub_1", func(s *payment.Subscription) { s.Status = "canceled" })
	f.mustReceive(subscription("customer.subscription.deleted", "sub_1"))
	f.read()
	if err := f.pay.EndSubscription(t.Context(), f.scope()); !errors.Is(err, payment.ErrNoSubscription) {
		t.Errorf("one that has ended: %v", err)
	}
	if err := f.pay.ResumeSubscription(t.Context(), f.scope()); !errors.Is(err, payment.ErrNoSubscription) {
		t.Errorf("one that has ended goes on: %v", err)
	}
	if _, err := f.pay.FindPlan(t.Context(), f.scope()); !errors.Is(err, payment.ErrNoSubscription) {
		t.Errorf("the plan of one that has ended: %v", err)
	}
}

func TestThePortalIsTheCustomers(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	address, err := f.pay.Portal(t.Context(), f.scope())
	if err != nil || !strings.Contains(address, "/portal/cus_1_"+f.team.String()) {
		t.Errorf("the portal is %q, %v", address, err)
	}
	if _, err := f.pay.Portal(t.Context(), f.desk.scope); !errors.Is(err, payment.ErrNoPortal) {
		t.Errorf("a team that never paid: %v", err)
	}
}
