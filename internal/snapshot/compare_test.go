//go:build linux

package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A fact is all that must survive of one entry.
type fact struct {
	mode, uid, gid uint32
	size           int64
	sec, nsec      int64
	rdev           uint64
	target         string
	sum            [32]byte
	xattrs         string
	sameAs         string // first name of the same file
	blocks         int64
}

// facts walks a folder by descriptors, so that no path is too long.
func facts(t testing.TB, root string) map[string]fact {
	t.Helper()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	defer func() { _ = unix.Close(fd) }()
	out := map[string]fact{}
	var st unix.Stat_t
	must(t, unix.Fstat(fd, &st))
	out["."] = fact{mode: st.Mode, uid: st.Uid, gid: st.Gid, sec: st.Mtim.Sec, nsec: st.Mtim.Nsec, xattrs: xattrsOf(fd)}
	walkFacts(t, fd, "", map[uint64]string{}, out)
	return out
}

func walkFacts(t testing.TB, dir int, at string, links map[uint64]string, out map[string]fact) {
	t.Helper()
	dup, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	f := os.NewFile(uintptr(dup), "dir")
	names, err := f.Readdirnames(-1)
	must(t, err)
	must(t, f.Close())
	slices.Sort(names)
	for _, name := range names {
		if at == "" && name == ".homeport" {
			continue
		}
		var st unix.Stat_t
		must(t, unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW))
		a := fact{mode: st.Mode, uid: st.Uid, gid: st.Gid, sec: st.Mtim.Sec, nsec: st.Mtim.Nsec}
		key := at + "/" + name
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			a.size = st.Size
			if st.Nlink > 1 {
				if links[st.Ino] == "" {
					links[st.Ino] = key
				}
				a.sameAs = links[st.Ino]
			}
			a.blocks = st.Blocks / 2048 // MiB
			readFact(t, dir, name, &a)
		case unix.S_IFLNK:
			buf := make([]byte, 8192)
			n, err := unix.Readlinkat(dir, name, buf)
			must(t, err)
			a.target = string(buf[:n])
		case unix.S_IFCHR, unix.S_IFBLK:
			a.rdev = st.Rdev
		case unix.S_IFDIR:
			fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
			must(t, err)
			a.xattrs = xattrsOf(fd)
			walkFacts(t, fd, key, links, out)
			must(t, unix.Close(fd))
		}
		out[key] = a
	}
}

func readFact(t testing.TB, dir int, name string, a *fact) {
	t.Helper()
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	must(t, err)
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	a.xattrs = xattrsOf(fd)
	h := sha256.New()
	_, err = io.Copy(h, f)
	must(t, err)
	a.sum = [32]byte(h.Sum(nil))
}

func xattrsOf(fd int) string {
	buf := make([]byte, 64<<10)
	n, err := unix.Flistxattr(fd, buf)
	if err != nil {
		return ""
	}
	names := bytes.Split(bytes.TrimRight(buf[:n], "\x00"), []byte{0})
	slices.SortFunc(names, bytes.Compare)
	out := ""
	for _, name := range names {
		if len(name) == 0 {
			continue
		}
		value := make([]byte, 64<<10)
		m, err := unix.Fgetxattr(fd, string(name), value)
		if err == nil {
			out += fmt.Sprintf("%s=%x;", name, value[:m])
		}
	}
	return out
}

// compare reports every field in which two trees differ, save for what except
// answers true to.
func compare(t testing.TB, want, got map[string]fact, except func(name string, want, got *fact) bool) {
	t.Helper()
	bad := 0
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			g = fact{}
		}
		if w != g && (except == nil || !except(name, &w, &g)) {
			bad++
			if len(name) > 80 {
				name = name[:40] + "..." + name[len(name)-40:]
			}
			if bad < 10 {
				t.Errorf("%q: want %+v, got %+v (there: %v)", name, w, g, ok)
			}
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			bad++
			t.Errorf("%q was not in the original", name)
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d entries differ", bad, len(want))
	}
}
