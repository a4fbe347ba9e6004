package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A dirFD is an open directory that several goroutines use; the last one to
// leave closes it.
type dirFD struct {
	fd   int
	refs atomic.Int32
}

func newDirFD(fd int) *dirFD {
	d := &dirFD{fd: fd}
	d.refs.Store(1)
	return d
}

func (d *dirFD) retain() *dirFD { d.refs.Add(1); return d }

func (d *dirFD) release() {
	if d.refs.Add(-1) == 0 {
		_ = unix.Close(d.fd)
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openDirAt opens a directory below another one, never through a link.
func openDirAt(at int, name string) (int, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// openRoot opens the folder that is synced or restored.
func openRoot(path string) (int, error) {
	fd, err := openDirAt(unix.AT_FDCWD, path)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, nil
}

// openFileAt opens a file for reading, never through a link and never waiting,
// without touching its access time where that is allowed.
func openFileAt(at int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, name, flags|unix.O_NOATIME, 0)
		return err
	})
	if errors.Is(err, unix.EPERM) {
		err = retry(func() (err error) {
			fd, err = unix.Openat(at, name, flags, 0)
			return err
		})
	}
	return fd, err
}

// listNames returns the names in a directory, sorted. buf is for reading it.
func listNames(fd int, buf []byte) ([]string, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	var names []string
	for {
		var n int
		err := retry(func() (err error) {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	slices.Sort(names)
	return names, nil
}

// readLinkAt returns the target of a symbolic link.
func readLinkAt(at int, name string, buf []byte) ([]byte, error) {
	n, err := unix.Readlinkat(at, name, buf)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(buf[:n]), nil
}

// keptXattr reports whether an attribute belongs to the file rather than to
// the machine it lies on.
func keptXattr(name string) bool {
	switch name {
	case "security.capability", "system.posix_acl_access", "system.posix_acl_default":
		return true
	}
	return len(name) > 5 && name[:5] == "user."
}

// readXattrs returns the encoded attributes of an open file. What cannot be
// read is not there.
func readXattrs(fd int, buf []byte) []byte {
	n, err := unix.Flistxattr(fd, buf)
	if errors.Is(err, unix.ERANGE) {
		buf = make([]byte, 64<<10) // no list is longer
		n, err = unix.Flistxattr(fd, buf)
	}
	if err != nil || n == 0 {
		return nil
	}
	var names []string
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if keptXattr(string(name)) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	var list []byte
	for _, name := range names {
		value := make([]byte, 64<<10) // no value is longer
		if n, err := unix.Fgetxattr(fd, name, value); err == nil {
			list = appendXattr(list, name, value[:n])
		}
	}
	return list
}

// A fileStat is what fstatat tells.
type fileStat = unix.Stat_t

func statAt(at int, name string, st *fileStat) error {
	return retry(func() error { return unix.Fstatat(at, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// setStat copies what an entry keeps of a stat.
func (e *entry) setStat(st *fileStat) {
	e.mode, e.uid, e.gid = st.Mode, st.Uid, st.Gid
	e.ino, e.size, e.rdev, e.nlink = st.Ino, st.Size, 0, 1
	e.mtime = stamp{sec: st.Mtim.Sec, ns: st.Mtim.Nsec}
	e.ctime = stamp{sec: st.Ctim.Sec, ns: st.Ctim.Nsec}
	switch e.format() {
	case modeFile:
		e.nlink = uint32(st.Nlink)
	case modeChar, modeBlock:
		e.rdev = st.Rdev
	default:
		e.size = 0
	}
}

// sameAs reports whether a stat says that nothing happened to the entry.
func (e *entry) sameAs(st *fileStat) bool {
	return e.flags&flagRecheck == 0 &&
		e.mode == st.Mode && e.uid == st.Uid && e.gid == st.Gid && e.ino == st.Ino &&
		e.mtime == stamp{sec: st.Mtim.Sec, ns: st.Mtim.Nsec} &&
		e.ctime == stamp{sec: st.Ctim.Sec, ns: st.Ctim.Nsec} &&
		(e.format() != modeFile || e.size == st.Size)
}

// sameStat reports whether a file did not change between two looks.
func sameStat(a, b *fileStat) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Mode == b.Mode && a.Uid == b.Uid && a.Gid == b.Gid &&
		a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// settle is how old a change must be, in nanoseconds, for the times of a file
// to tell it from a later one: file systems stamp with a coarse clock.
const settle = 30e6

// fresh reports whether a file changed so lately that its times prove nothing.
func fresh(st *fileStat) bool { return since(st, coarseNow()) }

// isMount reports whether a directory is where another file system begins.
func isMount(fd int) bool {
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, 0, &sx); err != nil {
		return true
	}
	return sx.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 || sx.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
