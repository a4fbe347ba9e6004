//go:build linux

package snapshot_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// odd makes the entries that copying tools get wrong. It runs in any user;
// what needs root is left out without it.
func odd(t testing.TB, root string) {
	t.Helper()
	p := func(name string) string { return filepath.Join(root, name) }
	own := uint32(0)
	if os.Geteuid() != 0 {
		own = 0o700 // who may not read it cannot compare it
	}
	file := func(name string, mode os.FileMode) {
		must(t, os.WriteFile(p(name), []byte("content of "+name), 0o600))
		must(t, os.Chmod(p(name), mode))
	}
	for _, m := range []uint32{0, 0o400, 0o444, 0o600, 0o644, 0o755, 0o777, 0o4755, 0o2755, 0o1777, 0o7777} {
		name := fmt.Sprintf("mode-%04o", m)
		m |= own
		file(name, 0o600)
		must(t, unix.Chmod(p(name), m))
	}
	for _, m := range []uint32{0o500, 0o700, 0o1777, 0o2775} {
		name := fmt.Sprintf("dir-%04o", m)
		must(t, os.Mkdir(p(name), 0o700))
		must(t, os.WriteFile(p(name+"/inside"), nil, 0o644))
		must(t, unix.Chmod(p(name), m|own))
	}
	for i, name := range []string{
		strings.Repeat("n", 255), "new\nline", `quo"te'`, `back\slash`, "tab\t", "-dash", " space ", "caf\u00e9", "cafe\u0301",
		"\U0001F680", "\xff\xfe-bytes", "a\x01b", "percent%20", "star*", "$HOME", "~",
	} {
		file(name, 0o640)
		must(t, os.Chtimes(p(name), time.Time{}, time.Unix(int64(i)*1e8, int64(i)*111111111)))
	}
	file("before-1970", 0o644)
	must(t, os.Chtimes(p("before-1970"), time.Unix(-5, 123456789), time.Unix(-1000000000, 987654321)))
	file("after-2038", 0o644)
	must(t, os.Chtimes(p("after-2038"), time.Unix(1, 0), time.Unix(5000000000, 1)))
	oddLinks(t, p)
	oddData(t, p)
	oddXattrs(t, p, file)
	must(t, os.Mkdir(p("empty-dir"), 0o755))
	must(t, os.WriteFile(p("empty-file"), nil, 0o644))
	must(t, unix.Mkfifo(p("fifo"), 0o640))
	deep(t, root)
	if os.Geteuid() == 0 {
		file("owned", 0o644)
		must(t, os.Chown(p("owned"), 12345, 54321))
		file("owned-setuid", 0o644)
		must(t, os.Chown(p("owned-setuid"), 1000, 1000))
		must(t, unix.Chmod(p("owned-setuid"), 0o4711))
		must(t, unix.Mknod(p("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		must(t, unix.Mknod(p("loop"), unix.S_IFBLK|0o660, int(unix.Mkdev(7, 200))))
	}
	must(t, os.Chtimes(p("dir-1777"), time.Time{}, time.Unix(1234567890, 5)))
	must(t, os.Chmod(root, 0o751))
	must(t, os.Chtimes(root, time.Time{}, time.Unix(1111111111, 222)))
}

func oddLinks(t testing.TB, p func(string) string) {
	t.Helper()
	for name, target := range map[string]string{
		"link": "empty-file", "dangling": "no/such/place", "absolute": "/etc/passwd", "to-dir": "empty-dir", "loop-link": "loop-link",
		"link-bytes": "target-\xff\xfe", "link-long": strings.Repeat("x/", 2000), "link-quote": "a\"b\\c\nd",
	} {
		must(t, os.Symlink(target, p(name)))
	}
	must(t, os.Mkdir(p("links"), 0o755))
	must(t, os.WriteFile(p("links/one"), []byte("one file, three names"), 0o644))
	must(t, os.Link(p("links/one"), p("links/two")))
	must(t, os.Link(p("links/one"), p("hard")))
	must(t, os.Link(p("mode-4755"), p("links/setuid")))
}

func oddData(t testing.TB, p func(string) string) {
	t.Helper()
	sparse := func(name string, size int64, at ...int64) {
		f, err := os.Create(p(name))
		must(t, err)
		must(t, f.Truncate(size))
		for _, offset := range at {
			_, err := f.WriteAt(bytes.Repeat([]byte("data"), 1<<18), offset)
			must(t, err)
		}
		must(t, f.Close())
	}
	sparse("sparse", 128<<20, 50<<20)
	sparse("sparse-odd", 10<<20+12345)
	sparse("sparse-small", 100000)
	sparse("sparse-ends", 40<<20, 0, 39<<20)
	must(t, os.WriteFile(p("zeros"), make([]byte, 5<<20), 0o644)) // becomes sparse
	for i, size := range []int{1, 4096, 512 << 10, 512<<10 + 1, 3 << 20} {
		random(t, p(fmt.Sprintf("size-%d", size)), size, uint64(i)+77)
	}
	must(t, os.WriteFile(p("repeats"), bytes.Repeat([]byte("all work and no play\n"), 200000), 0o644))
}

func oddXattrs(t testing.TB, p func(string) string, file func(string, os.FileMode)) {
	t.Helper()
	file("xattr", 0o644)
	must(t, unix.Setxattr(p("xattr"), "user.comment", []byte("hello\x00\xff"), 0))
	must(t, unix.Setxattr(p("xattr"), "user.empty", nil, 0))
	must(t, os.Mkdir(p("xattr-dir"), 0o755))
	must(t, unix.Setxattr(p("xattr-dir"), "user.comment", []byte("dir"), 0))
	if os.Geteuid() != 0 {
		return
	}
	file("capability", 0o755)
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	must(t, unix.Setxattr(p("capability"), "security.capability", capability, 0))
	file("acl", 0o640)
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 232, 3, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
	if err := unix.Setxattr(p("acl"), "system.posix_acl_access", acl, 0); err != nil {
		t.Logf("no ACLs here: %v", err)
	} else {
		must(t, unix.Setxattr(p("xattr-dir"), "system.posix_acl_default", acl, 0))
	}
}

// deep makes a path of more than 4,096 bytes, folder by folder.
func deep(t testing.TB, root string) {
	t.Helper()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	name := strings.Repeat("deep", 50)
	for range 25 {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	f, err := unix.Openat(fd, "bottom", unix.O_CREAT|unix.O_WRONLY, 0o644)
	must(t, err)
	_, err = unix.Write(f, []byte("found"))
	must(t, err)
	must(t, unix.Close(f))
	must(t, unix.Close(fd))
}

func socket(t testing.TB, root string) {
	t.Helper()
	wd, err := unix.Open(root, unix.O_RDONLY, 0)
	must(t, err)
	defer func() { _ = unix.Close(wd) }()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/socket", wd))
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

func TestOddEntriesSurvive(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, out := t.TempDir(), t.TempDir()
	odd(t, root)
	want := facts(t, root)
	c := v.sync(v.syncer(root, t.TempDir(), nil))
	if c.Skipped != 0 || c.Unstable != 0 {
		t.Errorf("skipped %d, unstable %d, want none", c.Skipped, c.Unstable)
	}
	state := t.TempDir()
	res := v.restore(out, state)
	compare(t, want, facts(t, out), func(name string, want, got *fact) bool {
		got.blocks += want.blocks
		return name == "/zeros" && got.sum == want.sum && got.blocks == want.blocks
	})
	if int(res.Files) != len(want)-1 || res.Skipped != 0 {
		t.Errorf("restored %d entries, skipped %d, want %d", res.Files, res.Skipped, len(want)-1)
	}
	others := ""
	if thorough() {
		others = v.survivors(t, root, want)
	}
	measured(t, "%d of %d%s", res.Files+1, len(want), others)

	before := v.gets
	s := v.syncer(out, state, nil)
	atStart := v.gets - before
	if c := v.sync(s); c != nil {
		t.Errorf("the first sync after a restore found changes: %+v", c)
	}
	if v.gets-before != atStart {
		t.Error("the first sync after a restore read from the store")
	}
	t.Run("restic", func(t *testing.T) {
		v.t = t
		target := t.TempDir()
		if out := v.restic("check", "--read-data"); !strings.Contains(out, "no errors were found") {
			t.Fatalf("restic check: %s", out)
		}
		// restic cannot restore a path of more than 4,096 bytes.
		v.restic("restore", "latest", "--target", target, "--exclude", "/workspace/deepdeep*")
		got := facts(t, filepath.Join(target, "workspace"))
		compare(t, want, got, func(name string, want, got *fact) bool {
			got.blocks = want.blocks // restic fills holes
			if name == "/link-bytes" {
				got.target = want.target // needs linktarget_raw, which 0.14 does not know
			}
			return *want == *got || strings.HasPrefix(name, "/deepdeep")
		})
	})
}

// survivors counts how many of the odd entries other tools bring over as they
// are. What a tool refuses is lost, and no failure here.
func (v *volume) survivors(t *testing.T, root string, want map[string]fact) (told string) {
	t.Helper()
	tmp := t.TempDir()
	for _, tool := range []struct{ name, script string }{
		{"tar", `mkdir "$2"; tar -C "$1" --xattrs --xattrs-include='*' --acls -S -cf - . | tar -C "$2" --xattrs --xattrs-include='*' --acls -xpf -`},
		{"cp -a", `cp -a --sparse=always "$1" "$2"`},
		{"rclone", `rclone copy --metadata --links --create-empty-src-dirs "$1" "$2"`},
		{"restic", `restic -q -r "$3" --no-cache restore latest --target "$2.whole"; mv "$2.whole/workspace" "$2"`},
	} {
		out := filepath.Join(tmp, strings.ReplaceAll(tool.name, " ", ""))
		cmd := exec.CommandContext(t.Context(), "bash", "-c", tool.script, "bash", root, out, v.store.Path(prefix))
		cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+password)
		_ = cmd.Run()
		if _, err := os.Stat(out); err != nil {
			t.Fatalf("%s made nothing: %v", tool.name, err)
		}
		n := 0
		for name, got := range facts(t, out) {
			if w := want[name]; got == w || name == "/zeros" && got.sum == w.sum { // holes may be made where zeros were
				n++
			}
		}
		told += fmt.Sprintf(", %s %d", tool.name, n)
	}
	return told
}

func TestSocketsAreSkippedAndCounted(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "file"), []byte("x"), 0o644))
	socket(t, root)
	s := v.syncer(root, t.TempDir(), nil)
	if c := v.sync(s); c.Skipped != 1 || c.Entries != 2 {
		t.Errorf("skipped %d of %d entries, want 1 of 2", c.Skipped, c.Entries)
	}
	must(t, os.WriteFile(filepath.Join(root, "other"), []byte("y"), 0o644))
	if c := v.sync(s); c.Skipped != 1 || c.Entries != 3 {
		t.Errorf("later skipped %d of %d entries, want 1 of 3", c.Skipped, c.Entries)
	}
}
