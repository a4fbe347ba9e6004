package offer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
)

// A till is a cloud that says what is left there.
type till struct {
	cloud
	mu     sync.Mutex
	left   money.USD
	fails  error
	counts atomic.Int64
}

func (c *till) Balance(context.Context) (money.USD, error) {
	c.counts.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left, c.fails
}

func (c *till) set(left money.USD, fails error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.fails = left, fails
}

// Two nodes that look for hours ask each cloud once in five minutes; one that
// says nothing of money is not asked, and one that stops answering keeps what it
// said last, with the reason.
func TestBalanceIsAskedOnceInFiveMinutesByOneNode(t *testing.T) {
	t.Parallel()
	pool, now := pgtest.New(t), clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	here, mute := &till{left: 25 * money.Dollar}, &cloud{}
	var nodes []*offer.Service
	for range 2 {
		s, err := offer.New(offer.Deps{Pool: pool, Clock: now.Clock, Adapters: map[string]provider.Adapter{"a": here, "b": mute}})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, s)
	}
	look := func() (failed int) {
		var all sync.WaitGroup
		var errs atomic.Int64
		for _, s := range nodes {
			for name := range s.Adapters {
				all.Go(func() {
					if s.ReadBalance(t.Context(), name) != nil {
						errs.Add(1)
					}
				})
			}
		}
		all.Wait()
		return int(errs.Load())
	}
	said := func() offer.Balance {
		t.Helper()
		list, err := nodes[1].Balances(t.Context())
		if err != nil || len(list) != 1 || list[0].Adapter != "a" {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	for range 10 {
		look()
		now.Advance(time.Minute)
	}
	if n := here.counts.Load(); n != 2 {
		t.Errorf("the cloud was asked %d times in 10 minutes", n)
	}
	first := said()
	if *first.Amount != 25*money.Dollar || first.Trouble != "" {
		t.Errorf("it says %d, %q", *first.Amount, first.Trouble)
	}
	here.set(0, errors.New("it does not answer"))
	now.Advance(5 * time.Minute)
	if n := look(); n != 1 {
		t.Errorf("%d nodes say that it failed, want the one that asked", n)
	}
	if b := said(); *b.Amount != 25*money.Dollar || !b.ReadAt.Equal(*first.ReadAt) || b.Trouble != "it does not answer" {
		t.Errorf("after a failure: %+v", b)
	}
	here.set(-money.Cent, nil)
	now.Advance(5 * time.Minute)
	look()
	if b := said(); *b.Amount != -money.Cent || b.Trouble != "" {
		t.Errorf("once it answers: %+v", b)
	}
	if nodes[0].TellsBalance("b") || !nodes[0].TellsBalance("a") {
		t.Error("it is not known which cloud says what is left")
	}
}
