package pod_test

import (
	"errors"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

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
