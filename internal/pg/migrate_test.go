package pg_test

import (
	"testing"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func TestMigrateIsRepeatable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
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
