package idem_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

var wall = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func run(t *testing.T, pool *pgxpool.Pool, r idem.Request, do func() (int, error)) (n int, err error) {
	t.Helper()
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		n, err = idem.RunTx(t.Context(), tx, r, do)
		return err
	})
	return n, err
}

func request(key, body string) idem.Request {
	return idem.Request{Scope: "user POST /x", Key: key, BodyHash: id.Hash(body), Wall: wall}
}

func TestOneKeyActsOnceHoweverManyAsk(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var acts atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			n, err := run(t, pool, request("k", "body"), func() (int, error) { return int(acts.Add(1)), nil })
			if err != nil || n != 1 {
				t.Errorf("answer %d, error %v, want 1", n, err)
			}
		})
	}
	wg.Wait()
	if acts.Load() != 1 {
		t.Errorf("it was done %d times", acts.Load())
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	refused := errors.New("refused")
	yes := func(n int) func() (int, error) { return func() (int, error) { return n, nil } }
	no := func() (int, error) { return 0, refused }
	later := func(r idem.Request, d time.Duration) idem.Request { r.Wall = r.Wall.Add(d); return r }
	other := request("k", "body")
	other.Scope = "somebody else"
	for _, tt := range []struct {
		name string
		r    idem.Request
		do   func() (int, error)
		want int
		err  error
	}{
		{"a refusal leaves nothing behind", request("k", "body"), no, 0, refused},
		{"the key is free afterwards", request("k", "body"), yes(1), 1, nil},
		{"the same again", request("k", "body"), yes(2), 1, nil},
		{"another body", request("k", "other"), yes(3), 0, idem.ErrMismatch},
		{"another key", request("k2", "other"), yes(4), 4, nil},
		{"another scope", other, yes(5), 5, nil},
		{"just before a day is over", later(request("k", "body"), idem.Lifetime-time.Microsecond), yes(6), 1, nil},
		{"after a day, with any body", later(request("k", "new"), idem.Lifetime), yes(7), 7, nil},
		{"a day later it stands for the new one", later(request("k", "new"), idem.Lifetime), yes(8), 7, nil},
		{"no key at all", request("", "body"), yes(9), 9, nil},
		{"no key again", request("", "body"), yes(10), 10, nil},
		{"too long", request(string(make([]byte, 256)), "body"), yes(11), 0, idem.ErrKey},
	} {
		n, err := run(t, pool, tt.r, tt.do)
		if n != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %v; want %d, %v", tt.name, n, err, tt.want, tt.err)
		}
	}
	if err := idem.Sweep(t.Context(), pool, wall.Add(idem.Lifetime)); err != nil {
		t.Fatal(err)
	}
	if n, err := run(t, pool, request("k2", "fresh"), yes(12)); n != 12 || err != nil {
		t.Errorf("after the sweep: %d, %v", n, err)
	}
}
