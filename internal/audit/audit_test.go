package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func TestEntriesAreKeptForEver(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	first := audit.Entry{At: at, TeamID: id.New(), ActorID: id.New(), Action: "team.rename", ObjectID: id.New(), Detail: map[string]any{"n": "x"}}
	second := audit.Entry{At: at, TeamID: first.TeamID, Action: "team.expire", Detail: map[string]any{}}
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := audit.RecordTx(t.Context(), tx, first); err != nil {
			return err
		}
		return audit.RecordTx(t.Context(), tx, second)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := audit.List(t.Context(), pool, first.TeamID, 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]audit.Entry{second, first}, got); diff != "" {
		t.Error(diff)
	}
	for _, sql := range []string{"delete from audit_log", "update audit_log set action = 'x'", "truncate audit_log"} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%q was accepted", sql)
		}
	}
}
