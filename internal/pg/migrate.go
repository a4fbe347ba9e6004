package pg

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// ErrSchemaNewer is returned when the database was migrated by a later release.
var ErrSchemaNewer = errors.New("the database's schema is newer than this release")

// ErrMigrationChanged is returned when a migration that was applied is not the
// one this release carries.
var ErrMigrationChanged = errors.New("an applied migration differs from this release's")

// migrationLock is the advisory lock that lets one process migrate at a time.
const migrationLock = 7_305_001

// A Migration is one step of the schema.
type Migration struct {
	Version   int32
	Name      string
	Checksum  string     // SHA-256 of its text, in hex
	AppliedAt *time.Time // nil: not yet
	text      string
}

const sqlCreateSchemaMigration = `
create table if not exists schema_migration (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null
)`

// Migrate brings the schema, and that of the job queue, to this release's
// version. Each migration runs once, in its own transaction; processes that
// migrate at the same time wait for each other. It refuses a schema that is
// newer (ErrSchemaNewer) or was made by other files (ErrMigrationChanged).
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	steps, err := loadMigrations(migrationFiles)
	if err != nil {
		return err
	}
	return underMigrationLock(ctx, pool, func(conn *pgx.Conn) error {
		if err := migrateQueue(ctx, pool); err != nil {
			return err
		}
		return migrateSteps(ctx, conn, steps)
	})
}

// MigrationStatus lists this release's migrations in order, each with the time
// it was applied. The errors are those of Migrate.
func MigrationStatus(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	steps, err := loadMigrations(migrationFiles)
	if err != nil {
		return nil, err
	}
	var exists bool
	if err := pool.QueryRow(ctx, sqlSchemaMigrationExists).Scan(&exists); err != nil {
		return nil, fmt.Errorf("look for the schema: %w", err)
	}
	if !exists {
		return steps, nil
	}
	return steps, markApplied(ctx, pool, steps)
}

const sqlSchemaMigrationExists = `select to_regclass('schema_migration') is not null`

// SchemaKey is a hash of everything Migrate would do: two builds of the same
// key make the same schema.
func SchemaKey() (string, error) {
	steps, err := loadMigrations(migrationFiles)
	if err != nil {
		return "", err
	}
	migrator, err := queueMigrator(nil)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, s := range steps {
		fmt.Fprintf(h, "%d %s %s\n", s.Version, s.Name, s.Checksum)
	}
	for _, m := range migrator.AllVersions() {
		fmt.Fprintf(h, "queue %d %s\n", m.Version, m.SQLUp)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// loadMigrations reads migrations/NNNN_name.sql in order of their numbers.
func loadMigrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]Migration, 0, len(names))
	for _, name := range names { // Glob sorts, and four digits sort as numbers do
		base := path.Base(name)
		if len(base) < len("0000_x.sql") || base[4] != '_' {
			return nil, fmt.Errorf("migration %s: the name must be NNNN_verb_noun.sql", base)
		}
		version, err := strconv.ParseInt(base[:4], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("migration %s: the name must begin with four digits", base)
		}
		if n := len(steps); n > 0 && steps[n-1].Version == int32(version) {
			return nil, fmt.Errorf("migrations %s and %s share a number", steps[n-1].Name, base)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", base, err)
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Migration{
			Version:  int32(version),
			Name:     base[5 : len(base)-len(".sql")],
			Checksum: hex.EncodeToString(sum[:]),
			text:     string(text),
		})
	}
	return steps, nil
}

// underMigrationLock runs fn on a connection that holds the advisory lock and
// whose statements may take as long as they need.
func underMigrationLock(ctx context.Context, pool *pgxpool.Pool, fn func(*pgx.Conn) error) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", err)
	}
	conn := c.Hijack() // closing it gives back the lock and the setting, come what may
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
		return fmt.Errorf("prepare to migrate: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for the migration lock: %w", err)
	}
	return fn(conn)
}

// migrateSteps applies what is missing, in order.
func migrateSteps(ctx context.Context, conn *pgx.Conn, steps []Migration) error {
	if _, err := conn.Exec(ctx, sqlCreateSchemaMigration); err != nil {
		return fmt.Errorf("create the list of migrations: %w", err)
	}
	if err := markApplied(ctx, conn, steps); err != nil {
		return err
	}
	for _, s := range steps {
		if s.AppliedAt != nil {
			continue
		}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return applyTx(ctx, tx, s) })
		if err != nil {
			return fmt.Errorf("migration %04d %s: %w", s.Version, s.Name, err)
		}
	}
	return nil
}

const sqlInsertMigration = `
insert into schema_migration (version, name, checksum, applied_at)
values (@version, @name, @checksum, @at)`

func applyTx(ctx context.Context, tx pgx.Tx, s Migration) error {
	at, err := ServerTime(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.text); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sqlInsertMigration, pgx.NamedArgs{
		"version": s.Version, "name": s.Name, "checksum": s.Checksum, "at": at,
	})
	return err
}

const sqlListMigrations = `
select version, name, checksum, applied_at from schema_migration order by version`

// markApplied sets AppliedAt of the steps that were applied, and refuses a
// schema that other files made.
func markApplied(ctx context.Context, q Querier, steps []Migration) error {
	rows, err := q.Query(ctx, sqlListMigrations)
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	applied, err := pgx.CollectRows(rows, pgx.RowToStructByName[appliedMigration])
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	byVersion := make(map[int32]*Migration, len(steps))
	for i := range steps {
		byVersion[steps[i].Version] = &steps[i]
	}
	for _, a := range applied {
		s, ok := byVersion[a.Version]
		if !ok {
			return fmt.Errorf("%w: it has migration %04d %s", ErrSchemaNewer, a.Version, a.Name)
		}
		if s.Checksum != a.Checksum {
			return fmt.Errorf("%w: %04d %s", ErrMigrationChanged, a.Version, a.Name)
		}
		s.AppliedAt = &a.AppliedAt
	}
	return nil
}

type appliedMigration struct {
	Version   int32
	Name      string
	Checksum  string
	AppliedAt time.Time
}

func queueMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("set up the job queue's migrations: %w", err)
	}
	return m, nil
}

func migrateQueue(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := queueMigrator(pool)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}
