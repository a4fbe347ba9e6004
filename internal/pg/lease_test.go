package pg_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func tryLease(t *testing.T, pool *pgxpool.Pool, holder string, now time.Time) bool {
	t.Helper()
	ok, err := pg.TryLease(t.Context(), pool, "sweep", holder, 30*time.Second, now)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestLeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	steps := []struct {
		holder string
		at     time.Duration
		want   bool
	}{
		{"a", 0, true},
		{"b", 0, false},
		{"a", 20 * time.Second, true},  // renewed to 50 s
		{"b", 49 * time.Second, false}, // a still has it
		{"b", 50 * time.Second, true},  // it ran out
		{"a", 60 * time.Second, false},
	}
	for _, s := range steps {
		if got := tryLease(t, pool, s.holder, noon.Add(s.at)); got != s.want {
			t.Fatalf("%s at %s: %v, want %v", s.holder, s.at, got, s.want)
		}
	}
}

func TestReleasedLeaseIsFree(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tryLease(t, pool, "a", noon)
	if err := pg.ReleaseLease(t.Context(), pool, "sweep", "b"); err != nil {
		t.Fatal(err)
	}
	if tryLease(t, pool, "b", noon) {
		t.Fatal("b released what a holds")
	}
	if err := pg.ReleaseLease(t.Context(), pool, "sweep", "a"); err != nil {
		t.Fatal(err)
	}
	if !tryLease(t, pool, "b", noon) {
		t.Error("the lease is not free after its holder released it")
	}
}

func TestLeaseRaceHasOneWinner(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for round := range 5 {
		now := noon.Add(time.Duration(round) * time.Hour)
		var wins sync.Map
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				ok, err := pg.TryLease(t.Context(), pool, "sweep", string(rune('a'+i)), time.Minute, now)
				if err != nil {
					t.Error(err)
				}
				if ok {
					wins.Store(i, true)
				}
			})
		}
		wg.Wait()
		n := 0
		wins.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Fatalf("round %d: %d winners", round, n)
		}
	}
}

func TestClockMovesForwardOnly(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	advance := func(d time.Duration) (got time.Duration, err error) {
		err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			got, err = pg.AdvanceClockTx(t.Context(), tx, d)
			return err
		})
		return got, err
	}
	for i, want := range []time.Duration{time.Hour, 2 * time.Hour} {
		if got, err := advance(time.Hour); err != nil || got != want {
			t.Fatalf("advance %d: %v, %v; want %v", i, got, err, want)
		}
	}
	if _, err := advance(-time.Second); err == nil {
		t.Error("the clock was moved backwards")
	}
	if got, err := pg.ClockOffset(t.Context(), pool); err != nil || got != 2*time.Hour {
		t.Errorf("offset %v, %v; want 2h", got, err)
	}
}

func TestServerTimeIsUTC(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	first, err := pg.ServerTime(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pg.ServerTime(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if first.Location() != time.UTC || second.Before(first) || first.Nanosecond()%1000 != 0 {
		t.Errorf("read %v then %v, want UTC microseconds in order", first, second)
	}
}
