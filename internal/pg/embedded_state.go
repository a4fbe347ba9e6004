package pg

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// A stateDir is the folder of an installation, as far as its database goes.
type stateDir struct {
	dir  string              // absolute
	cred *syscall.Credential // whom the server runs as; nil: as ourselves
	seen string              // where the server sees dir; dir itself unless that is closed to it
}

func (s stateDir) data() string     { return filepath.Join(s.dir, "pgdata") }
func (s stateDir) binaries() string { return filepath.Join(s.dir, "pgbin") }

// inside is a path as the server sees it.
func (s stateDir) inside(path string) string {
	if rest, ok := strings.CutPrefix(path, s.dir+"/"); ok {
		return filepath.Join(s.seen, rest)
	}
	return path
}

// enter prepares the calling thread to start processes that see the state
// folder. The thread must end with its goroutine.
func (s stateDir) enter() error {
	if s.seen == s.dir {
		return nil
	}
	return enterMount(s.dir, s.seen)
}

// openState makes the folder if need be. As root it finds the server's user:
// the owner of the data, so that it stays the same when the machine gains a
// user postgres.
func openState(dir, binDir string) (stateDir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return stateDir{}, err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return stateDir{}, fmt.Errorf("make the state folder: %w", err)
	}
	s := stateDir{dir: abs, seen: abs}
	if s.cred, err = ServerUser(); err != nil || s.cred == nil {
		return s, err
	}
	if uid, gid, ok := owner(s.data()); ok && uid != 0 {
		s.cred = &syscall.Credential{Uid: uid, Gid: gid}
	}
	// The server's user passes through; what lies here is closed by its own mode.
	if err := os.Chmod(abs, 0o711); err != nil {
		return s, fmt.Errorf("let the database's user into the state folder: %w", err)
	}
	if !reachable(abs, s.cred) {
		s.seen = mountPoint(s.cred, binDir)
	}
	if err := s.tryEnter(); err != nil {
		return s, fmt.Errorf("the state folder %s cannot be entered by user %d, which PostgreSQL runs as instead of root: "+
			"choose a folder like /var/lib/homeport, or open the folders above it with chmod o+x: %w", abs, s.cred.Uid, err)
	}
	return s, nil
}

// tryEnter finds out whether enter works on this machine.
func (s stateDir) tryEnter() error {
	if s.seen == s.dir {
		return nil
	}
	result := make(chan error)
	go func() { result <- s.enter() }()
	return <-result
}

func owner(path string) (uid, gid uint32, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Uid, st.Gid, true
}

// lock takes the folder for this process. The lock ends with it; the number in
// the file is for people.
func (s stateDir) lock() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, "homeport.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		return nil, fmt.Errorf("%w: homeport with pid %s runs on %s", ErrStateInUse, strings.TrimSpace(string(pid)), s.dir)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the state folder: %w", err), unlock(f))
	}
	return f, nil
}

// unlock gives the folder back. Closing alone would not do it yet: a process
// that another goroutine is just starting has a copy of the descriptor until it
// runs its own program.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// choose picks the binaries: for data that exist only those of the same major
// version, of these the newest, and the copy beside the data before its equals.
func (s stateDir) choose(cfg EmbeddedConfig) (Binaries, error) {
	major, err := s.dataMajor()
	if err != nil {
		return Binaries{}, err
	}
	found, err := FindBinaries(cfg.BinDir, cfg.NPMDirs)
	if err != nil && (major == 0 || cfg.BinDir != "") {
		return Binaries{}, err
	}
	if major == 0 {
		return found[0], nil
	}
	if cfg.BinDir == "" {
		found = append(pinnedBinaries(s.binaries()), found...)
	}
	fit := slices.DeleteFunc(slices.Clone(found), func(b Binaries) bool { return b.Major != major })
	if len(fit) == 0 {
		return Binaries{}, fmt.Errorf("%w: %s was made by PostgreSQL %d, and %s; install PostgreSQL %d, or export the data with it",
			ErrDataVersion, s.data(), major, describe(found), major)
	}
	slices.SortStableFunc(fit, func(a, b Binaries) int { return cmp.Compare(b.minor(), a.minor()) })
	return fit[0], nil
}

func describe(found []Binaries) string {
	if len(found) == 0 {
		return "none is installed"
	}
	versions := make([]string, len(found))
	for i, b := range found {
		versions[i] = b.Version
	}
	return "only " + strings.Join(versions, " and ") + " is at hand"
}

// dataMajor is the major version of the data; 0 when there are none yet.
func (s stateDir) dataMajor() (int, error) {
	raw, err := os.ReadFile(filepath.Join(s.data(), "PG_VERSION"))
	if err == nil {
		major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			return 0, fmt.Errorf("%w: %s has no readable PG_VERSION", ErrDataUnknown, s.data())
		}
		return major, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the database's version: %w", err)
	}
	entries, err := os.ReadDir(s.data())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("look into the data directory: %w", err)
	}
	if len(entries) > 0 {
		return 0, fmt.Errorf("%w: %s holds files but no PG_VERSION", ErrDataUnknown, s.data())
	}
	return 0, nil
}

// initialise makes the data directory unless it is there. It is built beside
// its place, so that a crash leaves none that is half made.
func (s stateDir) initialise(ctx context.Context, bin Binaries) error {
	if major, err := s.dataMajor(); err != nil || major != 0 {
		return err
	}
	building := s.data() + ".new"
	if err := os.RemoveAll(building); err != nil {
		return err
	}
	if err := s.mkdir(building); err != nil {
		return err
	}
	result := make(chan error)
	go func() { // on a thread of its own
		err := s.enter()
		if err == nil {
			bin.Dir = s.inside(bin.Dir)
			err = bin.InitDB(ctx, s.inside(building), s.cred)
		}
		result <- err
	}()
	if err := <-result; err != nil {
		return err
	}
	return os.Rename(building, s.data()) // replaces an empty folder at most
}

// mkdir makes a private folder of the server's user, or checks that it is one.
func (s stateDir) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil {
		if s.cred == nil {
			return nil
		}
		return os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid))
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	want := uint32(os.Geteuid())
	if s.cred != nil {
		want = s.cred.Uid
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if uid, _, ok := owner(dir); !ok || uid != want || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not a private folder of user %d", dir, want)
	}
	return nil
}

// maxSocketPath is what the kernel takes, less its ending zero.
const maxSocketPath = 107

// socketDir is the folder of the socket: beside the data, or where that path is
// too long for a socket, in the folder for temporary files.
func (s stateDir) socketDir() string {
	dir := filepath.Join(s.dir, "pgsock")
	if len(filepath.Join(dir, ".s.PGSQL."+socketPort)) <= maxSocketPath {
		return dir
	}
	sum := sha256.Sum256([]byte(s.dir))
	return filepath.Join("/tmp", "homeport-"+strconv.Itoa(os.Geteuid())+"-"+hex.EncodeToString(sum[:6]))
}

const sqlFindDatabase = `select exists (select from pg_database where datname = $1)`

const sqlListSettings = `
select name, setting from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'listen_addresses', 'server_encoding', 'data_directory')`

// assertSettings makes sure that the server that answers is ours and keeps what
// it is given, and that Homeport's database is there.
func (s stateDir) assertSettings(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, socketURL(s.socketDir(), "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the embedded PostgreSQL: %w", err)
	}
	defer closeConn(ctx, conn)
	rows, err := conn.Query(ctx, sqlListSettings)
	if err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	want := map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
		"listen_addresses": "", "server_encoding": "UTF8", "data_directory": s.inside(s.data()),
	}
	var name, setting string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		if setting != want[name] {
			return fmt.Errorf("the embedded PostgreSQL has %s = %q, want %q", name, setting, want[name])
		}
		return nil
	})
	if err != nil {
		return err
	}
	var exists bool
	if err := conn.QueryRow(ctx, sqlFindDatabase, database).Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, "create database "+database); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}
