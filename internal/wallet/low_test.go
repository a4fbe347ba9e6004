package wallet_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// watch watches a balance, and returns whether it is low already.
func (h *house) watch(scope team.Scope, below money.USD) (low bool) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) (err error) {
		_, low, err = h.w.WatchTx(ctx, tx, scope.TeamID(), &below, h.clock.Now())
		return err
	})
	return low
}

// lowAt is when the wallet tells next that it is low; zero: it does not.
func (h *house) lowAt(scope team.Scope) time.Time {
	h.t.Helper()
	var us int64
	err := h.pool.QueryRow(h.t.Context(), `select coalesce(low_us, 0) from wallet where team_id = $1`, scope.TeamID()).Scan(&us)
	if err != nil {
		h.t.Fatal(err)
	}
	if us == 0 {
		return time.Time{}
	}
	return clock.FromMicros(us)
}

// told does what is told at now, and says whether it was.
func (h *house) told(scope team.Scope) (told bool) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) (err error) {
		told, err = h.w.LowTx(ctx, tx, scope.TeamID(), h.clock.Now())
		return err
	})
	return told
}

// The instant that is foreseen is the first microsecond at which the balance
// that a team sees is below what it watches, whatever runs.
func TestALowBalanceIsForeseenToTheMicrosecond(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 25 {
		scope := h.scope()
		h.credit(scope.TeamID(), money.USD(1_000_000+random.Int64N(200_000_000)))
		for range 1 + random.IntN(4) {
			h.start(scope.TeamID(), wallet.PodRuntime, money.Rate(1+random.Int64N(40_000_000)))
			h.clock.Advance(time.Duration(random.Int64N(200_000_000)) * time.Microsecond)
		}
		now := h.balance(scope).Balance
		below := money.USD(1 + random.Int64N(max(1, 5*int64(now)/4)))
		if low := h.watch(scope, below); low != (now < below) {
			t.Fatalf("a balance of %d is low below %d: %t", now, below, low)
		}
		at := h.lowAt(scope)
		if at.IsZero() != (now < below) {
			t.Fatalf("a balance of %d, watched below %d, is told at %v", now, below, at)
		}
		if at.IsZero() {
			continue
		}
		for offset, want := range map[time.Duration]bool{-time.Microsecond: false, 0: true} {
			if at.Add(offset).Before(h.clock.Now()) {
				continue
			}
			seen, err := h.w.Balance(t.Context(), scope, at.Add(offset))
			if err != nil {
				t.Fatal(err)
			}
			if got := seen.Balance < below; got != want {
				t.Fatalf("%v from the instant the balance is %d, watched below %d", offset, seen.Balance, below)
			}
		}
	}
}

func TestALowBalanceIsToldOnceUntilItWasAbove(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 12*money.Dollar)
	if h.watch(scope, 10*money.Dollar) || !h.lowAt(scope).IsZero() {
		t.Fatal("a wallet at rest above what is watched foresees a fall")
	}
	pod := h.start(scope.TeamID(), wallet.PodRuntime, 2_000_000)
	if h.told(scope) {
		t.Error("told an hour too early")
	}
	h.clock.Advance(time.Hour + time.Second)
	for i := range 3 {
		if h.told(scope) != (i == 0) {
			t.Errorf("look %d", i)
		}
	}
	h.rerate(pod, 3_000_000)
	h.settle()
	if h.told(scope) {
		t.Error("told again without having been above")
	}
	h.credit(scope.TeamID(), 5*money.Dollar)
	if h.told(scope) {
		t.Error("told although it is above")
	}
	h.clock.Advance(2 * time.Hour)
	if !h.told(scope) {
		t.Error("the second fall was not told")
	}
	h.stop(pod, h.clock.Now())
	h.credit(scope.TeamID(), 50*money.Dollar) // at rest but for the watch
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		_, err := h.w.DebitTx(ctx, tx, wallet.Debit{
			TeamID: scope.TeamID(), Amount: 50 * money.Dollar, To: wallet.Test, ReferenceID: "re_1", Key: "re_1", At: h.clock.Now(),
		})
		return err
	})
	if !h.told(scope) {
		t.Error("a fall by a refund was not told")
	}
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		_, _, err := h.w.WatchTx(ctx, tx, scope.TeamID(), nil, h.clock.Now())
		return err
	})
	if h.told(scope) || !h.lowAt(scope).IsZero() {
		t.Error("told although nobody watches")
	}
}
