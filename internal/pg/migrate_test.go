package pg_test

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func files(texts map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range texts {
		m["migrations/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMigrateIsRepeatable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	before, err := pg.MigrationStatus(t.Context(), pool)
	if err != nil || len(before) == 0 || before[0].AppliedAt != nil {
		t.Fatalf("status of an empty database: %v, %v", before, err)
	}
	for range 2 {
		if err := pg.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := pg.MigrationStatus(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.AppliedAt == nil {
			t.Errorf("migration %04d %s was not applied", s.Version, s.Name)
		}
	}
}

func TestMigrationsOfManyProcessesRunOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	steps := files(map[string]string{
		"0001_create_a.sql": "create table a (n int); select pg_sleep(0.05)",
		"0002_fill_a.sql":   "insert into a values (1)",
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := pg.MigrateFiles(t.Context(), pool, steps); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, pool, "select count(*) from a"); n != 1 {
		t.Errorf("the second migration ran %d times", n)
	}
}

func TestFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	broken := map[string]string{
		"0001_create_a.sql": "create table a (n int)",
		"0002_create_b.sql": "create table b (n int); select 1/0",
	}
	if err := pg.MigrateFiles(t.Context(), pool, files(broken)); err == nil {
		t.Fatal("a broken migration passed")
	}
	if n := count(t, pool, "select count(*) from schema_migration"); n != 1 {
		t.Errorf("%d migrations are recorded, want the one that worked", n)
	}
	if n := count(t, pool, "select count(*) from pg_class where relname = 'b'"); n != 0 {
		t.Error("half of a migration stayed")
	}
	broken["0002_create_b.sql"] = "create table b (n int)"
	if err := pg.MigrateFiles(t.Context(), pool, files(broken)); err != nil {
		t.Errorf("the mended migration: %v", err)
	}
}

func TestMigrateRefusesAnotherHistory(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	applied := map[string]string{"0001_create_a.sql": "create table a (n int)", "0003_create_c.sql": "create table c (n int)"}
	if err := pg.MigrateFiles(t.Context(), pool, files(applied)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  error
	}{
		"changed": {map[string]string{"0001_create_a.sql": "create table a (n bigint)", "0003_create_c.sql": applied["0003_create_c.sql"]}, pg.ErrMigrationChanged},
		"newer":   {map[string]string{"0001_create_a.sql": applied["0001_create_a.sql"]}, pg.ErrSchemaNewer},
	} {
		if err := pg.MigrateFiles(t.Context(), pool, files(tc.files)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	// Branches are merged: a lower number may arrive later.
	applied["0002_create_b.sql"] = "create table b (n int)"
	if err := pg.MigrateFiles(t.Context(), pool, files(applied)); err != nil {
		t.Errorf("a migration between applied ones: %v", err)
	}
}

func TestMigrationNamesAreChecked(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	for name, texts := range map[string]map[string]string{
		"shared number": {"0001_a_b.sql": "select 1", "0001_c_d.sql": "select 1"},
		"no number":     {"create_table_a.sql": "select 1"},
		"no name":       {"0001.sql": "select 1"},
	} {
		if err := pg.MigrateFiles(t.Context(), pool, files(texts)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
