package pod_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
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
	for _, refusal := range []error{provider.ErrNoCapacity, provider.ErrPriceMoved, provider.ErrRefused} {
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

// TestSlowCloudHasItsTimeToStart: a cloud says how long its machines may take.
func TestSlowCloudHasItsTimeToStart(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.a.caps.BootTimeout = 30 * time.Minute
	scope := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	h.pass(29*time.Minute + 50*time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "aurora" {
		t.Errorf("after 29 minutes it starts at %s", p.Provider)
	}
	h.pass(20 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("after 30 minutes it starts at %s", p.Provider)
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
