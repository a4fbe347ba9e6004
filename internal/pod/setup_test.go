package pod_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// failedSetup checks the end of a pod that could not be made ready.
func (h *harbour) failedSetup(scope team.Scope, p *pod.Pod, reason string) {
	h.t.Helper()
	p = h.is(scope, p, pod.Deleted)
	if p.StatusReason != reason || p.StatusDetail == "" || p.ReadyAt != nil {
		h.t.Errorf("the end: %s, %q, ready at %v", p.StatusReason, p.StatusDetail, p.ReadyAt)
	}
	if v := h.volume(scope, p); v.CurrentlyUsed || v.HeadSeq != 0 {
		h.t.Errorf("the volume after it: %+v", v)
	}
	if got := h.spent(scope); got != 0 {
		h.t.Errorf("charged %s", got.Decimal())
	}
	h.ok()
}

// The chosen offer and three equal ones are tried, then the pod ends.
func TestFailoverTriesThreeEqualOffers(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{provider.ErrNoCapacity, provider.ErrPriceMoved, provider.ErrRefused, provider.ErrRateLimited} {
		h := newHarbour(t)
		for i := range 4 {
			h.a.offers = append(h.a.offers, h100("aurora", fmt.Sprint("a-", i+2), 2_000_000))
		}
		dear := h100("aurora", "dear", 9_000_000)
		h.a.offers = append(h.a.offers, dear)
		scope := h.team(team.Hobby, 10*money.Dollar)
		h.a.script(play{err: refusal}, play{err: refusal}, play{err: refusal}, play{err: refusal}, play{err: refusal})
		h.b.script(play{err: refusal}, play{err: refusal})
		p := h.rent(scope)
		h.work()
		h.failedSetup(scope, p, pod.ReasonSetup)
		if n := h.a.count("launch") + h.b.count("launch"); n != 4 {
			t.Errorf("%v: %d machines were asked for, want 4", refusal, n)
		}
		seen := map[string]bool{}
		for _, line := range append(h.a.log, h.b.log...) {
			if seen[line.name] {
				t.Errorf("%v: %s was used twice", refusal, line.name)
			}
			seen[line.name] = true
		}
		if d := h.find(scope, p).StatusDetail; !strings.Contains(d, "Nothing was charged.") || !strings.Contains(d, "H100_80GB at aurora in US for $") {
			t.Errorf("%v: the end says %q", refusal, d)
		}
	}
}

func TestFailoverTakesAnEqualOffer(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{err: provider.ErrNoCapacity})
	p := h.rent(scope)
	h.work()
	p = h.is(scope, p, pod.Starting)
	if p.Provider != "borealis" || p.Rate != 2_600_000 || p.Attempts != 2 || p.StatusDetail != "" {
		t.Errorf("after failover: %+v", p)
	}
	a := h.boot(h.b.one())
	a.mount()
	h.work()
	h.is(scope, p, pod.Ready)
	h.ok()
}

// A host that cannot run pods at all ends the set-up with its own words.
func TestUnsupportedHostSaysSo(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{err: provider.ErrUnsupported.With("Pods need user namespaces.")})
	p := h.rent(scope)
	h.work()
	h.failedSetup(scope, p, pod.ReasonSetup)
	if d := h.find(scope, p).StatusDetail; d != "Pods need user namespaces." || h.b.count("launch") != 0 {
		t.Errorf("it says %q", d)
	}
}

// A port in use is no fault of the offer: another port is tried, not for ever.
func TestTakenPortIsChanged(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	h.a.script(play{err: provider.ErrPortTaken})
	p := h.rent(scope)
	first := p.SSHPort
	h.work()
	h.is(scope, p, pod.Starting)
	if got := h.a.one().launch.SSHPort; got == first || p.Provider != "aurora" {
		t.Errorf("port %d after %d was taken", got, first)
	}
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.a.script(play{err: provider.ErrNoCapacity})
	for range 200 {
		h.a.script(play{err: provider.ErrPortTaken})
		h.b.script(play{err: provider.ErrPortTaken})
	}
	before := h.a.count("launch")
	p = h.rent(scope)
	h.pass(time.Minute)
	h.failedSetup(scope, p, pod.ReasonSetup)
	if n := h.a.count("launch") - before + h.b.count("launch"); n > 40 {
		t.Errorf("%d machines were asked for", n)
	}
}

// After an answer that says nothing the machine is looked for by its name and
// adopted; no second one is asked for.
func TestAmbiguousLaunchIsAdopted(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]play{
		"there at once":      {err: errCut, made: true},
		"there after a hang": {hang: true, made: true},
		"there two min late": {err: errCut, made: true, appears: 2 * time.Minute},
	} {
		h := newHarbour(t, func(l *pod.Limits) { l.LaunchFor = 10 * time.Millisecond })
		scope := h.team(team.Hobby, 10*money.Dollar)
		h.a.script(f)
		h.a.find = []error{errCut, nil} // nor is the list reliable
		p := h.rent(scope)
		h.work()
		h.pass(f.appears + 30*time.Second)
		h.is(scope, p, pod.Starting)
		a := h.boot(h.a.one())
		a.mount()
		h.work()
		if p = h.is(scope, p, pod.Ready); p.Attempts != 1 || h.a.count("launch") != 1 {
			t.Errorf("%s: %d attempts, %d launches", name, p.Attempts, h.a.count("launch"))
		}
		h.ok()
	}
}

// When no machine appears the same offer is tried again; one that appears after
// all is ended.
func TestMachineThatAppearsTooLateIsEnded(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{err: errCut, made: true, appears: 20 * time.Minute})
	p := h.rent(scope)
	h.pass(3*time.Minute + 20*time.Second)
	p = h.is(scope, p, pod.Starting)
	if p.Attempts != 2 || p.Provider != "aurora" {
		t.Fatalf("%d attempts at %s", p.Attempts, p.Provider)
	}
	a := h.boot(h.a.all[h.name(p, 2)])
	a.mount()
	h.work()
	h.is(scope, p, pod.Ready)
	late := h.boot(h.a.all[h.name(p, 1)])
	if err := late.hello(); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("the late machine says hello: %v", err)
	}
	for range 25 {
		h.clock.Advance(time.Minute)
		h.must(h.Beat(t.Context()))
		_, err := a.lease(agentapi.PhaseServing, 0)
		h.must(err)
		h.must(h.Reap(t.Context()))
		h.work()
	}
	h.is(scope, p, pod.Ready)
	if left := h.a.names(); len(left) != 1 || left[0] != h.name(p, 2) {
		t.Errorf("machines left: %q", left)
	}
}

// name is that of a pod's machine.
func (h *harbour) name(p *pod.Pod, attempt int) string {
	h.t.Helper()
	return fmt.Sprintf("hp-%s-%s-%d", h.env4(), p.ID.String()[:8], attempt)
}

// A cloud that stopped answering holds a pod for five minutes, not for ever.
func TestSilentCloudIsLeftForAnother(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{err: errCut, made: true})
	for range 1000 {
		h.a.find = append(h.a.find, errCut)
	}
	p := h.rent(scope)
	h.pass(4*time.Minute + 50*time.Second)
	h.is(scope, p, pod.Pending)
	h.pass(30 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("it starts at %s", p.Provider)
	}
	h.a.answers(nil, nil) // it answers again: its machine is ended
	h.pass(6 * time.Minute)
	if left := h.a.names(); len(left) != 0 {
		t.Errorf("machines left: %q", left)
	}
}

func TestFailedBootTriesTheNext(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{failed: true})
	p := h.rent(scope)
	h.pass(10 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" || len(h.a.names()) != 0 {
		t.Errorf("it starts at %s, with %q left", p.Provider, h.a.names())
	}
	h.ok()
}

// Neither an error nor one empty list says that a machine is gone.
func TestOneEmptyListIsNoProofInSetUp(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	for range 3 {
		h.a.blind = true
		h.pass(20 * time.Second)
		h.a.blind = false
		h.a.answers([]error{errCut, errCut}, nil)
		h.pass(20 * time.Second)
	}
	if p = h.is(scope, p, pod.Starting); p.Attempts != 1 {
		t.Fatalf("%d attempts", p.Attempts)
	}
	h.a.blind = true
	h.pass(40 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Attempts != 2 {
		t.Errorf("%d attempts after it was gone for 40 s", p.Attempts)
	}
}

// The user may end a pod in every phase of its set-up, also while the cloud is
// being asked; the volume is free at once and no machine stays.
func TestDeleteInEveryPhaseOfSetUp(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.FreeSetups = 100 })
	scope := h.team(team.Pro, 10*money.Dollar)
	for phase, bring := range map[string]func(p *pod.Pod){
		"pending": func(*pod.Pod) {},
		"asking":  func(*pod.Pod) { h.work() },
		"asking, answered unclearly": func(*pod.Pod) {
			h.a.script(play{err: errCut, made: true, appears: time.Minute})
			h.work()
		},
		"starting": func(*pod.Pod) { h.work() },
		"mounting": func(*pod.Pod) {
			h.work()
			h.must(h.boot(h.a.one()).hello())
		},
	} {
		p := h.rent(scope)
		end := func() {
			h.must(h.Delete(t.Context(), scope, p.ID))
			if v := h.volume(scope, p); v.CurrentlyUsed {
				t.Errorf("%s: the volume is in use after the DELETE", phase)
			}
		}
		if phase == "asking" {
			h.a.script(play{during: func(provider.Launch) { end() }})
			bring(p)
		} else {
			bring(p)
			end()
		}
		h.must(h.Delete(t.Context(), scope, p.ID))
		h.pass(5 * time.Minute)
		if p = h.is(scope, p, pod.Deleted); p.StatusReason != pod.ReasonUser || h.spent(scope) != 0 {
			t.Errorf("%s: %s, %s spent", phase, p.StatusReason, h.spent(scope).Decimal())
		}
		if left := h.a.names(); len(left) != 0 {
			t.Errorf("%s: machines left: %q", phase, left)
		}
	}
	h.ok()
}

// A machine whose agent stays silent for 20 minutes is given up; its agent's
// late hello opens nothing.
func TestStartingHasADeadline(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	slow := h.boot(h.a.one())
	h.pass(19*time.Minute + 50*time.Second)
	h.is(scope, p, pod.Starting)
	if len(h.a.names()) != 1 {
		t.Fatal("given up too early")
	}
	h.must(h.offers.Refresh(t.Context()))
	h.pass(20 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("it starts at %s", p.Provider)
	}
	if err := slow.hello(); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("a late hello: %v", err)
	}
	if _, err := h.Authenticate(t.Context(), "no such token"); !errors.Is(err, pod.ErrAgentToken) {
		t.Errorf("no token: %v", err)
	}
	h.ok()
}

// A restore may take as long as it moves, by a byte if need be.
func TestMountingEndsWithoutProgressOnly(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	a := h.boot(h.a.one())
	h.must(a.hello())
	for i := range 12 {
		h.pass(10 * time.Minute)
		_, err := a.lease(agentapi.PhaseMounting, int64(i+1)) // of 10^12 bytes: no percent
		h.must(err)
		h.must(h.offers.Refresh(t.Context()))
	}
	h.is(scope, p, pod.Mounting)
	for range 3 {
		h.pass(9 * time.Minute)
		h.must(h.offers.Refresh(t.Context()))
		_, err := a.lease(agentapi.PhaseMounting, 12)
		h.must(err)
	}
	h.is(scope, p, pod.Mounting)
	h.pass(4 * time.Minute)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" || p.Progress != 0 {
		t.Errorf("after 30 minutes without progress: %s at %s", p.Status, p.Provider)
	}
	h.ok()
}

func TestAgentThatCannotMount(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	a := h.boot(h.a.one())
	h.must(a.hello())
	right, err := a.right()
	h.must(err)
	if err := h.Failed(t.Context(), right, agentapi.Failed{Epoch: 99, Code: "damaged"}); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("another epoch: %v", err)
	}
	h.must(h.Failed(t.Context(), right, agentapi.Failed{Epoch: a.welcome.Volume.Epoch, Code: "disk_full"}))
	h.work()
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("after a full disk it starts at %s", p.Provider)
	}
	a = h.boot(h.b.one())
	h.must(a.hello())
	right, err = a.right()
	h.must(err)
	h.must(h.Failed(t.Context(), right, agentapi.Failed{Epoch: a.welcome.Volume.Epoch, Code: "damaged"}))
	h.work()
	h.failedSetup(scope, p, pod.ReasonDamaged)
	if n := h.a.count("launch") + h.b.count("launch"); n != 2 || len(h.b.names()) != 0 {
		t.Errorf("%d launches, %q left", n, h.b.names())
	}
}

// A second machine of the same attachment commits nothing before its own
// restore, and the first one nothing at all any more.
func TestNextMachineMustRestoreItself(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	first := h.boot(h.a.one())
	h.must(first.hello())
	h.must(first.report()) // but its SSH is not reachable
	first.write("a.txt", "of the first machine")
	commit, err := first.draft(false)
	h.must(err)
	inFlight, err := first.right()
	h.must(err)
	h.pass(31 * time.Minute)
	if p = h.is(scope, p, pod.Starting); p.Attempts != 2 {
		t.Fatalf("%d attempts", p.Attempts)
	}
	if _, err := h.Commit(t.Context(), inFlight, commit); err == nil {
		t.Error("the first machine committed after it was dropped")
	}
	if err := first.sync(false); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("the first machine's token: %v", err)
	}
	second := h.boot(h.b.one())
	h.must(second.hello())
	second.write("b.txt", "of the second machine")
	if err := second.sync(false); !errors.Is(err, volume.ErrNotRestored) {
		t.Errorf("a commit before the restore: %v", err)
	}
	if v := h.volume(scope, p); v.HeadSeq != 0 {
		t.Errorf("the head moved: %+v", v)
	}
	h.must(second.report())
	second.open()
	h.must(second.sync(false))
	h.pass(5 * time.Second)
	h.is(scope, p, pod.Ready)
}

// An agent may be faster than the answer to the call that made its machine, and
// than the list of machines.
func TestHelloBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]play{
		"then it comes": {}, "then it is unclear": {err: errCut, made: true, appears: time.Minute},
		"then it is a refusal": {err: provider.ErrRefused},
	} {
		h := newHarbour(t)
		scope := h.team(team.Pro, 10*money.Dollar)
		var a *agent
		f.during = func(l provider.Launch) {
			a = h.boot(&machine{launch: l})
			h.must(a.hello())
			h.must(a.report())
		}
		h.a.script(f)
		p := h.rent(scope)
		h.must(h.Reconcile(t.Context(), p.ID))
		if errors.Is(f.err, provider.ErrRefused) { // it has no machine: whoever spoke is not believed
			h.work()
			if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
				t.Errorf("%s: it starts at %s", name, p.Provider)
			}
			continue
		}
		h.is(scope, p, pod.Mounting)
		h.pass(70 * time.Second)
		a.machine = h.a.one()
		a.open()
		h.pass(5 * time.Second)
		if p = h.is(scope, p, pod.Ready); p.Attempts != 1 || p.SSHPort != a.machine.SSHPort {
			t.Errorf("%s: %+v", name, p)
		}
		h.ok()
	}
}

// Any number of reconcilers ask for one machine.
func TestReconcilersInARaceLaunchOnce(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	box, err := seal.New(make([]byte, seal.KeySize))
	h.must(err)
	nodes := []*pod.Service{h.Service, h.node(box), h.node(box)}
	scope := h.team(team.Pro, 10*money.Dollar)
	for range 4 {
		p := h.rent(scope)
		before := h.a.count("launch")
		race(24, func(i int) {
			if err := nodes[i%3].Reconcile(t.Context(), p.ID); err != nil {
				t.Error(err)
			}
		})
		if p = h.is(scope, p, pod.Starting); p.Attempts != 1 || h.a.count("launch") != before+1 {
			t.Errorf("%d attempts, %d launches", p.Attempts, h.a.count("launch")-before)
		}
	}
	h.ok()
}

// While one node waits for the cloud's answer and looks dead to another, no
// second machine is asked for; nor after its death was forgotten.
func TestDyingNodesLeaveOneMachine(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	box, err := seal.New(make([]byte, seal.KeySize))
	h.must(err)
	other := h.node(box)
	scope := h.team(team.Pro, 10*money.Dollar)
	for name, forget := range map[string]bool{"it looks dead": false, "it is forgotten": true} {
		var p *pod.Pod
		h.a.script(play{during: func(provider.Launch) {
			h.clock.Advance(20 * time.Second) // without a beat
			h.must(other.Beat(t.Context()))
			if forget {
				h.exec(`delete from node where seen_wall_at < $1`, h.clock.Wall())
			}
			h.must(other.Reconcile(t.Context(), p.ID))
		}})
		before := h.a.count("launch")
		p = h.rent(scope)
		h.must(h.Reconcile(t.Context(), p.ID))
		h.must(other.Reconcile(t.Context(), p.ID))
		if p = h.is(scope, p, pod.Starting); p.Attempts != 1 || h.a.count("launch") != before+1 {
			t.Errorf("%s: %d attempts", name, p.Attempts)
		}
		h.must(h.Beat(t.Context()))
		h.must(h.Delete(t.Context(), scope, p.ID))
		h.work()
	}
	h.ok()
}

// TestAddressThatComesLaterIsThePods: clouds that choose the port say it when
// the machine runs, which may be after its agent restored the volume.
func TestAddressThatComesLaterIsThePods(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before the agent": true, "after the agent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t)
			scope := h.team(team.Pro, 10*money.Dollar)
			h.a.script(play{builds: true})
			p := h.rent(scope)
			h.work()
			m := h.a.one()
			if early {
				h.a.settle(m)
				h.pass(10 * time.Second)
				if got := h.is(scope, p, pod.Starting); got.SSHPort != m.SSHPort {
					t.Errorf("the pod is at port %d, its machine at %d", got.SSHPort, m.SSHPort)
				}
			}
			a := h.boot(m)
			h.must(a.hello())
			h.must(a.report())
			a.open()
			if !early {
				h.pass(time.Minute)
				if got := h.is(scope, p, pod.Mounting); got.ReadyAt != nil {
					t.Errorf("ready at an address that nobody knows: %+v", got)
				}
				h.a.settle(m)
			}
			h.pass(10 * time.Second)
			if got := h.is(scope, p, pod.Ready); got.SSHPort != m.SSHPort {
				t.Errorf("the pod is at port %d, its machine at %d", got.SSHPort, m.SSHPort)
			}
			var host string
			h.must(h.pool.QueryRow(t.Context(), `select host from instance`).Scan(&host))
			if host != m.Host {
				t.Errorf("the machine is kept as at %q", host)
			}
		})
	}
}
