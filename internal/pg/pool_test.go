package pg_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func TestOpenReadsTimesInUTC(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var one time.Time
	var many []time.Time
	const sql = `select timestamptz '2026-07-01 12:00:00+02', array[timestamptz '2026-07-01 12:00:00+02']`
	if err := pool.QueryRow(t.Context(), sql).Scan(&one, &many); err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	if one != want || len(many) != 1 || many[0] != want { // the zone too
		t.Errorf("read %v and %v, want %v", one, many, want)
	}
}

func TestOpenSetsEverySession(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for name, want := range map[string]string{
		"timezone": "UTC", "statement_timeout": "30s", "idle_in_transaction_session_timeout": "1min", "application_name": "homeport",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestOpenTakesParametersFromTheURL(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pgtest.URL(t)+"&pool_max_conns=3&statement_timeout=50ms")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Config().MaxConns; n != 3 {
		t.Errorf("the pool may hold %d connections, want 3", n)
	}
	_, err = pool.Exec(t.Context(), "select pg_sleep(30)")
	if pe := new(pgconn.PgError); !errors.As(err, &pe) || pe.Code != "57014" {
		t.Errorf("a slow statement ended with %v, want its timeout", err)
	}
}

func TestOpenTellsWhyItFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, url := range []string{
		"postgres://someone:hunter2@127.0.0.1:1/none?sslmode=disable",
		"postgres://someone:hunter2@127.0.0.1:port/none",
	} {
		_, err := pg.Open(ctx, url)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: want an error without the password", err)
		}
	}
}

// Ids come back as they went, alone, in a list and where there is none.
func TestOpenPassesIDs(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	id, other := uuid.New(), uuid.New()
	var one, none uuid.UUID
	var pointer, missing *uuid.UUID
	var many []uuid.UUID
	var text string
	const sql = `select $1::uuid, $1::uuid, $2::uuid, coalesce($2, null::uuid), $3::uuid[], ($1::uuid)::text`
	err := pool.QueryRow(t.Context(), sql, id, (*uuid.UUID)(nil), []uuid.UUID{other, id}).Scan(&one, &pointer, &missing, &none, &many, &text)
	if err != nil {
		t.Fatal(err)
	}
	if one != id || *pointer != id || missing != nil || none != uuid.Nil || !slices.Equal(many, []uuid.UUID{other, id}) || text != id.String() {
		t.Errorf("read %s, %s, %v, %s, %v and %q; wrote %s and %s", one, pointer, missing, none, many, text, id, other)
	}
	var simple uuid.UUID
	if err := pool.QueryRow(t.Context(), `select $1::uuid`, pgx.QueryExecModeSimpleProtocol, id).Scan(&simple); err != nil || simple != id {
		t.Errorf("as text: %s, %v", simple, err)
	}
}
