package sandboxinit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// build makes the pod's file tree below <Dir>/m in this process's own mount
// namespace and leaves the process standing in its root. Nothing of it is
// mounted on the host.
func build(p plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	m := filepath.Join(p.Dir, "m")
	if err := mount("tmpfs", m, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if err := os.Chdir(m); err != nil {
		return fmt.Errorf("enter the stage: %w", err)
	}
	ids, err := userNamespace(p)
	if err != nil {
		return err
	}
	defer ids.close()
	if err := layers(p, ids); err != nil {
		return err
	}
	if err := furnish(p); err != nil {
		return err
	}
	if err := os.Chdir("rootfs"); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	return nil
}

// layers lays the pod's own writes over the skeleton and over the host's /usr.
// Paths are relative to the stage, so that no character of the host's names
// can be read as an option.
func layers(p plan, ids *userns) error {
	if err := bind(filepath.Join(p.Dir, "upper"), "upper", 0, nil); err != nil {
		return err
	}
	for _, d := range []string{"root", "rootw", "usr", "usrw"} {
		if err := own(p, filepath.Join("upper", d), 0o755); err != nil {
			return err
		}
	}
	lower := []struct{ from, to string }{{p.Skeleton, "lower-root"}, {"/usr", "lower-usr"}}
	for i, l := range lower {
		err := bind(l.from, l.to, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV, ids)
		if err != nil && i == 1 && p.Rootless {
			err = bindTree(l.from, l.to)
		}
		if err != nil {
			return err
		}
	}
	if err := overlay(p, "lower-root", "root", "rootfs"); err != nil {
		return err
	}
	if err := overlay(p, "lower-usr", "usr", "rootfs/usr"); err != nil {
		// A /usr with mounts below it cannot be a layer for an ordinary user: read-only then.
		if !p.Rootless || bindTree("/usr", "rootfs/usr") != nil {
			return err
		}
	}
	for _, dir := range p.Extra {
		if err := bind(dir, "rootfs"+dir, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID, ids); err != nil {
			return err
		}
	}
	return nil
}

// overlay mounts one pair of layers; NODEV because a pod has its own /dev.
func overlay(p plan, lower, upper, at string) error {
	opt := fmt.Sprintf("lowerdir=%s,upperdir=upper/%s,workdir=upper/%sw", lower, upper, upper)
	if p.Rootless {
		opt += ",userxattr"
	}
	return mount("overlay", at, "overlay", unix.MS_NODEV, opt)
}

// furnish adds what is not layered: the agent, the node's socket folder, the
// agent's state and /workspace.
func furnish(p plan) error {
	opt := "mode=755"
	if !p.Rootless {
		opt += fmt.Sprintf(",uid=%d,gid=%d", p.UIDBase, p.UIDBase)
	}
	if err := mount("tmpfs", "rootfs/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opt); err != nil {
		return err
	}
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	// Read-only keeps the pod from replacing the socket; calling through it needs no write.
	if err := bind(filepath.Join(p.Dir, "run"), "rootfs"+runDir, quiet|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY, nil); err != nil {
		return err
	}
	for _, f := range []struct {
		name, at string
		mode     os.FileMode
	}{{"state", stateDir, 0o700}, {"workspace", workspace, 0o755}} {
		dir := filepath.Join(p.Dir, f.name)
		if err := own(p, dir, f.mode); err != nil {
			return err
		}
		if err := bind(dir, "rootfs"+f.at, quiet, nil); err != nil {
			return err
		}
	}
	return bind(p.Agent, "rootfs"+AgentPath, quiet|unix.MOUNT_ATTR_RDONLY, nil)
}

// own makes a folder of the pod's root.
func own(p plan, dir string, mode os.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if p.Rootless {
		return nil
	}
	if err := os.Chown(dir, p.UIDBase, p.UIDBase); err != nil {
		return fmt.Errorf("give folder to the pod: %w", err)
	}
	return nil
}

func mount(source, at, kind string, flags uintptr, opt string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	if err := unix.Mount(source, at, kind, flags, opt); err != nil {
		return fmt.Errorf("mount %s at %s: %w", kind, at, err)
	}
	return nil
}

// bind shows source at a place of the new tree, without what is mounted below
// it, id-mapped when ids is given. A file needs its mount point to exist.
func bind(source, at string, attr uint64, ids *userns) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open %s: %w", source, err)
	}
	defer func() { _ = unix.Close(fd) }()
	a := &unix.MountAttr{Attr_set: attr}
	if ids != nil && ids.file != nil {
		a.Attr_set |= unix.MOUNT_ATTR_IDMAP
		a.Userns_fd = uint64(ids.file.Fd())
	}
	if a.Attr_set != 0 {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, a); err != nil {
			return fmt.Errorf("set attributes of %s: %w", source, err)
		}
	}
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		if err := os.MkdirAll(at, 0o755); err != nil {
			return fmt.Errorf("mount point: %w", err)
		}
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("place %s: %w", source, err)
	}
	return nil
}

// bindTree shows source read-only with everything mounted below it: the only
// form in which an ordinary user may show a folder with mounts in it.
func bindTree(source, at string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	if err := unix.Mount(source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("place tree %s: %w", source, err)
	}
	a := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, a); err != nil {
		return fmt.Errorf("set attributes of %s: %w", source, err)
	}
	return nil
}

// A userns holds a user namespace with the pod's ids, for id-mapped mounts.
type userns struct {
	file *os.File // nil without root
	stop func()
}

func (u *userns) close() {
	if u.file != nil {
		_ = u.file.Close()
		u.stop()
	}
}

// userNamespace makes the namespace with a process that only waits.
func userNamespace(p plan) (*userns, error) {
	if p.Rootless {
		return &userns{}, nil
	}
	cmd := exec.Command("/proc/self/exe", "stage1", hold)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: idMap(p.UIDBase), GidMappings: idMap(p.UIDBase)}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	stop := func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err != nil {
		stop()
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	return &userns{file: f, stop: stop}, nil
}
