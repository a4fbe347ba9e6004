package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/provider"
)

// halfMade is how old a folder is that nobody can still be filling.
const halfMade = time.Minute

// sweep serves what nobody serves, ends what is due and removes what crashes
// left behind.
func (s *Sandbox) sweep(ctx context.Context) {
	alive := map[string]bool{}
	for _, c := range s.clouds {
		list, err := c.machines("")
		if err != nil {
			s.Logger.Error("list sandbox machines", "cloud", c.Name, "error", err)
			return
		}
		for _, r := range list {
			if r.EndAt != nil && !s.Clock.Wall().Before(*r.EndAt) {
				if err := s.destroy(ctx, c.dir, r.Name); err != nil {
					s.Logger.Warn("end a sandbox machine", "name", r.Name, "error", err)
				}
				continue
			}
			alive[filepath.Join(c.dir, r.Name)] = true
			if err := s.serve(ctx, c, r.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.Logger.Warn("serve a sandbox machine", "name", r.Name, "error", err)
			}
		}
		if err := s.clean(ctx, c.dir); err != nil {
			s.Logger.Warn("clean a sandbox cloud", "cloud", c.Name, "error", err)
		}
	}
	if err := s.clean(ctx, s.dir); err != nil {
		s.Logger.Warn("clean the sandbox folder", "error", err)
	}
	for _, dir := range s.sockets.dirs() {
		if _, err := os.Stat(dir); !alive[dir] && errors.Is(err, fs.ErrNotExist) {
			s.sockets.close(dir)
		}
	}
}

// clean removes folders that are no machine and that nobody holds.
func (s *Sandbox) clean(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || lockHeld(path+"/"+lockName) {
			continue
		}
		left := strings.HasPrefix(e.Name(), gonePrefix) || strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), trialPrefix)
		if left && s.Clock.Wall().Sub(info.ModTime()) > halfMade {
			errs = append(errs, scrap(ctx, path))
		}
	}
	return errors.Join(errs...)
}

// emptyFor is how old a control group is that nobody can be about to enter.
const emptyFor = 10 * time.Minute

// sweepGroups removes the control groups of pods that ended themselves because
// their folder was removed, also those of other folders: a group that is not
// empty cannot be removed, and a pod's is never empty while it lives.
func (s *Sandbox) sweepGroups() {
	for _, pattern := range []string{"/sys/fs/cgroup/homeport/*", "/sys/fs/cgroup/*/homeport/*"} {
		groups, _ := filepath.Glob(pattern) // the pattern is well formed
		for _, g := range groups {
			if info, err := os.Stat(g); err == nil && info.IsDir() && s.Clock.Wall().Sub(info.ModTime()) > emptyFor {
				_ = unix.Rmdir(g)
			}
		}
	}
}

// crash ends a machine's processes as a failing host would: it is listed as gone.
func (c *cloud) crash(ctx context.Context, name string) error {
	b, err := readBirth(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	return b.kill(ctx)
}

// listenSocket makes the socket of a machine in its run folder. The path goes
// through an open folder because a socket's name is short.
func listenSocket(run string) (net.Listener, error) {
	d, err := os.Open(run)
	if err != nil {
		return nil, fmt.Errorf("machine's socket: %w", err)
	}
	defer func() { _ = d.Close() }()
	path := fmt.Sprintf("/proc/self/fd/%d/node.sock", d.Fd())
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("machine's socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("machine's socket: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if rootless() {
		return l, nil
	}
	// The pod's root is another user on the host; the folder's parents keep others out.
	if err := os.Chmod(path, 0o666); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("machine's socket: %w", err)
	}
	return l, nil
}

// trial builds a machine up to its agent and removes it.
func (s *Sandbox) trial(ctx context.Context) error {
	info, err := os.Stat(s.AgentBinary)
	if err != nil {
		return unsupported("the program homeport-agent is missing; build it beside homeport", err)
	}
	if info.Mode().Perm()&0o011 == 0 {
		return unsupported("the program homeport-agent is not executable; run chmod 0755 on it", nil)
	}
	dir, err := os.MkdirTemp(s.dir, trialPrefix)
	if err != nil {
		return fmt.Errorf("try the sandbox: %w", err)
	}
	defer func() { _ = scrap(ctx, dir) }() // a later sweep gets what this leaves
	for _, d := range []string{"run", "upper", "m"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("try the sandbox: %w", err)
		}
	}
	lock, err := openLock(ctx, filepath.Join(dir, lockName), noWait)
	if err != nil {
		return fmt.Errorf("try the sandbox: %w", err)
	}
	defer func() { _ = lock.Close() }()
	p, err := s.newPlan(dir)
	if err != nil {
		return err
	}
	p.Trial, p.UIDBase, p.Pids, p.Cgroup = true, firstUID+ranges*65536, maxPids, filepath.Base(dir)
	if err := s.stage1(p, lock, nil); err != nil {
		return unsupported(whyNot(err), err)
	}
	return nil
}

func unsupported(why string, cause error) error {
	return provider.ErrUnsupported.With("Pods cannot run on this host: %s.", why).Because(cause)
}

// whyNot names the reason and the fix as far as the host tells them.
func whyNot(err error) string {
	setting := func(path string) string {
		b, _ := os.ReadFile("/proc/sys/" + path) // a kernel without it has nothing to say here
		return strings.TrimSpace(string(b))
	}
	switch {
	case rootless() && setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "its AppArmor keeps ordinary users from making namespaces; run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root, or start Homeport as root"
	case rootless() && setting("kernel/unprivileged_userns_clone") == "0":
		return "its kernel keeps ordinary users from making namespaces; run `sysctl -w kernel.unprivileged_userns_clone=1` as root, or start Homeport as root"
	case setting("user/max_user_namespaces") == "0":
		return "user namespaces are switched off; run `sysctl -w user.max_user_namespaces=15000` as root"
	case errors.Is(err, unix.EPERM) || strings.Contains(err.Error(), unix.EPERM.Error()):
		return "it does not allow namespaces or mounts; in a container, start it with --privileged, or use the docker provider"
	}
	return "its kernel refused a step of the sandbox; Linux 5.12 or newer is needed, and a state folder that is not on an overlay file system"
}
