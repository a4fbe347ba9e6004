package offer_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
)

var errBroken = errors.New("status 500")

// newWatched is a market with two clouds on sale, whose operator gets letters.
func newWatched(t *testing.T) (*market, *job.Recorder) {
	t.Helper()
	jobs := &job.Recorder{}
	m := &market{t: t, clock: clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), a: &cloud{}, b: &cloud{}}
	var err error
	m.Service, err = offer.New(offer.Deps{
		Pool: pgtest.New(t), Clock: m.clock.Clock, Adapters: map[string]provider.Adapter{"a": m.a, "b": m.b},
		Operator: "operator@example.com", Jobs: jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.a.set(nil, h100())
	m.b.set(nil, h100(named("b1")))
	m.refresh()
	return m, jobs
}

func (m *market) note(c offer.Call, called error) {
	m.t.Helper()
	if err := m.NoteCall(m.t.Context(), "a", c, called); err != nil {
		m.t.Fatal(err)
	}
}

// tick lets a minute pass as a node lives it.
func (m *market) tick() {
	m.clock.Advance(time.Minute)
	m.refresh()
}

// sells fails the test unless these cloud ids are on sale.
func (m *market) sells(when string, want ...string) {
	m.t.Helper()
	got := []string{}
	for id := range m.visible() {
		got = append(got, id)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		m.t.Errorf("%s: on sale are %q, want %q", when, got, want)
	}
}

// A cloud whose calls fail goes off sale on every node, is not even asked for
// its list before its probe, and comes back with it. The others are not touched.
func TestBrokenCloudGoesOffSaleUntilItsProbe(t *testing.T) {
	t.Parallel()
	m, jobs := newWatched(t)
	other, err := offer.New(offer.Deps{Pool: m.Pool, Clock: m.clock.Clock, Adapters: m.Adapters})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // on two nodes
		node := []*offer.Service{m.Service, other}[i%2]
		if err := node.NoteCall(t.Context(), "a", offer.CallOther, errBroken); err != nil {
			t.Fatal(err)
		}
	}
	m.sells("after five failures", "b1")
	open, err := other.OpenTx(t.Context(), m.Pool, "a")
	if err != nil || !open {
		t.Errorf("another node launches there: %v", err)
	}
	asked := m.a.asked.Load()
	m.clock.Advance(20 * time.Second)
	if m.refresh(); m.a.asked.Load() != asked {
		t.Error("it is asked before its probe")
	}
	m.a.set(errBroken)
	m.tick()
	m.sells("after a probe that failed", "b1")
	m.a.set(nil, h100())
	m.tick()
	m.sells("after a good probe", "b1", "h100-1")
	m.note(offer.CallLaunch, errBroken)
	m.sells("after one failure on trial", "b1")
	for range 4 {
		m.tick()
	}
	m.sells("after the next good probe", "b1", "h100-1")
	for range 6 {
		m.tick()
	}
	health, err := m.Health(t.Context())
	if err != nil || len(health) != 2 || health[0].State != offer.Closed || health[0].Trouble != "" || health[0].Offers != 1 {
		t.Errorf("in the end: %+v, %v", health, err)
	}
	if letters := jobs.Take(); len(letters) != 1 {
		t.Errorf("the operator got %d letters, want one for the whole trouble: %+v", len(letters), letters)
	}
}

// An account without money takes its offers off sale with the first refusal,
// tells the operator once, and is back when a launch works.
func TestEmptyAccountGoesOffSaleAtOnce(t *testing.T) {
	t.Parallel()
	m, jobs := newWatched(t)
	var wg sync.WaitGroup
	for range 8 { // all at once
		wg.Go(func() {
			if err := m.NoteCall(t.Context(), "a", offer.CallLaunch, provider.ErrFunds.Because(errors.New("402 insufficient balance"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	m.sells("without money", "b1")
	health, err := m.Health(t.Context())
	if err != nil || health[0].Reason != offer.BrokenByFunds || health[0].ProbeAt.Sub(m.clock.Wall()) > 10*time.Minute || health[0].Trouble == "" {
		t.Errorf("the operator sees %+v, %v", health, err)
	}
	letters := jobs.Take()
	if len(letters) != 1 || letters[0].(offer.BrokenJob).Reason != offer.BrokenByFunds {
		t.Fatalf("letters: %+v", letters)
	}
	for range 9 {
		m.tick()
		m.sells("before the probe", "b1")
	}
	m.tick()
	m.sells("on trial", "b1", "h100-1")
	m.note(offer.CallLaunch, provider.ErrFunds)
	m.sells("still without money", "b1")
	for range 21 {
		m.tick()
	}
	m.note(offer.CallLaunch, nil)
	m.sells("after a launch that worked", "b1", "h100-1")
	if health, _ = m.Health(t.Context()); health[0].State != offer.Closed {
		t.Errorf("after it: %+v", health[0])
	}
	if letters := jobs.Take(); len(letters) != 0 {
		t.Errorf("more letters: %+v", letters)
	}
}

// One cloud that hangs does not delay the next look at the others.
func TestHangingCloudDelaysNoOther(t *testing.T) {
	t.Parallel()
	m, _ := newWatched(t)
	before := m.b.asked.Load()
	m.a.mu.Lock() // it does not answer
	done := make(chan error)
	go func() { done <- m.RefreshOne(t.Context(), "a") }()
	for range 20 {
		m.clock.Advance(30 * time.Second)
		if err := m.RefreshOne(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.b.asked.Load() - before; n != 20 {
		t.Errorf("b was asked %d times, want 20", n)
	}
	m.sells("while a hangs", "b1") // a was not seen for five minutes
	m.a.mu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	m.sells("when it answers", "b1", "h100-1")
}
