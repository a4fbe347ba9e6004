package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How long a lock is waited for.
const (
	patientLock = 10 * time.Second
	noWait      = 0
)

// errLocked occurs when somebody else keeps the lock.
var errLocked = errors.New("locked by another process")

// lockFile takes the lock of a file, which it makes. The lock belongs to the
// open file: it is shared with processes that inherit it and ends with the
// last of them, however they end.
func lockFile(ctx context.Context, path string, patience time.Duration) (unlock func(), err error) {
	f, err := openLock(ctx, path, patience)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// openLock is lockFile for those who hand the lock on.
func openLock(ctx context.Context, path string, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, lockOpen(ctx, f, patience)
}

// lockOpen locks an open file and closes it on failure.
func lockOpen(ctx context.Context, f *os.File, patience time.Duration) error {
	const step = 5 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		l := unix.Flock_t{Type: unix.F_WRLCK}
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return fmt.Errorf("lock: %w", err)
		}
		if waited >= patience {
			_ = f.Close()
			return errLocked
		}
		if err := pause(ctx, step); err != nil {
			_ = f.Close()
			return fmt.Errorf("lock: %w", err)
		}
	}
}

// lockHeld says whether somebody holds the lock of a file, without taking it.
func lockHeld(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false
	}
	return l.Type != unix.F_UNLCK
}
