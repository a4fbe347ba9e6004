package pg_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func startHub(t *testing.T, pool *pgxpool.Pool) *pg.Hub {
	t.Helper()
	hub := pg.NewHub(pool, slog.New(slog.DiscardHandler))
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := hub.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	return hub
}

func notify(t *testing.T, pool *pgxpool.Pool, channel, payload string) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		return pg.NotifyTx(t.Context(), tx, channel, payload)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-t.Context().Done():
		t.Fatal("nothing was received")
		return ""
	}
}

func TestHubDeliversToEverySubscriberOfTheChannel(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hub := startHub(t, pool)
	other := startHub(t, pool) // a second process
	a, cancelA := hub.Subscribe("pod:1")
	defer cancelA()
	b, cancelB := hub.Subscribe("pod:1")
	defer cancelB()
	c, cancelC := other.Subscribe("pod:1")
	defer cancelC()
	elsewhere, cancelElsewhere := hub.Subscribe("pod:2")
	defer cancelElsewhere()

	notify(t, pool, "pod:1", "wake\nup")
	notify(t, pool, "pod:2", "other")
	for _, sub := range []<-chan string{a, b, c} {
		if got := receive(t, sub); got != "wake\nup" {
			t.Errorf("received %q, want the payload as sent", got)
		}
	}
	if got := receive(t, elsewhere); got != "other" {
		t.Errorf("another channel's subscriber received %q", got)
	}
}

func TestNotifyIsNotSentWithoutCommit(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hub := startHub(t, pool)
	sub, cancel := hub.Subscribe("x")
	defer cancel()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pg.NotifyTx(t.Context(), tx, "x", "rolled back"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	notify(t, pool, "x", "committed")
	if got := receive(t, sub); got != "committed" {
		t.Errorf("received %q, want only the committed one", got)
	}
}

func TestNotifyRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for name, message := range map[string][2]string{
		"no channel":       {"", "x"},
		"two-line channel": {"a\nb", "x"},
		"too long":         {"a", strings.Repeat("x", 8000)},
	} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return pg.NotifyTx(t.Context(), tx, message[0], message[1])
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHubOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hub := startHub(t, pool)
	sub, cancel := hub.Subscribe("x")
	defer cancel()
	_, err := pool.Exec(t.Context(), `
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and query = 'listen homeport'`)
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, sub); got != "" {
		t.Fatalf("received %q, want the empty payload that says something may be missing", got)
	}
	notify(t, pool, "x", "again")
	if got := receive(t, sub); got != "again" {
		t.Errorf("received %q after the connection was lost", got)
	}
}

func TestSlowSubscriberHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hub := startHub(t, pool)
	slow, cancelSlow := hub.Subscribe("x")
	defer cancelSlow()
	quick, cancelQuick := hub.Subscribe("end")
	defer cancelQuick()
	for i := range 40 {
		notify(t, pool, "x", strconv.Itoa(i))
	}
	notify(t, pool, "end", "")
	receive(t, quick)
	if n := len(slow); n == 0 || n == 40 {
		t.Errorf("the slow subscriber holds %d payloads, want some and not all", n)
	}
}

func TestCancelledSubscriptionIsClosed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hub := startHub(t, pool)
	sub, cancel := hub.Subscribe("x")
	cancel()
	cancel()
	if _, open := <-sub; open {
		t.Error("the channel is open after cancel")
	}
	notify(t, pool, "x", "nobody is there")
}

func TestHubStartsOnce(t *testing.T) {
	t.Parallel()
	hub := startHub(t, pgtest.New(t))
	if err := hub.Start(t.Context()); err == nil {
		t.Error("a second Start was accepted")
	}
}
