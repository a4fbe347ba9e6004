package pg

import (
	"context"
	"io/fs"
	"syscall"

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

// CopyLock is what a process that is being started has of the folder's lock
// until it runs its own program: a copy of the descriptor.
func (e *Embedded) CopyLock() (fd int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if fd, err = syscall.Dup(int(e.lock.Fd())); err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}
