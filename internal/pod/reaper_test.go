package pod_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// reap lets time pass and looks through the accounts.
func (h *harbour) reap(d time.Duration) {
	h.t.Helper()
	h.advance(d)
	h.must(h.Reap(h.t.Context()))
}

func (h *harbour) left() []string {
	left := h.a.names()
	slices.Sort(left)
	return left
}

// An unowned machine with our mark is ended when it was seen twice, two minutes
// apart, ten minutes after the start at the earliest. No other is touched.
func TestReaperEndsWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	owned, orphan := h.name(p, 1), "hp-"+h.env4()+"-0000aaaa-1"
	others := []string{"hp-zzzz-0000aaaa-1", "hp-" + h.env4() + "x-0000aaaa-1", "my-own-machine"}
	h.a.plant(append(others, orphan)...)
	all := append([]string{owned, orphan}, others...)
	slices.Sort(all)
	for range 9 {
		h.reap(time.Minute)
	}
	h.reap(59 * time.Second) // not armed
	h.reap(time.Second)      // seen once
	h.reap(2*time.Minute - time.Second)
	if diff := cmp.Diff(all, h.left()); diff != "" {
		t.Fatalf("too early:\n%s", diff)
	}
	h.reap(time.Second)
	want := append([]string{owned}, others...)
	slices.Sort(want)
	if diff := cmp.Diff(want, h.left()); diff != "" {
		t.Error(diff)
	}
	// A machine on its way out is somebody's still: its instance is open.
	h.a.answers(nil, []error{errCut, errCut, errCut, errCut, errCut, errCut})
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.work()
	before := h.a.count("terminate")
	h.reap(3 * time.Minute)
	h.reap(3 * time.Minute)
	if n := h.a.count("terminate"); n != before {
		t.Error("the reaper ended a machine that an open instance owns")
	}
}

// After a restore the rows of living machines may be missing: none is ended
// before the operator says so, whatever is started anew in between.
func TestReaperWaitsAfterARestore(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.ReaperArms = time.Second })
	h.reap(time.Minute)
	h.a.plant("hp-" + h.env4() + "-0000aaaa-1")
	h.exec(`update installation set cluster = '1/00000001'`) // the backup was made elsewhere
	for range 20 {
		h.reap(time.Minute)
	}
	h.must(h.Prepare(t.Context()))
	h.reap(time.Hour)
	if len(h.left()) != 1 {
		t.Fatal("a machine was ended before the operator confirmed the restore")
	}
	since, err := h.Arm(t.Context())
	if h.must(err); since == nil {
		t.Error("nothing was to confirm")
	}
	h.reap(time.Minute)
	h.reap(2 * time.Minute)
	if left := h.left(); len(left) != 0 {
		t.Errorf("left after the operator confirmed: %q", left)
	}
	if since, err = h.Arm(t.Context()); err != nil || since != nil {
		t.Errorf("confirmed again: %v, %v", since, err)
	}
}

// A machine that is gone for a while is seen for the first time again.
func TestReaperForgets(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.ReaperArms = time.Second })
	h.a.plant("hp-" + h.env4() + "-0000aaaa-1")
	h.reap(time.Minute)
	h.a.blind = true
	h.reap(time.Minute)
	h.a.blind = false
	h.reap(time.Minute)
	h.reap(time.Minute)
	if len(h.left()) != 1 {
		t.Fatal("ended too early")
	}
	h.a.answers([]error{errCut}, nil)
	h.reap(time.Minute) // an error says nothing
	if len(h.left()) != 1 {
		t.Fatal("ended without a look")
	}
	h.a.answers(nil, []error{errCut})
	h.reap(time.Minute)
	h.reap(time.Minute)
	if left := h.left(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A watched cloud notes until when each terminate may take.
type watched struct {
	*cloud
	until []time.Time
}

// Terminate implements provider.Adapter.
func (w *watched) Terminate(ctx context.Context, ref string) error {
	deadline, _ := ctx.Deadline()
	w.until = append(w.until, deadline)
	return w.cloud.Terminate(ctx, ref)
}

// A slow list, or an end that takes its time, takes none of the next end's.
func TestReaperGivesEachEndItsTime(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.ReaperArms = time.Second })
	k := &watched{cloud: h.a}
	h.Adapters["a"] = k
	scope := h.team(team.Pro, 10*money.Dollar)
	for range 8 {
		h.rent(scope)
	}
	h.work()
	h.a.plant("hp-"+h.env4()+"-0000aaaa-1", "hp-"+h.env4()+"-0000aaab-1")
	h.reap(time.Minute)
	h.reap(2 * time.Minute)
	if len(k.until) != 2 || k.until[0].IsZero() || !k.until[1].After(k.until[0]) {
		t.Errorf("the ends may take until %v", k.until)
	}
}

// More than three at once, or more than a fifth of an account, is no accident
// of ours: none is ended.
func TestReaperStopsBeforeAMassacre(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		orphans, owned int
		ended          bool
	}{{1, 0, true}, {1, 4, true}, {2, 0, false}, {2, 7, false}, {2, 8, true}, {3, 12, true}, {3, 11, false}, {4, 40, false}} {
		h := newHarbour(t, func(l *pod.Limits) { l.ReaperArms = time.Second })
		scope := h.team(team.Pro, 10*money.Dollar)
		for range tt.owned {
			h.rent(scope)
		}
		h.work()
		for i := range tt.orphans {
			h.a.plant(fmt.Sprintf("hp-%s-0000aaa%d-1", h.env4(), i))
		}
		h.reap(time.Minute)
		h.reap(2 * time.Minute)
		want := tt.owned + tt.orphans
		if tt.ended {
			want = tt.owned
		}
		if got := len(h.left()); got != want {
			t.Errorf("%d of %d: %d machines left, want %d", tt.orphans, tt.orphans+tt.owned, got, want)
		}
	}
}
