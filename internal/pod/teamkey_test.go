package pod_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// askLocked is ask on a volume that only the returned key opens.
func (h *harbour) askLocked(scope team.Scope) (pod.Create, string) {
	h.t.Helper()
	in, key := h.ask(scope), "hpk_"+id.Token()
	v, err := h.vols.CreateLocked(h.t.Context(), scope, "secret", key, idem.Request{})
	h.must(err)
	in.VolumeID, in.AutoRelaunch = v.ID, true
	return in, key
}

// lost is a pod on a volume with a key of its team's, whose machine went away
// after a sync.
func (h *harbour) lost(scope team.Scope) (*pod.Pod, *agent, string) {
	h.t.Helper()
	in, key := h.askLocked(scope)
	p, a := h.ready(func() *pod.Pod {
		p, err := h.Create(h.t.Context(), scope, in)
		h.must(err)
		return p
	})
	a.write("a.txt", "hello")
	h.must(a.sync(false))
	a.live(2 * time.Minute)
	h.must(h.vols.LockDue(h.t.Context()))
	h.a.vanish(a.machine.Name)
	return h.is(scope, p, pod.Ready), a, key
}

const lockedDetail = "This volume is locked. Unlock it with its key first."

// A locked volume is ordered by nobody: nothing is made, charged or launched.
// Unlocked it runs as any other.
func TestAPodIsRefusedALockedVolume(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	in, key := h.askLocked(scope)
	_, err := h.vols.Lock(t.Context(), scope, in.VolumeID)
	h.must(err)
	_, err = h.Create(t.Context(), scope, in)
	if f := fault.Of(err); !errors.Is(err, volume.ErrLocked) || f.Detail != lockedDetail {
		t.Errorf("a pod on a locked volume: %v", err)
	}
	h.work()
	if pods, err := h.List(t.Context(), scope); err != nil || len(pods) != 0 || h.a.count("launch")+h.b.count("launch") != 0 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	_, err = h.vols.Unlock(t.Context(), scope, in.VolumeID, key)
	h.must(err)
	p, a := h.ready(func() *pod.Pod {
		p, err := h.Create(t.Context(), scope, in)
		h.must(err)
		return p
	})
	h.is(scope, p, pod.Ready)
	for range 3 { // however long it runs
		h.clock.SetOffset(h.clock.Offset() + time.Hour)
		a.live(5 * time.Second)
		h.must(h.vols.LockDue(t.Context()))
	}
	if _, err := h.vols.Lock(t.Context(), scope, in.VolumeID); !errors.Is(err, volume.ErrInUse) {
		t.Errorf("locked under a pod: %v", err)
	}
}

// Within the hour a lost pod comes back by itself, and asks nobody for the key.
func TestALostPodComesBackWithinTheHour(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, _, _ := h.lost(scope)
	h.pass(3 * time.Minute)
	h.must(h.vols.LockDue(t.Context()))
	next := h.successor(scope, p)
	again := h.boot(h.b.one())
	again.mount()
	if again.welcome.Volume.Head == nil {
		t.Error("the files are not there")
	}
	h.work()
	h.is(scope, next, pod.Ready)
	h.ok()
}

// Locked meanwhile, it stays lost and says why; by hand it is refused, and goes
// on under its old name right after the volume is unlocked.
func TestALostPodWaitsForTheKey(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(h *harbour, scope team.Scope, p *pod.Pod){
		"by its team": func(h *harbour, scope team.Scope, p *pod.Pod) {
			_, err := h.vols.Lock(h.t.Context(), scope, p.VolumeID)
			h.must(err)
		},
		"by the clock": func(h *harbour, _ team.Scope, _ *pod.Pod) {
			h.clock.SetOffset(h.clock.Offset() + time.Hour)
			h.must(h.vols.LockDue(h.t.Context()))
		},
	} {
		h := newHarbour(t, hearing)
		scope := h.team(team.Pro, 100*money.Dollar)
		h.sells(h.b, func(o *provider.Offer) { o.Country = "CA" }) // no equal offer yet
		p, _, key := h.lost(scope)
		h.pass(3 * time.Minute)
		if p = h.is(scope, p, pod.Deleted); !strings.Contains(p.StatusDetail, "being started again") || h.volume(scope, p).Locked {
			t.Fatalf("%s: it does not wait: %q", name, p.StatusDetail)
		}
		lock(h, scope, p)
		h.sells(h.b, func(o *provider.Offer) { o.Country = "US" })
		h.pass(time.Minute)
		p = h.is(scope, p, pod.Deleted)
		if p.RelaunchedAs != nil || !strings.Contains(p.StatusDetail, "It could not be started again: "+lockedDetail) || h.b.count("launch") != 0 {
			t.Errorf("%s: started again as %v: %q", name, p.RelaunchedAs, p.StatusDetail)
		}
		again := h.ask(scope)
		again.VolumeID, again.RelaunchOf = p.VolumeID, p.ID
		if _, err := h.Create(t.Context(), scope, again); !errors.Is(err, volume.ErrLocked) {
			t.Errorf("%s: by hand: %v", name, err)
		}
		_, err := h.vols.Unlock(t.Context(), scope, p.VolumeID, key)
		h.must(err)
		next, err := h.Create(t.Context(), scope, again)
		h.must(err)
		h.work()
		b := h.boot(h.a.one())
		b.mount()
		h.work()
		h.is(scope, next, pod.Ready)
		if id.First(next.ID) != id.First(p.ID) || b.welcome.Volume.Head == nil {
			t.Errorf("%s: it is %s after %s, or its files are gone", name, next.ID, p.ID)
		}
		h.ok()
	}
}
