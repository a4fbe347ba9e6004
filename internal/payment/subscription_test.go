package payment_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
)

// stored is what is known of the only subscription.
type stored struct {
	status string
	seats  int
	until  time.Time
	ends   bool
}

func (f *found) stored() (s stored) {
	f.t.Helper()
	err := f.pool.QueryRow(f.t.Context(), `select status, seats, coalesce(period_end_at, created_at), cancels_at_period_end from subscription`).
		Scan(&s.status, &s.seats, &s.until, &s.ends)
	if err != nil {
		f.t.Fatal(err)
	}
	s.until = s.until.UTC()
	return s
}

// read runs the readings that were queued.
func (f *found) read() {
	f.t.Helper()
	for _, j := range f.jobs.Take() {
		if err := f.pay.ReadSubscription(f.t.Context(), j.(payment.SubscriptionJob)); err != nil {
			f.t.Error(err)
		}
	}
}

// pro returns a team that was paid, with its subscription at the bank.
func (d *desk) pro(seats string, sub payment.Subscription) *found {
	d.t.Helper()
	f := d.found(seats)
	f.bank.subscribe(f.session, sub)
	f.mustReceive(subscribed(f.session, sub.ID))
	f.read()
	return f
}

func (b *bank) change(subscriptionID string, edit func(*payment.Subscription)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subs[subscriptionID]
	edit(&s)
	b.subs[subscriptionID] = s
}

func TestASubscriptionIsStoredAsItWasRead(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("3", active("sub_1", 3))
	april := noon.AddDate(0, 1, 0)
	if got := f.stored(); got != (stored{"active", 3, april, false}) {
		t.Errorf("stored %+v", got)
	}
	// Events come in the wrong order, twice, and say what is long past.
	f.bank.change("sub_1", func(s *payment.Subscription) {
		s.PeriodStartAt, s.PeriodEndAt, s.CancelsAtPeriodEnd = april, april.AddDate(0, 1, 0), true
	})
	for _, kind := range []string{"invoice.paid", "customer.subscription.updated", "customer.subscription.created", "customer.subscription.deleted"} {
		n := subscription(kind, "sub_1")
		f.mustReceive(n)
		f.mustReceive(n)
		f.read()
		if got := f.stored(); got != (stored{"active", 3, april.AddDate(0, 1, 0), true}) {
			t.Errorf("after %s: stored %+v", kind, got)
		}
	}
	f.bank.change("sub_1", func(s *payment.Subscription) { s.Status = "past_due" })
	f.mustReceive(subscription("invoice.payment_failed", "sub_1"))
	f.read()
	if got := f.stored().status; got != "past_due" {
		t.Errorf("after a declined renewal the status is %s", got)
	}
	f.wantTeam(3) // grace is another matter: the team stays as it is
}

func TestAFailedReadingIsRepeated(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	f.bank.subscribe(f.session, active("sub_1", 2))
	f.mustReceive(subscribed(f.session, "sub_1"))
	f.bank.down = true
	for _, j := range f.jobs.Take() {
		if err := f.pay.ReadSubscription(t.Context(), j.(payment.SubscriptionJob)); err == nil {
			t.Error("a bank that is down went unnoticed")
		}
	}
	f.bank.down = false
	reads := f.bank.reads
	if err := f.pay.ReadOpen(t.Context()); err != nil || f.bank.reads != reads {
		t.Errorf("asked again at once (%v)", err)
	}
	f.clock.Advance(5 * time.Minute)
	if err := f.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.stored(); got.until != noon.AddDate(0, 1, 0) {
		t.Errorf("stored %+v", got)
	}
}

// A slow reading that began before an event must not undo the one after it.
func TestAnOldReadingDoesNotWinOverANewOne(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	f.mustReceive(subscription("customer.subscription.updated", "sub_1"))
	slow := make(chan struct{})
	begun := make(chan struct{})
	var first atomic.Bool
	f.bank.slow = func() {
		if first.CompareAndSwap(false, true) {
			close(begun)
			<-slow
		}
	}
	done := make(chan error, 1)
	go func() { done <- f.pay.ReadSubscription(t.Context(), payment.SubscriptionJob{ID: "sub_1"}) }() // holds the old state
	<-begun
	f.bank.change("sub_1", func(s *payment.Subscription) { s.Status = "past_due" })
	f.mustReceive(subscription("invoice.payment_failed", "sub_1"))
	f.read()
	close(slow)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := f.stored().status; got != "past_due" {
		t.Errorf("the status is %s: an old reading was stored over a new one", got)
	}
}

func TestALostRenewalIsSeenAtThePeriodsEnd(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	april := noon.AddDate(0, 1, 0)
	f.bank.change("sub_1", func(s *payment.Subscription) { s.PeriodStartAt, s.PeriodEndAt = april, april.AddDate(0, 1, 0) })
	f.clock.SetOffset(april.Sub(noon) - time.Second) // business time alone
	if err := f.pay.ReadOpen(t.Context()); err != nil || f.stored().until != april {
		t.Errorf("read before its period's end (%v)", err)
	}
	f.clock.SetOffset(april.Sub(noon))
	reads := f.bank.reads
	for range 3 {
		if err := f.pay.ReadOpen(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.stored(); got.until != april.AddDate(0, 1, 0) || f.bank.reads != reads+1 {
		t.Errorf("stored %+v after %d readings", got, f.bank.reads-reads)
	}
}

func TestADeletedTeamsSubscriptionIsCancelled(t *testing.T) {
	t.Parallel()
	f := newDesk(t).pro("2", active("sub_1", 2))
	err := pg.InTx(t.Context(), f.pool, func(tx pgx.Tx) error { return f.pay.EndTeamTx(t.Context(), tx, f.team) })
	if err != nil {
		t.Fatal(err)
	}
	f.bank.down = true
	for _, j := range f.jobs.Take() {
		if err := f.pay.ReadSubscription(t.Context(), j.(payment.SubscriptionJob)); err == nil {
			t.Error("a bank that is down went unnoticed")
		}
	}
	f.bank.down = false
	f.clock.Advance(time.Hour)
	if err := f.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.stored().status; got != "canceled" || f.bank.subs["sub_1"].Status != "canceled" {
		t.Errorf("the subscription of a deleted team is %s", got)
	}
	reads := f.bank.reads
	f.clock.Advance(48 * time.Hour)
	if err := f.pay.ReadOpen(t.Context()); err != nil || f.bank.reads != reads {
		t.Errorf("a subscription that has ended is read for ever (%v)", err)
	}
}
