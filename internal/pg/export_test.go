package pg

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MigrateFiles is Migrate with other files and without the job queue.
func MigrateFiles(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	steps, err := loadMigrations(files)
	if err != nil {
		return err
	}
	return underMigrationLock(ctx, pool, func(conn *pgx.Conn) error { return migrateSteps(ctx, conn, steps) })
}
