package pod_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// hearing makes a node trust its ears from the start.
func hearing(l *pod.Limits) { l.HeartbeatBlind = time.Second }

// live lets time pass while the agent sends its heartbeats.
func (a *agent) live(d time.Duration) {
	a.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		a.pass(min(d, 5*time.Second))
		_, err := a.lease(agentapi.PhaseServing, 0)
		a.must(err)
	}
}

// running is a pod that is ready and has synced once.
func (h *harbour) running(scope team.Scope) (*pod.Pod, *agent) {
	h.t.Helper()
	p, a := h.ready(func() *pod.Pod { return h.rent(scope) })
	a.write("a.txt", "hello")
	h.must(a.sync(false))
	return h.is(scope, p, pod.Ready), a
}

// cost is what a pod costs from ready on, computed for itself.
func cost(p *pod.Pod, until time.Time) money.USD {
	return money.USD(int64(p.Rate) * until.Sub(*p.ReadyAt).Microseconds() / time.Hour.Microseconds())
}

// A machine that its provider does not know any more, in two reads 30 s apart,
// is lost; what was charged after its last heartbeat is given back.
func TestMachineThatIsGoneIsLost(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	synced := h.clock.Now()
	a.live(time.Minute)
	last := h.clock.Now()
	h.a.vanish(a.machine.Name)
	h.pass(90*time.Second + 25*time.Second)
	h.is(scope, p, pod.Ready)
	h.tx(func(tx pgx.Tx) error { return h.wallet.SettleTx(t.Context(), tx, scope.TeamID(), h.clock.Now()) })
	h.pass(10 * time.Second)
	p = h.is(scope, p, pod.Deleted)
	if got, want := h.spent(scope), cost(p, last); got != want || !p.StoppedAt.Equal(last) {
		t.Errorf("charged %s until %s, want %s until %s", got.Decimal(), p.StoppedAt, want.Decimal(), last)
	}
	want := "The machine was lost. The volume is as it was synced at " + synced.Format("2006-01-02 15:04:05") + " UTC."
	if p.StatusReason != pod.ReasonLost || p.StatusDetail != want {
		t.Errorf("the end: %s, %q", p.StatusReason, p.StatusDetail)
	}
	if v := h.volume(scope, p); v.CurrentlyUsed || v.HeadSeq != 1 {
		t.Errorf("the volume: %+v", v)
	}
	if n := h.a.count("launch"); n != 1 {
		t.Errorf("%d machines were asked for: after ready there is no other", n)
	}
}

// One read, or a heartbeat between two, is no proof.
func TestOneReadDoesNotLoseAMachine(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	a.live(5 * time.Second)
	h.a.blind = true
	h.pass(100 * time.Second) // read as gone once or twice, within 30 s
	a.live(5 * time.Second)
	h.pass(100 * time.Second)
	h.a.blind = false
	a.live(5 * time.Second)
	h.is(scope, p, pod.Ready)
	h.a.blind = true
	a.live(5 * time.Minute) // the list lies, the agent speaks
	h.is(scope, p, pod.Ready)
}

// A machine that its provider calls running is lost when its agent and its SSH
// are silent for ten minutes; it is charged until our last log-in.
func TestMachineThatIsSilentIsLost(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	a.live(5 * time.Second)
	h.pass(5 * time.Minute)
	p = h.is(scope, p, pod.Ready)
	if want := "Agent unreachable, last synced at " + p.SyncedAt.Format("2006-01-02 15:04:05") + " UTC"; p.StatusDetail != want {
		t.Errorf("it says %q, want %q", p.StatusDetail, want)
	}
	last := h.clock.Now()
	a.machine.door.close()
	h.pass(4*time.Minute + 50*time.Second)
	h.is(scope, p, pod.Ready)
	h.pass(20 * time.Second)
	p = h.is(scope, p, pod.Deleted)
	if off := last.Sub(*p.StoppedAt); off < 0 || off > 5*time.Second || p.StatusReason != pod.ReasonLost {
		t.Errorf("charged until %s, last reached at %s (%s)", p.StoppedAt, last, p.StatusReason)
	}
	if got, want := h.spent(scope), cost(p, *p.StoppedAt); got != want {
		t.Errorf("charged %s, want %s", got.Decimal(), want.Decimal())
	}
	if left := h.a.names(); len(left) != 0 {
		t.Errorf("machines left: %q", left)
	}
}

// A machine that can be reached stays ready and charged, however long its agent
// is silent, and says so until the agent is back.
func TestMachineThatAnswersIsKept(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.pass(30 * time.Minute)
	p = h.is(scope, p, pod.Ready)
	if !strings.HasPrefix(p.StatusDetail, "Agent unreachable, last synced at ") {
		t.Errorf("it says %q", p.StatusDetail)
	}
	if got, want := h.spent(scope), cost(p, h.clock.Now()); got != want {
		t.Errorf("charged %s, want %s", got.Decimal(), want.Decimal())
	}
	a.live(5 * time.Second)
	if p = h.is(scope, p, pod.Ready); p.StatusDetail != "" {
		t.Errorf("after its heartbeat: %q", p.StatusDetail)
	}
}

// Silence while this installation was deaf is no silence: not in the first ten
// minutes after a start, and not while its database took no beat.
func TestSilenceWhileDeafDoesNotCount(t *testing.T) {
	t.Parallel()
	h := newHarbour(t) // with the ten minutes
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	a.live(5 * time.Second)
	h.a.vanish(a.machine.Name)
	h.pass(11*time.Minute + 20*time.Second)
	h.is(scope, p, pod.Ready)
	h.clock.Advance(time.Hour) // nobody is there
	h.work()
	h.pass(80 * time.Second)
	h.is(scope, p, pod.Ready)
	h.pass(45 * time.Second)
	h.is(scope, p, pod.Deleted)
}

// An installation that was down for an hour does not give up last syncs and
// restores that went on meanwhile.
func TestDowntimeEndsNoLastSync(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.work()
	h.clock.Advance(time.Hour)
	h.work()
	h.must(h.Beat(t.Context()))
	h.work()
	h.is(scope, p, pod.Deleting)
	a.write("b.txt", "last words")
	h.must(a.sync(true))
	h.work()
	h.is(scope, p, pod.Deleted)
	if v := h.volume(scope, p); v.HeadSeq != 2 {
		t.Errorf("the volume: %+v", v)
	}
}

// A last sync goes on while it moves; 15 minutes without progress end it at the
// last committed snapshot, unless it is our store that fails.
func TestLastSyncEndsWithoutProgress(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.must(h.Delete(t.Context(), scope, p.ID))
	stopped := h.clock.Now()
	lease := func(d time.Duration, done int64) {
		for ; d > 0; d -= 5 * time.Second {
			h.pass(5 * time.Second)
			_, err := a.lease(agentapi.PhaseFinal, done)
			h.must(err)
		}
	}
	for i := range 3 {
		lease(14*time.Minute, int64(i+1))
	}
	h.store.setDown(true)
	lease(20*time.Minute, 3)
	h.is(scope, p, pod.Deleting)
	h.store.setDown(false)
	lease(14*time.Minute, 3)
	p = h.is(scope, p, pod.Deleting)
	if !h.volume(scope, p).CurrentlyUsed {
		t.Error("the volume is free before the last sync")
	}
	h.pass(2 * time.Minute)
	p = h.is(scope, p, pod.Deleted)
	if !strings.Contains(p.StatusDetail, "The volume is as it was synced at ") || h.volume(scope, p).CurrentlyUsed {
		t.Errorf("the end: %q", p.StatusDetail)
	}
	if got := h.spent(scope); got != cost(p, stopped) {
		t.Errorf("charged %s", got.Decimal())
	}
	if err := a.sync(true); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("a sync after that: %v", err)
	}
}

// Who is root in a pod can have its agent say that its last sync moves for ever.
// After a day the operator is told, and can end it: its machine ends with it.
func TestALastSyncThatOnlySaysThatItMovesIsShownAndCutOff(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	if got, err := h.CutOff(t.Context(), p.ID); err != nil || got.Status != pod.Ready {
		t.Errorf("a pod that runs: %s, %v", got.Status, err)
	}
	h.must(h.Delete(t.Context(), scope, p.ID))
	for i := range 2 {
		h.pass(time.Minute)
		_, err := a.lease(agentapi.PhaseFinal, int64(i+1))
		h.must(err)
		h.is(scope, p, pod.Deleting)
		if i == 0 {
			if troubled, err := h.Troubled(t.Context()); err != nil || len(troubled) != 0 {
				t.Errorf("after a minute: %+v, %v", troubled, err)
			}
			_, err = h.pool.Exec(t.Context(), `update pod set status_wall_at = status_wall_at - interval '1 day' where id = $1`, p.ID)
			h.must(err)
		}
	}
	troubled, err := h.Troubled(t.Context())
	h.must(err)
	if len(troubled) != 1 || troubled[0].PodID != p.ID || troubled[0].State != pod.Running || h.Clock.Wall().Sub(troubled[0].SinceWallAt) < 24*time.Hour {
		t.Errorf("troubled: %+v", troubled)
	}
	if fleets, err := h.Fleets(t.Context()); err != nil || len(fleets) != 1 || fleets[0].LastSyncLong != 1 {
		t.Errorf("fleets: %+v, %v", fleets, err)
	}
	for range 2 { // the second changes nothing
		if got, err := h.CutOff(t.Context(), p.ID); err != nil || got.Status != pod.Deleted {
			t.Fatalf("cut off: %s, %v", got.Status, err)
		}
	}
	h.pass(time.Minute)
	if p = h.is(scope, p, pod.Deleted); !strings.HasPrefix(p.StatusDetail, "The last sync was ended by the operator. The volume is as it was synced at ") {
		t.Errorf("the end: %q", p.StatusDetail)
	}
	if left := h.a.names(); len(left) != 0 || h.volume(scope, p).CurrentlyUsed {
		t.Errorf("machines left: %q", left)
	}
	if _, err := h.CutOff(t.Context(), id.New()); err == nil {
		t.Error("a pod that there is not was cut off")
	}
}

// A store that answers and takes nothing, such as one whose disk is full, costs
// nobody what is only on the machine.
func TestAFullStoreEndsNoLastSync(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.must(h.Delete(t.Context(), scope, p.ID))
	a.write("b.txt", "only here")
	h.store.setFull(true)
	for range 9 {
		h.pass(5 * time.Minute)
		_, err := a.lease(agentapi.PhaseFinal, 1)
		h.must(err)
	}
	h.is(scope, p, pod.Deleting)
	h.store.setFull(false)
	h.must(a.sync(true))
	h.work()
	h.is(scope, p, pod.Deleted)
	if v := h.volume(scope, p); v.HeadSeq != 2 {
		t.Errorf("the volume: %+v", v)
	}
	for key := range h.store.objects {
		if strings.HasPrefix(key, "health") {
			t.Errorf("%s is left in the store", key)
		}
	}
}

// A machine that its cloud's list leaves out, for once or because it is new, is
// asked to end all the same.
func TestAMachineThatAListLeavesOutIsEnded(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(h *harbour, m *machine){
		"a list without it": func(h *harbour, _ *machine) { h.a.blind = true },
		"a list that is late": func(h *harbour, m *machine) {
			h.a.mu.Lock()
			defer h.a.mu.Unlock()
			m.listed = h.clock.Wall().Add(10 * time.Minute)
		},
	} {
		h := newHarbour(t, hearing)
		scope := h.team(team.Pro, 100*money.Dollar)
		p := h.rent(scope)
		h.work()
		hide(h, h.a.one())
		h.must(h.Delete(t.Context(), scope, p.ID))
		h.work()
		h.pass(10 * time.Second)
		if left := h.a.names(); len(left) != 0 {
			t.Errorf("%s: %q runs on", name, left)
		}
	}
}

// A machine that is not listed, and whose id its cloud refuses in words of its
// own, is not asked for for ever.
func TestTheEndOfAMachineThatIsGoneIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	h.work()
	h.a.vanish(h.a.one().Name)
	refusals := make([]error, 1000)
	for i := range refusals {
		refusals[i] = errCut
	}
	h.a.answers(nil, refusals)
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.pass(20 * time.Minute)
	if open, err := h.offers.OpenTx(t.Context(), h.pool, "a"); err != nil || open {
		t.Errorf("the cloud is off sale for that: %t, %v", open, err)
	}
	asked := h.a.count("terminate")
	h.pass(20 * time.Minute)
	if again := h.a.count("terminate"); asked == 0 || again != asked {
		t.Errorf("asked %d times, then %d times", asked, again)
	}
}

// A machine that disappears in its last sync ends the pod within a minute.
func TestMachineLostInItsLastSync(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.must(h.Delete(t.Context(), scope, p.ID))
	_, err := a.lease(agentapi.PhaseFinal, 1)
	h.must(err)
	h.a.vanish(a.machine.Name)
	h.pass(time.Minute)
	if p = h.is(scope, p, pod.Deleted); p.StatusReason != pod.ReasonUser || !strings.HasPrefix(p.StatusDetail, "The machine was lost.") {
		t.Errorf("the end: %s, %q", p.StatusReason, p.StatusDetail)
	}
}

// What was charged between a machine's last heartbeat and the DELETE of its user
// is given back too.
func TestMachineLostBeforeItsEndWasAsked(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	a.live(time.Minute)
	last := h.clock.Now()
	h.a.vanish(a.machine.Name)
	h.pass(time.Minute)
	h.tx(func(tx pgx.Tx) error { return h.wallet.SettleTx(t.Context(), tx, scope.TeamID(), h.clock.Now()) })
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.is(scope, p, pod.Deleting)
	h.pass(3 * time.Minute)
	p = h.is(scope, p, pod.Deleted)
	if got, want := h.spent(scope), cost(p, last); got != want || !p.StoppedAt.Equal(last) {
		t.Errorf("charged %s until %s, want %s until %s", got.Decimal(), p.StoppedAt, want.Decimal(), last)
	}
}

// An agent with nothing left to sync says so, and the pod ends.
func TestNothingToSync(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	_, err := a.lease(agentapi.PhaseDone, 0) // nobody asked for the end
	h.must(err)
	h.work()
	h.is(scope, p, pod.Ready)
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.is(scope, p, pod.Deleting)
	_, err = a.lease(agentapi.PhaseDone, 0)
	h.must(err)
	h.work()
	h.is(scope, p, pod.Deleted)
	h.must(h.Delete(t.Context(), scope, p.ID))
}

// The platform ends the pods of a team in every phase, at its instant: those
// that were there then, with their last sync if there is something to sync.
func TestSwitchOffATeam(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	other, _ := h.running(scope)
	h.must(h.Delete(t.Context(), scope, other.ID)) // deleting never becomes switching_off
	ready, a := h.running(scope)
	h.pass(time.Minute)
	pending := h.rent(scope)
	at := h.clock.Now()
	h.clock.Advance(time.Second)
	after := h.rent(scope)
	stop := func() {
		h.tx(func(tx pgx.Tx) error {
			if err := h.LockTeamTx(t.Context(), tx, scope.TeamID()); err != nil {
				return err
			}
			return h.SwitchOffTeamTx(t.Context(), tx, scope.TeamID(), at, pod.ReasonBalance)
		})
	}
	stop()
	stop()
	h.is(scope, other, pod.Deleting)
	h.is(scope, after, pod.Pending)
	if pending = h.is(scope, pending, pod.Deleted); pending.StatusReason != pod.ReasonBalance {
		t.Errorf("pending: %s", pending.StatusReason)
	}
	ready = h.is(scope, ready, pod.SwitchingOff)
	if ready.StatusReason != pod.ReasonBalance || !ready.StoppedAt.Equal(at) || ready.StatusDetail == "" {
		t.Errorf("ready: %+v", ready)
	}
	if got := h.spent(scope); got != cost(ready, at) {
		t.Errorf("charged %s, want %s", got.Decimal(), cost(ready, at).Decimal())
	}
	if err := h.Delete(t.Context(), scope, ready.ID); !errors.Is(err, pod.ErrSwitchingOff) {
		t.Errorf("a DELETE then: %v", err)
	}
	a.write("b.txt", "last words")
	h.must(a.sync(true))
	h.work()
	if ready = h.is(scope, ready, pod.Deleted); ready.StatusReason != pod.ReasonBalance || h.volume(scope, ready).HeadSeq != 2 {
		t.Errorf("the end: %+v", ready)
	}
}

// The end of a machine is asked for until it is there, less and less often,
// and holds nothing else up.
func TestTerminateIsTriedForEver(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing, func(l *pod.Limits) { l.TerminateMax = time.Minute })
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	var refusals []error
	for range 40 {
		refusals = append(refusals, provider.ErrNotYet, errCut)
	}
	h.a.answers(nil, refusals)
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.must(a.sync(true))
	h.work()
	p = h.is(scope, p, pod.Deleted)
	if h.volume(scope, p).CurrentlyUsed {
		t.Error("the volume waits for a cloud")
	}
	h.pass(30 * time.Minute)
	if n := h.a.count("terminate"); n < 25 || n > 45 || len(h.a.names()) != 1 {
		t.Errorf("asked %d times in half an hour, %q left", n, h.a.names())
	}
	for i, line := range h.a.log[1:] {
		gap := line.wall.Sub(h.a.log[i].wall)
		if i > 12 && (gap < 55*time.Second || gap > 70*time.Second) {
			t.Errorf("try %d came %s after the one before", i, gap)
		}
	}
	h.pass(time.Hour)
	if left := h.a.names(); len(left) != 0 {
		t.Errorf("machines left: %q", left)
	}
}

// Deleting a key takes it from the pods that hold it, at once.
func TestOrdersWakeTheAgent(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.FollowOrders(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	now, err := a.lease(agentapi.PhaseServing, 0)
	h.must(err)
	// The agent comes again until it is woken, as agents do: a notification may
	// be lost. Each poll is shorter than the test's own limit.
	wait := func(seen string) agentapi.Orders {
		t.Helper()
		right, err := a.right()
		h.must(err)
		o, err := h.Lease(t.Context(), right, agentapi.Lease{Phase: agentapi.PhaseServing, Seen: seen, WaitSeconds: 20})
		h.must(err)
		return o
	}
	answers := make(chan agentapi.Orders, 1)
	go func() { answers <- wait(now.Version) }()
	h.must(h.keys.Delete(t.Context(), scope, p.SSHKeyID))
	got := <-answers
	if len(now.AuthorizedKeys) != 1 || len(got.AuthorizedKeys) != 0 || got.Version == now.Version || got.Command != agentapi.CommandNone {
		t.Errorf("orders %+v, then %+v", now, got)
	}
	go func() { answers <- wait(got.Version) }()
	h.must(h.Delete(t.Context(), scope, p.ID))
	if got = <-answers; got.Command != agentapi.CommandFinal {
		t.Errorf("after the DELETE: %+v", got)
	}
	go func() { answers <- wait(got.Version) }()
	h.Drain()
	if again := <-answers; again.Version != got.Version {
		t.Errorf("the node stops: %+v", again)
	}
	if again := wait(got.Version); again.Version != got.Version { // nobody waits any more
		t.Errorf("the node stopped: %+v", again)
	}
}
