package pod_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// lasting is a pod that runs, has synced, and is to be started again when lost.
func (h *harbour) lasting(scope team.Scope) (*pod.Pod, *agent) {
	h.t.Helper()
	p, a := h.running(scope)
	p, err := h.SetRelaunch(h.t.Context(), scope, p.ID, true)
	h.must(err)
	if !p.AutoRelaunch {
		h.t.Fatal("the pod does not say that it is started again")
	}
	a.live(time.Minute)
	return p, a
}

// successor is the pod that took p's place.
func (h *harbour) successor(scope team.Scope, p *pod.Pod) *pod.Pod {
	h.t.Helper()
	p = h.is(scope, p, pod.Deleted)
	if p.RelaunchedAs == nil {
		h.t.Fatalf("nothing took its place: %q", p.StatusDetail)
	}
	next, err := h.Find(h.t.Context(), scope, *p.RelaunchedAs)
	h.must(err)
	return next
}

// A pod whose machine is lost comes back on another cloud: the same SSH name,
// host key, port and files, at no higher price, and nothing is charged in between.
func TestLostPodIsStartedAgainElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.lasting(scope)
	last := h.clock.Now()
	own := h.a.one().launch.SSHPort
	h.a.vanish(a.machine.Name)
	h.pass(3 * time.Minute)
	next := h.successor(scope, p)
	if next.Status != pod.Starting || next.Provider != "borealis" || next.Rate > p.Rate || next.VolumeID != p.VolumeID {
		t.Fatalf("it is %s at %s for %d", next.Status, next.Provider, next.Rate)
	}
	if id.First(next.ID) != id.First(p.ID) || next.ID == p.ID || next.HostKeyFingerprint != p.HostKeyFingerprint || !next.AutoRelaunch {
		t.Errorf("it is another host: %s after %s", next.ID, p.ID)
	}
	if got := h.b.one().launch.SSHPort; got != own {
		t.Errorf("it asks for port %d, and had %d", got, own)
	}
	again := h.boot(h.b.one())
	again.mount()
	if again.welcome.Volume.Head == nil || again.welcome.HostKey != a.welcome.HostKey {
		t.Error("the files or the host key are not the same")
	}
	h.work()
	next = h.is(scope, next, pod.Ready)
	again.live(time.Minute)
	until := h.clock.Now()
	if got, want := h.spent(scope), cost(p, last)+cost(next, until); got != want {
		t.Errorf("charged %s, want %s", got.Decimal(), want.Decimal())
	}
	letters := 0
	for _, j := range h.jobs.Take() {
		if l, ok := j.(pod.LostJob); ok && l.PodID == p.ID {
			letters++
		}
	}
	if letters > 1 {
		t.Errorf("%d letters to one admin", letters)
	}
	h.ok()
}

// However often and on however many nodes that is done at once, one pod takes
// the place of a lost one.
func TestLostPodIsStartedAgainOnce(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing, func(l *pod.Limits) { l.Relaunches = 1 })
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.lasting(scope)
	h.a.vanish(a.machine.Name)
	for h.find(scope, p).Status != pod.Deleted {
		h.advance(5 * time.Second)
		h.must(h.Reconcile(t.Context(), p.ID))
	}
	for _, j := range h.jobs.Take() {
		if j, ok := j.(pod.TerminateJob); ok {
			h.must(h.Terminate(t.Context(), j.InstanceID))
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := h.Reconcile(t.Context(), p.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h.pass(time.Minute)
	pods, err := h.List(t.Context(), scope)
	h.must(err)
	if len(pods) != 2 || h.b.count("launch") != 1 {
		t.Errorf("%d pods, %d launches", len(pods), h.b.count("launch"))
	}
	next := h.successor(scope, p)
	again := h.boot(h.b.one())
	again.mount()
	h.work()
	h.is(scope, next, pod.Ready)
	again.live(5 * time.Second)
	h.b.vanish(again.machine.Name)
	h.pass(3 * time.Minute)
	if next = h.is(scope, next, pod.Deleted); next.RelaunchedAs != nil || !strings.Contains(next.StatusDetail, "more than 1 times") {
		t.Errorf("after its limit: %q", next.StatusDetail)
	}
	h.ok()
}

// Without the option a lost pod stays lost; so does one whose option is switched
// off while another cloud is looked for.
func TestLostPodStaysWhereNobodyAsked(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	h.sells(h.b, func(o *provider.Offer) { o.Country = "CA" }) // no equal offer
	p, a := h.lasting(scope)
	q, b := h.running(scope)
	a.live(5 * time.Second)
	_, err := b.lease("serving", 0)
	h.must(err)
	h.a.vanish(a.machine.Name)
	h.a.vanish(b.machine.Name)
	h.pass(3 * time.Minute)
	if q = h.is(scope, q, pod.Deleted); q.RelaunchedAs != nil || strings.Contains(q.StatusDetail, "again") {
		t.Errorf("nobody asked: %q", q.StatusDetail)
	}
	if p = h.is(scope, p, pod.Deleted); !strings.Contains(p.StatusDetail, "being started again") {
		t.Errorf("it waits: %q", p.StatusDetail)
	}
	_, err = h.SetRelaunch(t.Context(), scope, p.ID, false)
	h.must(err)
	h.sells(h.b, func(o *provider.Offer) { o.Country = "US" })
	h.pass(3 * time.Minute)
	if p = h.is(scope, p, pod.Deleted); p.RelaunchedAs != nil || strings.Contains(p.StatusDetail, "again") || h.b.count("launch") != 0 {
		t.Errorf("after it was switched off: %q, %d launches", p.StatusDetail, h.b.count("launch"))
	}
	if _, err := h.SetRelaunch(t.Context(), scope, p.ID, true); !errors.Is(err, pod.ErrTransition) {
		t.Errorf("switched on after the end: %v", err)
	}
}

// A lost pod that its user deletes while another cloud is looked for stays where
// it is, whatever is sold later.
func TestLostPodThatIsDeletedStays(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	h.sells(h.b, func(o *provider.Offer) { o.Country = "CA" }) // no equal offer
	p, a := h.lasting(scope)
	a.live(5 * time.Second)
	h.a.vanish(a.machine.Name)
	h.pass(3 * time.Minute)
	if p = h.is(scope, p, pod.Deleted); !strings.Contains(p.StatusDetail, "being started again") {
		t.Fatalf("it does not wait: %q", p.StatusDetail)
	}
	member := teamtest.Join(t, h.pool, scope.TeamID(), team.Member)
	if err := h.Delete(t.Context(), member, p.ID); !errors.Is(err, pod.ErrNotYours) {
		t.Errorf("a member who did not make it: %v", err)
	}
	for range 2 { // deleting twice is deleting once
		h.must(h.Delete(t.Context(), scope, p.ID))
	}
	charged := h.spent(scope)
	h.sells(h.b, func(o *provider.Offer) { o.Country = "US" })
	h.pass(3 * time.Minute)
	p = h.is(scope, p, pod.Deleted)
	if p.RelaunchedAs != nil || p.AutoRelaunch || p.StatusReason != pod.ReasonLost || strings.Contains(p.StatusDetail, "again") {
		t.Errorf("after it was deleted: %q, started again as %v", p.StatusDetail, p.RelaunchedAs)
	}
	if v := h.volume(scope, p); v.CurrentlyUsed || h.b.count("launch") != 0 || h.spent(scope) != charged {
		t.Errorf("the volume is used: %t, %d launches, %s charged", v.CurrentlyUsed, h.b.count("launch"), (h.spent(scope) - charged).Decimal())
	}
	if _, err := h.SetRelaunch(t.Context(), scope, p.ID, true); !errors.Is(err, pod.ErrTransition) {
		t.Errorf("switched on after the end: %v", err)
	}
}

// What stands in the way is told, and nothing is changed or charged.
func TestLostPodThatCannotBeStartedAgainSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sells  func(o *provider.Offer)
		before func(h *harbour, scope team.Scope, p *pod.Pod)
		wait   time.Duration
		want   string
	}{
		"dearer elsewhere":       {func(o *provider.Offer) { o.UpstreamPrice = 2_100_000 }, nil, 17 * time.Minute, "No other cloud has the same GPUs at this price or less."},
		"only at the same cloud": {func(o *provider.Offer) { o.Provider = "aurora" }, nil, 17 * time.Minute, "No other cloud has the same GPUs at this price or less."},
		"its key was removed": {nil, func(h *harbour, scope team.Scope, p *pod.Pod) {
			h.must(h.keys.Delete(h.t.Context(), scope, p.SSHKeyID))
		}, time.Minute, "Its SSH key was removed."},
		"no money": {nil, nil, time.Minute, "Insufficient Funds"},
	} {
		h := newHarbour(t, hearing)
		funds := 100 * money.Dollar
		if name == "no money" {
			funds = 45_000 // of 65 seconds less than a cent is left
		}
		scope := h.team(team.Pro, funds)
		if tt.sells != nil {
			h.sells(h.b, tt.sells)
		}
		p, a := h.lasting(scope)
		if tt.before != nil {
			tt.before(h, scope, p)
		}
		a.live(5 * time.Second)
		h.a.vanish(a.machine.Name)
		h.pass(2*time.Minute + 30*time.Second + tt.wait)
		p = h.is(scope, p, pod.Deleted)
		if p.RelaunchedAs != nil || !strings.Contains(p.StatusDetail, "It could not be started again: "+tt.want) {
			t.Errorf("%s: %q", name, p.StatusDetail)
		}
		if v := h.volume(scope, p); v.CurrentlyUsed || h.b.count("launch") != 0 {
			t.Errorf("%s: the volume is used, or a machine was asked for", name)
		}
	}
}

// What may pass is waited for, but not for ever: another pod has the GPUs that
// the plan allows, or the last SSH port.
func TestLostPodWaitsForWhatMayPass(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit func(l *pod.Limits)
		want  string
	}{
		"GPUs": {func(l *pod.Limits) { l.ProGPUs = 1 }, "Your plan allows 1 GPUs at once; 1 are in use and this pod needs 1."},
		"port": {func(l *pod.Limits) { l.PortLast = l.PortFirst }, "No SSH port is free at the moment. Please try again later."},
	} {
		for _, frees := range []bool{true, false} {
			h := newHarbour(t, hearing, tt.limit)
			scope := h.team(team.Pro, 100*money.Dollar)
			h.sells(h.b, func(o *provider.Offer) { o.Country = "CA" }) // no equal offer
			p, a := h.lasting(scope)
			a.live(5 * time.Second)
			h.a.vanish(a.machine.Name)
			h.pass(3 * time.Minute)
			q := h.rent(scope)
			h.work()
			h.sells(h.b, func(o *provider.Offer) { o.Country = "US" })
			h.pass(3 * time.Minute)
			if p = h.is(scope, p, pod.Deleted); p.RelaunchedAs != nil || !strings.Contains(p.StatusDetail, "being started again") {
				t.Fatalf("%s: it does not wait: %q", name, p.StatusDetail)
			}
			if frees {
				h.must(h.Delete(t.Context(), scope, q.ID))
				h.pass(time.Minute)
				if next := h.successor(scope, p); next.Provider != "borealis" {
					t.Errorf("%s: it was started again at %s", name, next.Provider)
				}
				continue
			}
			h.pass(7 * time.Minute)
			if p = h.is(scope, p, pod.Deleted); p.RelaunchedAs != nil || !strings.Contains(p.StatusDetail, "It could not be started again: "+tt.want) {
				t.Errorf("%s: %q", name, p.StatusDetail)
			}
		}
	}
}

// A pod that its user starts again by hand has the ended one's name, host key
// and port too, once, and only within the team.
func TestPodStartedAgainByHandKeepsItsName(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	a.live(5 * time.Second)
	again := h.ask(scope)
	again.VolumeID, again.RelaunchOf = p.VolumeID, p.ID
	if _, err := h.Create(t.Context(), scope, again); !errors.Is(err, pod.ErrRelaunched) {
		t.Errorf("in place of one that runs: %v", err)
	}
	h.a.vanish(a.machine.Name)
	h.pass(3 * time.Minute)
	h.is(scope, p, pod.Deleted)
	other := h.team(team.Pro, 100*money.Dollar)
	foreign := h.ask(other)
	foreign.RelaunchOf = p.ID
	if _, err := h.Create(t.Context(), other, foreign); !errors.Is(err, pod.ErrNotFound) {
		t.Errorf("in place of another team's: %v", err)
	}
	h.must(h.offers.Refresh(t.Context()))
	q, err := h.Create(t.Context(), scope, again)
	h.must(err)
	if id.First(q.ID) != id.First(p.ID) || q.HostKeyFingerprint != p.HostKeyFingerprint || q.AutoRelaunch {
		t.Errorf("started again as %s after %s", q.ID, p.ID)
	}
	h.work()
	guest := h.boot(h.a.one())
	guest.mount()
	h.work()
	h.is(scope, q, pod.Ready)
	third := h.ask(scope)
	third.RelaunchOf = p.ID
	if _, err := h.Create(t.Context(), scope, third); !errors.Is(err, pod.ErrRelaunched) {
		t.Errorf("a second time: %v", err)
	}
	h.ok()
}

// Who may delete a pod may say whether it is started again, nobody else.
func TestOnlyCreatorAndAdminsSwitchRelaunch(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	member := teamtest.Join(t, h.pool, scope.TeamID(), team.Member)
	if _, err := h.SetRelaunch(t.Context(), member, p.ID, true); !errors.Is(err, pod.ErrNotYours) {
		t.Errorf("a member: %v", err)
	}
	other := h.team(team.Pro, 0)
	if _, err := h.SetRelaunch(t.Context(), other, p.ID, true); !errors.Is(err, pod.ErrNotFound) {
		t.Errorf("another team: %v", err)
	}
	if h.find(scope, p).AutoRelaunch {
		t.Error("it was switched on")
	}
}
