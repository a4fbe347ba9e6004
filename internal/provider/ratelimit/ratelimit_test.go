package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/ratelimit"
)

var bucket = cloudapi.Bucket{Account: "acme-00000000", Class: "make"}

// TestNodesShareARate: nodes that ask side by side get together what one would.
func TestNodesShareARate(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	const nodes, each = 3, 5
	rate := cloudapi.Rate{Every: 100 * time.Millisecond, Burst: 3}
	wall := clock.New()
	var mu sync.Mutex
	var turns []time.Time
	var wg sync.WaitGroup
	for range nodes {
		node := ratelimit.New(pool, clock.New())
		wg.Go(func() {
			for range each {
				if err := node.Wait(t.Context(), bucket, rate); err != nil {
					t.Error(err)
				}
				mu.Lock()
				turns = append(turns, wall.Wall())
				mu.Unlock()
			}
		})
	}
	began := wall.Wall()
	wg.Wait()
	// Within any time d there are at most Burst + d/Every turns; the end of a
	// wait may be late, never early.
	for i, at := range turns {
		if allowed := rate.Burst + int(at.Sub(began)/rate.Every) + 1; i+1 > allowed {
			t.Errorf("turn %d came after %s", i+1, at.Sub(began))
		}
	}
	if took := wall.Wall().Sub(began); took < time.Duration(nodes*each-rate.Burst)*rate.Every-50*time.Millisecond {
		t.Errorf("%d turns took %s", nodes*each, took)
	}
}

// TestSharedAndLocalGiveTheSameTurns compares the statement with Rate.Take.
func TestSharedAndLocalGiveTheSameTurns(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hand := clock.Fixed(start)
	shared := ratelimit.New(pgtest.New(t), hand.Clock)
	rate := cloudapi.Rate{Every: time.Minute, Burst: 3}
	var next time.Time
	for i, step := range []time.Duration{0, 0, 0, time.Second, 10 * time.Second, 0, time.Minute, 10 * time.Minute, 0, 0, 0} {
		hand.Advance(step)
		var wait time.Duration
		taken, wait := rate.Take(next, hand.Wall())
		// A deadline that leaves no patience: a turn now, or none.
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
		if wait > 0 {
			cancel()
		}
		err := shared.Wait(ctx, bucket, rate)
		cancel()
		if wait == 0 {
			next = taken
		}
		if (err == nil) != (wait == 0) {
			t.Errorf("step %d: by the rule %s, by the database %v", i, wait, err)
		}
	}
}

func TestATurnThatComesTooLateIsNotTaken(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	node := ratelimit.New(pool, clock.New())
	rate := cloudapi.Rate{Every: time.Hour}
	if err := node.Wait(t.Context(), bucket, rate); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := node.Wait(ctx, bucket, rate)
		cancel()
		// Refusals use nothing: the next turn stays an hour away.
		if f := fault.Of(err); !errors.Is(err, provider.ErrRateLimited) || f.RetryAfter < 3500 || f.RetryAfter > 3600 {
			t.Errorf("the next turn: %v", err)
		}
	}
}

func TestAHoldCountsForEveryNode(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	one, two := ratelimit.New(pool, clock.New()), ratelimit.New(pool, clock.New())
	rate := cloudapi.Rate{Every: time.Millisecond, Burst: 100}
	if err := one.Hold(t.Context(), bucket, rate, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := one.Hold(t.Context(), bucket, rate, time.Second); err != nil { // a shorter one takes nothing back
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if f := fault.Of(two.Wait(ctx, bucket, rate)); f == nil || f.RetryAfter < 55 || f.RetryAfter > 60 {
		t.Errorf("the other node: %v", f)
	}
	if err := two.Wait(ctx, cloudapi.Bucket{Account: bucket.Account, Class: "read"}, rate); err != nil {
		t.Errorf("another class: %v", err)
	}
}
