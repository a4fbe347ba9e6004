package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

const templateName = "homeport_template"

// guard is the script between a test process and its server. It runs in a
// group of its own, out of reach of a terminal's ctrl-c, and reads a pipe that
// nobody writes to: the read ends when the test process does, even by kill -9.
// Then it stops the server and removes every file. $1 is the run folder, $2
// the prepared data directory, the rest the server with its arguments.
const guard = `
run=$1 prepared=$2
shift 2
if cp -Rp "$prepared" "$run/data"; then
	"$@" -D "$run/data" >"$run/log" 2>&1 &
	server=$!
	read -r _
	kill -QUIT $server
	wait $server
else
	echo "the prepared data directory could not be copied" >"$run/log"
	read -r _
fi
rm -rf "$run" "$run.lock"
`

// home is where this user's test servers live.
type home struct {
	dir  string
	cred *syscall.Credential // whom the server runs as; nil: as we do
	bin  pg.Binaries
}

// runOwn starts this process's own server. It copies a data directory that some
// earlier test process prepared, or prepares it first.
func runOwn(ctx context.Context) (*run, error) {
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	unlock, err := h.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	h.sweep()
	if h.bin, err = h.bin.Prepare(filepath.Join(h.dir, "pgbin"), h.cred); err != nil {
		return nil, err
	}
	prepared, err := h.prepared(ctx)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, prepared)
}

func openHome() (home, error) {
	cred, err := pg.ServerUser()
	if err != nil {
		return home{}, err
	}
	found, err := pg.FindBinaries(os.Getenv("HOMEPORT_TEST_POSTGRES_BIN"), npmDirs())
	if err != nil {
		return home{}, err
	}
	h := home{dir: filepath.Join(base(), fmt.Sprintf("homeport-pgtest-%d", os.Getuid())), cred: cred, bin: found[0]}
	if err := os.Mkdir(h.dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return home{}, err
	}
	if err := h.mkdir(h.runs()); err != nil && !errors.Is(err, os.ErrExist) {
		return home{}, err
	}
	info, err := os.Lstat(h.dir)
	if err != nil {
		return home{}, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Getuid() {
		return home{}, fmt.Errorf("%s is not a folder of ours", h.dir)
	}
	return h, nil
}

// npmDirs is the web part's node_modules, from any package of the module.
func npmDirs() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return []string{filepath.Join(dir, "web", "node_modules")}
		}
	}
	return nil
}

// runs is the folder of the running servers. It belongs to their user, so that
// guards can remove theirs.
func (h home) runs() string { return filepath.Join(h.dir, "runs") }

// lock keeps other test processes out while files are made or swept.
func (h home) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(h.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// sweep removes what is left of test processes whose guard was killed too. A
// living guard holds the lock of its folder.
func (h home) sweep() {
	locks, _ := filepath.Glob(filepath.Join(h.runs(), "*.lock"))
	for _, name := range locks {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(strings.TrimSuffix(name, ".lock"))
			os.Remove(name)
		}
		f.Close()
	}
}

// mkdir makes a folder that belongs to the server's user.
func (h home) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if h.cred == nil {
		return nil
	}
	return os.Chown(dir, int(h.cred.Uid), int(h.cred.Gid))
}

// prepared returns a data directory whose template database has this build's
// schema.
func (h home) prepared(ctx context.Context) (string, error) {
	key, err := pg.SchemaKey()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.dir, "prepared-"+h.bin.Version+"-"+key[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	empty := filepath.Join(h.dir, "empty-"+h.bin.Version)
	if _, err := os.Stat(filepath.Join(empty, "PG_VERSION")); err != nil {
		if err := h.initdb(ctx, empty); err != nil {
			return "", err
		}
	}
	run, err := h.start(ctx, empty)
	if err != nil {
		return "", err
	}
	defer run.stop()
	if err := run.prepare(ctx); err != nil {
		return "", fmt.Errorf("prepare a data directory: %w", err)
	}
	if err := run.shutdown(); err != nil {
		return "", err
	}
	h.forget(keepPrepared - 1)
	return dir, os.Rename(filepath.Join(run.dir, "data"), dir)
}

// keepPrepared is how many schemas stay prepared: those of a few branches.
const keepPrepared = 4

// forget removes all prepared data directories but the newest.
func (h home) forget(keep int) {
	dirs, _ := filepath.Glob(filepath.Join(h.dir, "prepared-*"))
	modified := func(dir string) time.Time {
		info, err := os.Stat(dir)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(dirs, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, dir := range dirs[min(keep, len(dirs)):] {
		os.RemoveAll(dir)
	}
}

func (h home) initdb(ctx context.Context, dir string) error {
	building := dir + ".new"
	if err := os.RemoveAll(building); err != nil {
		return err
	}
	if err := h.mkdir(building); err != nil {
		return err
	}
	if err := h.bin.InitDB(ctx, building, h.cred, "--no-sync", "--wal-segsize=1"); err != nil {
		return err
	}
	return os.Rename(building, dir)
}

// A run is one started server.
type run struct {
	dir   string
	pipe  io.Closer // closing it ends the server
	guard *exec.Cmd
	lock  string
}

// start runs a server on a copy of the prepared data directory.
func (h home) start(ctx context.Context, prepared string) (*run, error) {
	lock, err := os.CreateTemp(h.runs(), "*.lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	r := &run{dir: strings.TrimSuffix(lock.Name(), ".lock"), lock: lock.Name()}
	if err := h.mkdir(r.dir); err != nil {
		return nil, err
	}
	args := []string{
		"-c", guard, "guard", r.dir, prepared,
		filepath.Join(h.bin.Dir, "postgres"), "-k", r.dir, "-p", "5432",
	}
	for _, setting := range []string{
		"listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "jit=off",
		"max_connections=300", "shared_buffers=64MB", "timezone=UTC", "logging_collector=off",
	} {
		args = append(args, "-c", setting)
	}
	r.guard = exec.Command("/bin/sh", args...)
	r.guard.Dir = "/"
	r.guard.Env = pg.ServerEnv()
	r.guard.ExtraFiles = []*os.File{lock} // held until guard and server are gone
	r.guard.SysProcAttr = &syscall.SysProcAttr{Credential: h.cred, Setpgid: true}
	if r.pipe, err = r.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.guard.Start(); err != nil {
		return nil, fmt.Errorf("start a test server: %w", err)
	}
	return r, r.wait(ctx)
}

// url is the address of one of the server's databases.
func (r *run) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(pg.Role), Path: "/" + database}
	u.RawQuery = url.Values{"host": {r.dir}, "port": {"5432"}}.Encode()
	return u.String()
}

// wait returns when the server answers.
func (r *run) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, r.url("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(r.dir, "log"))
			r.stop()
			return fmt.Errorf("the test server does not answer: %w\n%s", err, log)
		}
	}
}

// prepare makes the template database.
func (r *run) prepare(ctx context.Context) error {
	c, err := pgx.Connect(ctx, r.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "create database "+templateName+" template template0"); err != nil {
		return err
	}
	return migrate(ctx, r.url(templateName))
}

// shutdown ends the server in good order, with its files in place.
func (r *run) shutdown() error {
	raw, err := os.ReadFile(filepath.Join(r.dir, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(string(raw), &pid); err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		return err
	}
	for range 3000 {
		if _, err := os.Stat(filepath.Join(r.dir, "data", "postmaster.pid")); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the test server does not stop")
}

// stop ends the guard, which removes the folder.
func (r *run) stop() {
	r.pipe.Close()
	_ = r.guard.Wait() // it ends with the status of rm
	os.RemoveAll(r.dir)
	os.Remove(r.lock)
}
