package pod_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// A sailing is a pod whose last sync is under way.
type sailing struct {
	*harbour
	scope team.Scope
	p     *pod.Pod
	agent *agent
	moved int64
	used  money.USD // until the DELETE
	asked time.Time // the DELETE
}

func (h *harbour) sail(scope team.Scope) *sailing {
	h.t.Helper()
	p, a := h.running(scope)
	a.write("b.txt", "much to sync")
	before := h.spent(scope)
	h.must(h.Delete(h.t.Context(), scope, p.ID))
	return &sailing{harbour: h, scope: scope, p: h.find(scope, p), agent: a, used: before, asked: h.clock.Now()}
}

// sync lets the last sync move bytes for a while, as agents report them.
func (s *sailing) sync(d time.Duration) {
	s.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		s.moved += 1_000_000
		_, err := s.agent.lease(agentapi.PhaseFinal, s.moved)
		s.must(err)
		s.pass(5 * time.Second)
	}
}

// stall lets time pass in which nothing moves.
func (s *sailing) stall(d time.Duration) {
	s.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		_, err := s.agent.lease(agentapi.PhaseFinal, s.moved)
		s.must(err)
		s.pass(5 * time.Second)
	}
}

// wants compares what the last sync cost with the price of a time, to the
// seconds between two looks, never above it.
func (s *sailing) wants(least, most time.Duration) {
	s.t.Helper()
	got := s.spent(s.scope) - s.used
	low, high := money.Cost(s.p.Rate, 0, least.Microseconds()), money.Cost(s.p.Rate, 0, most.Microseconds())
	if got < low || got > high {
		s.t.Errorf("the last sync cost %s, want %s to %s", got.Decimal(), low.Decimal(), high.Decimal())
	}
	problems, err := s.wallet.Verify(s.t.Context())
	if err != nil || len(problems) > 0 {
		s.t.Errorf("the books: %v, %v", problems, err)
	}
}

// The first ten minutes of a last sync are free; what it takes beyond is
// charged until it is in.
func TestALongLastSyncIsCharged(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	s := h.sail(h.team(team.Pro, 100*money.Dollar))
	s.sync(10 * time.Minute)
	s.wants(0, 0)
	if got := h.find(s.scope, s.p); got.MeteredUntil() == nil || got.StatusDetail != "" {
		t.Errorf("in its free minutes: %+v", got)
	}
	s.sync(time.Minute)
	if got := h.find(s.scope, s.p); got.MeteredUntil() != nil || got.StatusDetail == "" {
		t.Errorf("while it is charged: until %v, %q", got.MeteredUntil(), got.StatusDetail)
	}
	s.sync(14 * time.Minute)
	h.must(s.agent.sync(true))
	h.work()
	p := h.is(s.scope, s.p, pod.Deleted)
	s.wants(15*time.Minute-10*time.Second, 15*time.Minute)
	if !p.StoppedAt.Equal(s.asked.Add(25*time.Minute)) || p.StatusDetail != "" {
		t.Errorf("ended: until %v, %q", p.StoppedAt, p.StatusDetail)
	}
	h.pass(10 * time.Minute)
	s.wants(15*time.Minute-10*time.Second, 15*time.Minute)
	h.ok()
}

// Time in which nothing moves, because our store fails or for whatever reason,
// is not charged, nor is the rest of a sync that is given up.
func TestALastSyncThatStandsStillIsNotCharged(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	s := h.sail(h.team(team.Pro, 100*money.Dollar))
	s.sync(15 * time.Minute)
	h.store.setDown(true)
	s.stall(20 * time.Minute)
	s.wants(5*time.Minute-15*time.Second, 5*time.Minute)
	h.store.setDown(false)
	s.sync(5 * time.Minute)
	s.wants(10*time.Minute-30*time.Second, 10*time.Minute)
	s.stall(14 * time.Minute)
	h.is(s.scope, s.p, pod.Deleting)
	h.pass(90 * time.Second)
	h.is(s.scope, s.p, pod.Deleted)
	s.wants(10*time.Minute-30*time.Second, 10*time.Minute)
	h.ok()
}

func TestALastSyncIsChargedForAnHourAtMost(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	s := h.sail(h.team(team.Pro, 100*money.Dollar))
	s.sync(90 * time.Minute)
	s.wants(time.Hour-10*time.Second, time.Hour)
	if got := h.find(s.scope, s.p); got.MeteredUntil() == nil || !got.MeteredUntil().Equal(s.asked.Add(70*time.Minute)) {
		t.Errorf("charged until %v", got.MeteredUntil())
	}
	h.must(s.agent.sync(true))
	h.work()
	h.is(s.scope, s.p, pod.Deleted)
	s.wants(time.Hour-10*time.Second, time.Hour)
	h.ok()
}

// A last sync is never charged past a zero balance: it goes on for free.
func TestALastSyncGoesOnWithoutMoney(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, money.Dollar)
	s := h.sail(scope)
	s.sync(45 * time.Minute) // 35 of them would cost 1.27
	b, err := h.wallet.Balance(t.Context(), scope, h.clock.Now())
	if err != nil || b.Balance != 0 || h.spent(scope) != money.Dollar || b.SpendingPerHour != 0 {
		t.Errorf("balance %s, spending %s, %v", b.Balance.Decimal(), b.SpendingPerHour.Decimal(), err)
	}
	h.credit(scope, 10*money.Dollar)
	s.sync(5 * time.Minute)
	h.is(scope, s.p, pod.Deleting)
	if got := h.spent(scope); got != money.Dollar {
		t.Errorf("charged %s after the money ran out once", got.Decimal())
	}
	h.must(s.agent.sync(true))
	h.work()
	if p := h.is(scope, s.p, pod.Deleted); p.StatusReason != pod.ReasonUser || h.volume(scope, p).HeadSeq != 2 {
		t.Errorf("the end: %+v", p)
	}
	h.ok()
}

// Beyond the free ones of a day a last sync is charged from the first second;
// the next day has its own.
func TestOnlySomeLastSyncsOfADayAreFree(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing, func(l *pod.Limits) { l.FreeFinals = 1 })
	scope := h.team(team.Pro, 100*money.Dollar)
	for _, want := range []time.Duration{0, 5 * time.Minute} {
		s := h.sail(scope)
		s.sync(5 * time.Minute)
		h.must(s.agent.sync(true))
		h.work()
		h.is(scope, s.p, pod.Deleted)
		s.wants(max(0, want-10*time.Second), want)
	}
	h.pass(12 * time.Hour)
	s := h.sail(scope)
	s.sync(5 * time.Minute)
	s.wants(0, 0)
}

// What the platform switches off syncs for free.
func TestTheLastSyncOfWhatIsSwitchedOffIsFree(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	at := h.clock.Now()
	h.tx(func(tx pgx.Tx) error {
		if err := h.LockTeamTx(t.Context(), tx, scope.TeamID()); err != nil {
			return err
		}
		return h.SwitchOffTeamTx(t.Context(), tx, scope.TeamID(), at, pod.ReasonSpendLimit)
	})
	s := &sailing{harbour: h, scope: scope, p: p, agent: a, used: h.spent(scope), asked: at}
	s.sync(30 * time.Minute)
	h.is(scope, p, pod.SwitchingOff)
	s.wants(0, 0)
}
