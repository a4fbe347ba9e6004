package pg_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func TestInTxCommitsOrRollsBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	boom := errors.New("boom")
	insert := func(name string, result error) error {
		return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := pg.TryLease(t.Context(), tx, name, "me", time.Hour, noon); err != nil {
				return err
			}
			return result
		})
	}
	if err := insert("kept", nil); err != nil {
		t.Fatal(err)
	}
	if err := insert("dropped", boom); err != boom { //nolint:errorlint // unchanged is the guarantee
		t.Fatalf("error %v, want fn's own, unchanged", err)
	}
	var names []string
	if err := pool.QueryRow(t.Context(), "select array_agg(name) from lease").Scan(&names); err != nil {
		t.Fatal(err)
	}
	if len(names) != 1 || names[0] != "kept" {
		t.Errorf("the table holds %v, want only what was committed", names)
	}
}

func TestInTxRetriesADeadlock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, name := range []string{"a", "b"} {
		if _, err := pg.TryLease(t.Context(), pool, name, "me", time.Hour, noon); err != nil {
			t.Fatal(err)
		}
	}
	const lock = "select name from lease where name = $1 for update"
	bothHold := make(chan struct{}, 2)
	attempts := make(chan int, 2)
	cross := func(first, second string) error {
		n := 0
		defer func() { attempts <- n }()
		return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			n++
			if _, err := tx.Exec(t.Context(), lock, first); err != nil {
				return err
			}
			if n == 1 { // each waits until the other has its first lock
				bothHold <- struct{}{}
				for len(bothHold) < 2 && t.Context().Err() == nil {
					if _, err := tx.Exec(t.Context(), "select pg_sleep(0.005)"); err != nil {
						return err
					}
				}
			}
			_, err := tx.Exec(t.Context(), lock, second)
			return err
		})
	}
	errs := make(chan error, 1)
	go func() { errs <- cross("b", "a") }()
	if err := cross("a", "b"); err != nil {
		t.Errorf("one side: %v", err)
	}
	if err := <-errs; err != nil {
		t.Errorf("other side: %v", err)
	}
	if n := <-attempts + <-attempts; n < 3 {
		t.Errorf("%d attempts in all: there was no deadlock to retry", n)
	}
}

func TestInTxGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	failure := fmt.Errorf("settle: %w", &pgconn.PgError{Code: "40001"})
	n := 0
	err := pg.InTx(t.Context(), pool, func(pgx.Tx) error { n++; return failure })
	if !errors.Is(err, failure) || n != 6 {
		t.Errorf("%d attempts, %v; want 6 and the failure", n, err)
	}
}

func TestInTxStopsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := pg.InTx(ctx, pool, func(pgx.Tx) error {
		n++
		cancel()
		return &pgconn.PgError{Code: "40001"}
	})
	if err == nil || n != 1 {
		t.Errorf("%d attempts, %v; want one and an error", n, err)
	}
}

func TestInTxLooksAgainAfterSomebodyElseCommitted(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	execute := func(sql string) {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute("create table kept (n int constraint kept_once primary key, other int constraint other_once unique)")
	execute("insert into kept values (1, 1)")
	for constraint, want := range map[string]int{"kept_once": 2, "other_once": 1, "kept_pkey": 1} {
		tries := 0
		err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if tries++; tries > 1 {
				return nil // it is found now
			}
			_, err := tx.Exec(t.Context(), "insert into kept values (1, 2)")
			return pg.AgainAfter(err, constraint)
		})
		if tries != want || (err == nil) != (want == 2) {
			t.Errorf("%s: %d tries, %v", constraint, tries, err)
		}
	}
	if pg.AgainAfter(nil, "kept_once") != nil {
		t.Error("no error became one")
	}
}

func TestFirstTryIsTheFirstRunOfInTxOnly(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var tries []bool
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		tries = append(tries, pg.FirstTry(tx))
		if len(tries) < 3 {
			return &pgconn.PgError{Code: "40001"}
		}
		return pgx.BeginFunc(t.Context(), tx, func(inner pgx.Tx) error {
			tries = append(tries, pg.FirstTry(inner))
			return nil
		})
	})
	if want := []bool{true, false, false, false}; err != nil || !slices.Equal(tries, want) {
		t.Errorf("first tries %v, %v; want %v", tries, err, want)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if pg.FirstTry(tx) {
			t.Error("a transaction that nobody tries again is a first try")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
