package offer

import (
	"errors"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
)

// The whole life of a breaker: what happens, how much later, and what it is then.
func TestBreaker(t *testing.T) {
	t.Parallel()
	fails := errors.New("status 500")
	type step struct {
		after  time.Duration
		call   Call
		err    error
		state  string
		reason string
		probe  time.Duration // until the next probe; 0 = none
	}
	for name, steps := range map[string][]step{
		"five failures open it, and not four": {
			{0, CallOther, fails, Closed, "", 0},
			{0, CallLaunch, fails, Closed, "", 0},
			{0, CallOffers, fails, Closed, "", 0},
			{0, CallOther, fails, Closed, "", 0},
			{0, CallOther, provider.ErrUnreachable, Open, BrokenByFailures, 30 * time.Second},
		},
		"four failures and a fifth much later do not": {
			{0, CallOther, fails, Closed, "", 0},
			{0, CallOther, fails, Closed, "", 0},
			{0, CallOther, fails, Closed, "", 0},
			{0, CallOther, fails, Closed, "", 0},
			{5 * time.Minute, CallOther, fails, Closed, "", 0},
		},
		"what a cloud that works says is no failure": {
			{0, CallLaunch, provider.ErrNoCapacity, Closed, "", 0},
			{0, CallLaunch, provider.ErrRefused, Closed, "", 0},
			{0, CallLaunch, provider.ErrRateLimited, Closed, "", 0},
			{0, CallLaunch, provider.ErrPriceMoved, Closed, "", 0},
			{0, CallOther, provider.ErrNotYet, Closed, "", 0},
			{0, CallLaunch, provider.ErrPortTaken, Closed, "", 0},
			{0, CallOffers, errEmpty, Closed, "", 0},
			{0, CallLaunch, provider.ErrUnsupported, Closed, "", 0},
		},
		"an empty account opens it at once, once": {
			{0, CallLaunch, provider.ErrFunds, Open, BrokenByFunds, 10 * time.Minute},
			{time.Minute, CallLaunch, provider.ErrFunds, Open, BrokenByFunds, 9 * time.Minute},
			{time.Minute, CallOffers, nil, Open, BrokenByFunds, 8 * time.Minute},
			{8 * time.Minute, CallOffers, nil, Half, BrokenByFunds, 0},
			{time.Hour, CallOffers, nil, Half, BrokenByFunds, 0}, // a list is no proof of money
			{0, CallLaunch, provider.ErrFunds, Open, BrokenByFunds, 20 * time.Minute},
			{20 * time.Minute, CallOffers, nil, Half, BrokenByFunds, 0},
			{0, CallLaunch, nil, Closed, "", 0},
		},
		"a probe that is answered by 'sold out' is a good one": {
			{0, CallLaunch, provider.ErrFunds, Open, BrokenByFunds, 10 * time.Minute},
			{10 * time.Minute, CallOffers, provider.ErrNoCapacity, Half, BrokenByFunds, 0},
		},
		"a call that was under way does not disturb an open one": {
			{0, CallLaunch, provider.ErrFunds, Open, BrokenByFunds, 10 * time.Minute},
			{0, CallOther, fails, Open, BrokenByFunds, 10 * time.Minute},
			{0, CallLaunch, provider.ErrNoCapacity, Open, BrokenByFunds, 10 * time.Minute},
			{0, CallLaunch, nil, Closed, "", 0},
		},
	} {
		play := func(t *testing.T, b Breaker, steps []step) Breaker {
			now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			for i, st := range steps {
				now = now.Add(st.after)
				b = b.after(st.call, st.err, now, BreakerLimits{}.withDefaults())
				probe := time.Duration(0)
				if b.ProbeAt != nil {
					probe = b.ProbeAt.Sub(now)
				}
				if b.State != st.state || b.Reason != st.reason || probe != st.probe {
					t.Fatalf("%s, step %d: %s (%s), probe in %s", name, i+1, b.State, b.Reason, probe)
				}
			}
			return b
		}
		play(t, Breaker{State: Closed}, steps)
	}
}

// A cloud on trial has one failure, and each probe waits twice as long.
func TestTrialsOfABrokenCloudGrowRare(t *testing.T) {
	t.Parallel()
	l, now := BreakerLimits{}.withDefaults(), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := Breaker{State: Closed}
	for range 5 {
		b = b.after(CallOther, provider.ErrUnreachable, now, l)
	}
	want := 30 * time.Second
	for i := range 12 {
		if b.State != Open || b.ProbeAt.Sub(now) != want {
			t.Fatalf("after %d trials: %s, probe in %s, want %s", i, b.State, b.ProbeAt.Sub(now), want)
		}
		want = min(2*want, 15*time.Minute)
		now = *b.ProbeAt
		if i%2 == 0 { // its list does not come
			b = b.after(CallOffers, provider.ErrUnreachable, now, l)
			continue
		}
		if b = b.after(CallOffers, nil, now, l); b.State != Half {
			t.Fatalf("after a good probe: %s", b.State)
		}
		b = b.after(CallLaunch, errors.New("status 500"), now, l)
	}
	now = *b.ProbeAt
	b = b.after(CallOffers, nil, now, l)
	if b = b.after(CallOffers, nil, now.Add(l.Window-1), l); b.State != Half {
		t.Errorf("within the window: %s", b.State)
	}
	if b = b.after(CallOffers, nil, now.Add(l.Window), l); b.State != Closed || b.Opens != 0 {
		t.Errorf("after a window without a failure: %+v", b)
	}
}
