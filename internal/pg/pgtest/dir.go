package pgtest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// memory is where Linux keeps a file system in memory. Databases made of
// hundreds of small files come and go there ten times faster than on a disk
// that others write to.
const memory = "/dev/shm"

// enough is how much of it must be free: some dozens of databases.
const enough = 4 << 30

// base is the folder for what tests throw away. TMPDIR decides when it is set.
func base() string {
	if os.Getenv("TMPDIR") != "" {
		return os.TempDir()
	}
	var st syscall.Statfs_t
	if syscall.Statfs(memory, &st) != nil || uint64(st.Bsize)*st.Bavail < enough {
		return os.TempDir()
	}
	if mountedNoexec(&st) { // copies of the server are kept there, too
		return os.TempDir()
	}
	return memory
}

// Dir returns a fresh folder, removed with the test, that the unprivileged user
// of a server can enter and whose path is short enough for sockets: for the
// state of whole servers.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(base(), "hp-") //nolint:usetesting // t.TempDir is on a disk, closed to others and has a long name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
