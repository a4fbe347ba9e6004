package pod_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/team"
)

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
