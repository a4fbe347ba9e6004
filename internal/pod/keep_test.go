package pod_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// A keeping cloud ends machines by itself.
type keeping struct {
	*cloud
	until map[string][]time.Time // by reference
	err   error
}

// Keep implements provider.Keeper.
func (k *keeping) Keep(_ context.Context, ref string, until time.Time) error {
	if k.err == nil {
		k.until[ref] = append(k.until[ref], until)
	}
	return k.err
}

// TestDeadlineOfALivingMachineMoves: a machine is launched with a deadline a day
// away, which moves every eight hours while it lives, and not a moment longer.
func TestDeadlineOfALivingMachineMoves(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	k := &keeping{cloud: h.a, until: map[string][]time.Time{}}
	h.Adapters["a"] = k
	began := h.clock.Wall()
	p := h.rent(h.team(team.Pro, 10*money.Dollar))
	h.work()
	m := h.a.all[h.name(p, 1)]
	if m == nil || !m.launch.KeepUntil.Equal(began.Add(24*time.Hour)) {
		t.Fatalf("the machine is %+v", m)
	}
	keep := func(wait time.Duration) {
		t.Helper()
		h.clock.Advance(wait)
		if err := h.KeepMachines(t.Context()); (err != nil) != (k.err != nil) {
			t.Errorf("keep: %v", err)
		}
	}
	keep(8*time.Hour - time.Second)
	if len(k.until) != 0 {
		t.Errorf("moved already: %v", k.until)
	}
	k.err = errors.New("the cloud is down")
	keep(time.Second)
	k.err = nil
	keep(time.Hour) // what failed is due again
	keep(time.Minute)
	keep(8 * time.Hour)
	want := []time.Time{began.Add(33 * time.Hour), began.Add(41*time.Hour + time.Minute)}
	if !slices.EqualFunc(k.until[m.Ref], want, time.Time.Equal) || len(k.until) != 1 {
		t.Errorf("the deadline moved to %v, want %v", k.until, want)
	}
	if _, err := h.pool.Exec(t.Context(), `update instance set state = 'terminating'`); err != nil {
		t.Fatal(err)
	}
	keep(20 * time.Hour)
	if len(k.until[m.Ref]) != 2 {
		t.Error("the deadline of a machine that is to end moved")
	}
}
