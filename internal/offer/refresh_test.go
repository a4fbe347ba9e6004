package offer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/provider"
)

func TestOffersHideFiveMinutesAfterTheyWereSeen(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100(named("a1")))
	m.b.set(nil, h100(named("b1")))
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"a1": 2_600_000, "b1": 2_600_000}, m.visible()); diff != "" {
		t.Fatal(diff)
	}
	m.a.set(errors.New("down"))
	for range 2 { // so few failures that its breaker stays closed
		m.clock.Advance(2 * time.Minute)
		m.refresh()
		if got := m.visible(); len(got) != 2 {
			t.Fatalf("after a failure within five minutes: %v", got)
		}
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 1 || got["b1"] == 0 {
		t.Errorf("after five minutes of failure: %v", got)
	}
	m.a.set(nil, h100(named("a1")))
	m.refresh()
	if got := m.visible(); len(got) != 2 {
		t.Errorf("after it came back: %v", got)
	}
}

// Without any refresh the catalogue in memory still hides what got too old.
func TestMemoryHidesByItself(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.refresh()
	m.clock.Advance(5*time.Minute - 2*time.Second)
	if got := m.visible(); len(got) != 1 {
		t.Errorf("just before: %v", got)
	}
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes: %v", got)
	}
}

func TestEmptyListIsNotBelievedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.refresh()
	m.a.set(nil)
	m.clock.Advance(4 * time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 1 {
		t.Errorf("an empty list was believed: %v", got)
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes of empty lists: %v", got)
	}
}

// TestCloudThatIsLetWholeIsInNoTrouble: it says so, unlike one with an empty list.
func TestCloudThatIsLetWholeIsInNoTrouble(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(provider.ErrNoCapacity)
	if err := m.RefreshNow(t.Context()); err != nil {
		t.Error(err)
	}
	m.a.set(provider.ErrNoCapacity)
	m.clock.Advance(5 * time.Minute)
	if err := m.RefreshNow(t.Context()); err != nil {
		t.Error(err)
	}
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes without a free machine: %v", got)
	}
	m.a.set(nil, h100())
	if err := m.RefreshNow(t.Context()); err != nil || len(m.visible()) != 1 {
		t.Errorf("and then one is free again: %v, %v", m.visible(), err)
	}
}

func TestBrokenOffersAreNotSold(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil,
		h100(named("good")), h100(named("good"), priced(1_000_000)),
		h100(named("free"), priced(0)), h100(named("below zero"), priced(-1)), h100(named("mad"), priced(1e15)),
		h100(named("nul\x00")), h100(named("bad\xff")), h100(named("none"), func(o *provider.Offer) { o.GPUCount = 0 }),
		h100(named("nameless"), func(o *provider.Offer) { o.Provider = "" }),
		h100(named("minus"), func(o *provider.Offer) { o.DiskGB = -1 }),
	)
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"good": 1_300_000}, m.visible()); diff != "" {
		t.Error(diff)
	}
}

func TestOneNodeRefreshes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	other, err := offer.New(offer.Deps{Pool: m.Pool, Clock: m.clock.Clock, Adapters: m.Adapters})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		m.refresh()
		if err := other.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.a.asked.Load(); n != 5 {
		t.Errorf("asked %d times, want 5", n)
	}
	if err := other.RefreshNow(t.Context()); err == nil || m.a.asked.Load() != 6 {
		t.Errorf("a refresh that is asked for: %v", err) // b's list is empty
	}
	m.clock.Advance(time.Hour) // the first node died
	if err := other.Refresh(t.Context()); err == nil || m.a.asked.Load() != 7 {
		t.Errorf("the second node did not take over: %v", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.refresh(); m.a.asked.Load() != 8 {
		t.Error("the lease was not given back")
	}
}

func TestAdaptersAreAskedNoMoreOftenThanAllowed(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.Every = map[string]time.Duration{"a": time.Minute}
	m.a.set(nil, h100())
	for range 6 {
		m.refresh()
		m.clock.Advance(30 * time.Second)
	}
	if a, b := m.a.asked.Load(), m.b.asked.Load(); a != 3 || b != 6 {
		t.Errorf("asked a %d and b %d times, want 3 and 6", a, b)
	}
}

// One cloud that hangs does not keep the others from being stored.
func TestHangingAdapterHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.mu.Lock() // it does not answer
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.refresh()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for stored := 0; stored == 0; {
		if err := m.Pool.QueryRow(ctx, "select count(*) from offer").Scan(&stored); err != nil {
			t.Error("nothing was stored:", err)
			break
		}
	}
	if got := m.visible(); len(got) != 1 {
		t.Errorf("visible: %v", got)
	}
	m.b.mu.Unlock()
	<-done
}
