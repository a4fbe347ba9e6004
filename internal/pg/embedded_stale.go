package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A pidFile is what a server writes about itself into its data directory.
type pidFile struct {
	pid   int
	ready bool
}

// readPidFile reads postmaster.pid. A file that is just being written reads as
// one whose server is not ready.
func readPidFile(data string) (pidFile, error) {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return pidFile{}, fmt.Errorf("postmaster.pid has no process number: %w", err)
	}
	p := pidFile{pid: max(pid, -pid)} // negative: started in single-user mode
	p.ready = len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	return p, nil
}

// clearStale deals with the pid file of an earlier server. One that runs on our
// data is an orphan and is stopped. A file whose number belongs to no server is
// removed, since PostgreSQL refuses to start where the number is in use: a
// zombie's, or in a container, where numbers repeat, that of any process.
func (s stateDir) clearStale(ctx context.Context, logger *slog.Logger) error {
	name := filepath.Join(s.data(), "postmaster.pid")
	p, err := readPidFile(s.data())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && runsOn(p.pid, s.data()) {
		logger.Warn("stopping an orphaned PostgreSQL", "pid", p.pid)
		return stopOrphan(ctx, p.pid, s.data())
	}
	logger.Info("removing the pid file of an earlier PostgreSQL", "pid", p.pid)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stale pid file: %w", err)
	}
	return nil
}

// stopOrphan ends a server that nobody minds any more, and waits for it.
func stopOrphan(ctx context.Context, pid int, data string) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, 30 * time.Second}, {syscall.SIGQUIT, 10 * time.Second}} {
		if err := signalProcess(pid, step.signal); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, step.wait)
		gone := waitGone(wait, pid, data)
		cancel()
		if gone {
			return nil
		}
	}
	return fmt.Errorf("an orphaned PostgreSQL, pid %d, does not stop", pid)
}

func waitGone(ctx context.Context, pid int, data string) bool {
	for runsOn(pid, data) {
		if sleep(ctx, 20*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// runsOn says whether that process lives and is a server on that data
// directory, which is a server's working directory.
func runsOn(pid int, data string) bool {
	if pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return runsOnByPS(pid, data)
	}
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if errors.Is(err, fs.ErrPermission) { // another user's, and we are not all-mighty
		raw, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		return err == nil && strings.Contains(string(raw), "postgres\x00-D\x00"+data+"\x00")
	}
	if err != nil { // gone, or a zombie
		return false
	}
	// A server whose program was replaced by an update is "postgres (deleted)".
	if base := strings.TrimSuffix(filepath.Base(exe), " (deleted)"); base != "postgres" {
		return false
	}
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	dir, err := os.Stat(data)
	return err == nil && os.SameFile(cwd, dir)
}

// runsOnByPS is runsOn for systems without /proc.
func runsOnByPS(pid int, data string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres") && strings.Contains(string(out), "-D "+data)
}
