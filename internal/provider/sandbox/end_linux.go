package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/provider"
)

// endWithin bounds each wait of a machine's end.
const endWithin = 15 * time.Second

// destroy ends a machine, whole or half made, and returns when nothing of it is
// left. It may be called again at any point.
func (s *Sandbox) destroy(ctx context.Context, cloudDir, name string) error {
	dir := filepath.Join(cloudDir, name)
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return s.bury(ctx, cloudDir, name)
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := lockOpen(ctx, f, patientLock); err != nil {
		return provider.ErrNotYet.Because(err)
	}
	defer func() { _ = f.Close() }()
	b, err := readBirth(dir)
	if err != nil {
		return err
	}
	if err := b.kill(ctx); err != nil {
		return err
	}
	s.sockets.close(dir)
	grave := filepath.Join(cloudDir, gonePrefix+name)
	if err := os.Rename(dir, grave); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := s.bury(ctx, cloudDir, name); err != nil {
			return err
		}
		if err := os.Rename(dir, grave); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end %s: %w", name, err)
		}
	}
	return s.bury(ctx, cloudDir, name)
}

// bury removes what is left of an ended machine, if anything.
func (s *Sandbox) bury(ctx context.Context, cloudDir, name string) error {
	if err := scrap(ctx, filepath.Join(cloudDir, gonePrefix+name)); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// scrap removes a folder that is no machine any more: control groups, then files.
func scrap(ctx context.Context, dir string) error {
	b, err := readBirth(dir)
	if err != nil {
		return err
	}
	for _, g := range b.Cgroups {
		if err := removeGroup(ctx, g); err != nil {
			return err
		}
	}
	return removeAll(dir)
}

// removeGroup removes a control group, which the kernel empties a moment after
// the last process ended. Whatever still runs in it is the machine's and ends:
// the second net under the birth record.
func removeGroup(ctx context.Context, dir string) error {
	const step = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || waited >= endWithin {
			return fmt.Errorf("remove control group: %w", err)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // an error shows at the next round
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if err := pause(ctx, step); err != nil {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
}

// removeAll is os.RemoveAll that also opens folders which the pod's user
// closed to himself and so to an ordinary user's node.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Each folder is visited before it is read.
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = unix.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// open returns a handle of the process, if it is still the one that was born.
// The handle comes first, so that what is compared cannot change hands.
func (b birth) open() (int, bool) {
	if b.PID <= 0 || b.Boot == "" || b.Boot != bootID() {
		return 0, false
	}
	fd, err := unix.PidfdOpen(b.PID, 0)
	if err != nil {
		return 0, false
	}
	if startTime(b.PID) != b.Start || ended(fd, 0) {
		_ = unix.Close(fd)
		return 0, false
	}
	return fd, true
}

// alive says whether PID 1 of the machine runs.
func (b birth) alive() bool {
	fd, alive := b.open()
	if alive {
		_ = unix.Close(fd)
	}
	return alive
}

// kill ends PID 1 and waits for it: with it every process and mount of the pod ends.
func (b birth) kill(ctx context.Context) error {
	fd, alive := b.open()
	if !alive {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end PID 1: %w", err)
	}
	const step = 100 * time.Millisecond
	for waited := time.Duration(0); waited < endWithin; waited += step {
		if ended(fd, step) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for PID 1 to end: %w", err)
		}
	}
	return errors.New("PID 1 does not end")
}

// ended waits for the end of a process, at most that long.
func ended(fd int, wait time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, int(wait.Milliseconds()))
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN != 0
}

// startTime is when a process began, in the kernel's ticks; "" = it is gone.
func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	text := string(b)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return ""
	}
	return f[19]
}

// bootID names the host's present boot.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" means: nothing of this boot is known
	return strings.TrimSpace(string(b))
}
