package sandboxinit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Stage2 runs as `homeport-agent stage2`, as PID 1 of the pod: it finishes the
// root file system, leaves the host's, and calls run, which does not return
// while the pod lives. The context ends when the pod must end because its
// folder on the host is gone; the process itself ends soon after. Signals
// from within the pod end nothing. Reaping orphans is run's business.
func Stage2(ctx context.Context, run func(ctx context.Context, pod Pod) error) error {
	out := os.NewFile(fdReport, "report")
	unix.CloseOnExec(fdReport)
	p, err := readPlan(os.Stdin)
	if err != nil {
		send(out, err)
		return err
	}
	pod := Pod{
		SSH: inherited(fdReport+1, p.SSH), Socket: runDir + "/node.sock", Token: p.Token, Hostname: p.Hostname,
		StateDir: stateDir, Workspace: workspace, Rootless: p.Rootless, Limits: p.Enforced, Hardware: p.Hardware,
	}
	if err := enter(p); err != nil {
		send(out, err)
		return err
	}
	if pod.Ready, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		send(out, err)
		return fmt.Errorf("open the ready file: %w", err)
	}
	send(out, nil)
	if p.Trial {
		return nil
	}
	deafen()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watch(ctx, stop, runDir)
	return run(ctx, pod)
}

// deafen gives every signal a handler that does nothing: without one the Go
// runtime would let `kill 1` of the pod's user end the pod. Children start
// with the default actions again.
func deafen() {
	c := make(chan os.Signal, 1) // full is fine: the runtime drops what does not fit
	signal.Notify(c)
}

// enter makes what belongs to the new namespaces and moves into the new root,
// in which this process already stands.
func enter(p plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := rebind(); err != nil {
		return err
	}
	if err := devices(p); err != nil {
		return err
	}
	if err := mount("proc", "proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := name(p.Hostname); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot into the new root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := freeze(); err != nil {
		return err
	}
	if err := limitProcesses(p); err != nil {
		return err
	}
	return loopback()
}

// rebind binds the new root onto itself and enters that mount: mounts that came
// from another user namespace are locked and cannot become the root. It works
// on open files because the pod's root may not search the host's folders.
func rebind() error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, ".", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("copy the new root: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, ".", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("place the new root: %w", err)
	}
	if err := unix.Fchdir(fd); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	return nil
}

// name gives the pod its host name.
func name(host string) error {
	if err := unix.Sethostname([]byte(host)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := os.WriteFile("etc/hostname", []byte(host+"\n"), 0o644); err != nil {
		return fmt.Errorf("write host name: %w", err)
	}
	hosts := "127.0.0.1 localhost " + host + "\n::1 localhost " + host + "\n"
	if err := os.WriteFile("etc/hosts", []byte(hosts), 0o644); err != nil {
		return fmt.Errorf("write hosts: %w", err)
	}
	return nil
}

// devices makes the pod's own /dev.
func devices(p plan) error {
	if err := mount("tmpfs", "dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return err
	}
	for _, n := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		at := filepath.Join("dev", n)
		if err := os.WriteFile(at, nil, 0o666); err != nil {
			return fmt.Errorf("device %s: %w", n, err)
		}
		if err := unix.Mount("/dev/"+n, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("device %s: %w", n, err)
		}
	}
	opt := "newinstance,ptmxmode=0666,mode=0620"
	if !p.Rootless {
		opt += ",gid=5"
	}
	if err := mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, opt); err != nil {
		return err
	}
	if err := mount("tmpfs", "dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	links := map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for from, to := range links {
		if err := os.Symlink(to, filepath.Join("dev", from)); err != nil {
			return fmt.Errorf("device link %s: %w", from, err)
		}
	}
	return nil
}

// freeze makes the parts of /proc that speak for the whole host read-only.
func freeze() error {
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		if _, err := os.Stat(path); err != nil {
			continue // this kernel has none
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("freeze %s: %w", path, err)
		}
		a := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, a); err != nil {
			return fmt.Errorf("freeze %s: %w", path, err)
		}
	}
	return nil
}

// limitProcesses bounds the pod's processes where no control group does.
func limitProcesses(p plan) error {
	if !p.NoPids || p.Pids == 0 {
		return nil
	}
	n := uint64(p.Pids)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}

// loopback brings up the only interface of the pod's network.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer func() { _ = unix.Close(s) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}
