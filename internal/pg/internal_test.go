package pg

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestReachableNeedsEveryFolderOnTheWay(t *testing.T) {
	t.Parallel()
	top, err := os.MkdirTemp("", "hp-reach-") //nolint:usetesting // what lies above t.TempDir may be closed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	inner := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	const stranger, uid = 54321, 54322
	for _, tc := range map[string]struct {
		mode os.FileMode
		cred *syscall.Credential
		want bool
	}{
		"open to all":      {0o711, &syscall.Credential{Uid: stranger, Gid: stranger}, true},
		"closed to others": {0o770, &syscall.Credential{Uid: stranger, Gid: stranger}, false},
		"open to group":    {0o710, &syscall.Credential{Uid: uid, Gid: uint32(os.Getegid())}, true},
		"closed to group":  {0o701, &syscall.Credential{Uid: uid, Gid: uint32(os.Getegid())}, false},
		"the owner's own":  {0o700, &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uid}, true},
		"as ourselves":     {0o700, nil, true},
	} {
		for _, dir := range []string{top, filepath.Dir(inner)} {
			if err := os.Chmod(top, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(inner), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, tc.mode); err != nil {
				t.Fatal(err)
			}
			if got := reachable(inner, tc.cred); got != tc.want {
				t.Errorf("%s is %o: reachable for %+v is %v, want %v", dir, tc.mode, tc.cred, got, tc.want)
			}
		}
	}
}

func TestLibraryLinksStayInside(t *testing.T) {
	t.Parallel()
	for list, ok := range map[string]bool{
		`[{"source":"native/lib/libx.so.1.2","target":"native/lib/libx.so"}]`:   true,
		`[{"source":"native/lib/libx.so.1.2","target":"native/../../escaped"}]`: false,
		`[{"source":"x","target":"/tmp/escaped"}]`:                              false,
		`not json`: false,
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, symlinkList), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := linkLibraries(root); (err == nil) != ok {
			t.Errorf("%s: %v, want success: %v", list, err, ok)
		}
		link, err := os.Readlink(filepath.Join(root, "lib", "libx.so"))
		if ok && link != "libx.so.1.2" {
			t.Errorf("the link leads to %q, %v", link, err)
		}
	}
}

func TestPidFileOfAStartingServerIsNotReady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pidFile{
		"42\n": {pid: 42},
		"42\n/data\n1\n5432\n/sock\n\n  1 2\nstarting\n": {pid: 42},
		"42\n/data\n1\n5432\n/sock\n\n  1 2\nready   \n": {pid: 42, ready: true},
		"-42\n/data\n": {pid: 42},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readPidFile(dir); err != nil || got != want {
			t.Errorf("%q reads as %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestTransactionsThatCollidedWaitApart(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for backend := range uint32(100) {
		for attempt := 1; attempt < txAttempts; attempt++ {
			d := txDelay(attempt, 1000+backend)
			if span := txBaseDelay << (attempt - 1); d < span/2 || d > span {
				t.Fatalf("attempt %d waits %s, not between %s and %s", attempt, d, span/2, span)
			}
			seen[d] = true
		}
	}
	if len(seen) < 300 {
		t.Errorf("500 pauses have only %d lengths", len(seen))
	}
}
