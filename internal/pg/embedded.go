package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// database is the one that Homeport uses on its embedded server.
const database = "homeport"

// startTimeout bounds a start, which may have to recover from a crash first.
const startTimeout = 5 * time.Minute

// ErrStateInUse is returned when another homeport runs on the same state folder.
var ErrStateInUse = errors.New("the state folder is in use")

// ErrDataVersion is returned when a data directory was made by a version of
// PostgreSQL that is not at hand.
var ErrDataVersion = errors.New("the database needs another version of PostgreSQL")

// ErrDataUnknown is returned when the place of the data directory holds
// something else, which is left as it is.
var ErrDataUnknown = errors.New("the data directory is not one of PostgreSQL")

// EmbeddedConfig says where the embedded server lives and what it runs.
type EmbeddedConfig struct {
	StateDir string       // made if need be; data in pgdata, socket in pgsock, copied binaries in pgbin
	BinDir   string       // folder of postgres and initdb; empty: the best that FindBinaries finds
	NPMDirs  []string     // node_modules folders to look in
	Logger   *slog.Logger // nil: silent
}

// An Embedded is a PostgreSQL server of our own: a child process that listens
// on a unix socket only and shuts down in good order when this process ends,
// even by kill -9.
type Embedded struct {
	state  stateDir
	lock   *os.File
	child  *child
	logger *slog.Logger
	stop   sync.Once
	result error
}

// StartEmbedded starts the server on the state folder's data directory, which
// it makes the first time, and returns when it answers. ctx ends the attempt
// only, not the server. The errors are ErrStateInUse, ErrNoBinaries,
// ErrDataVersion, ErrDataUnknown and those of the machine.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	state, err := openState(cfg.StateDir, cfg.BinDir)
	if err != nil {
		return nil, err
	}
	lock, err := state.lock()
	if err != nil {
		return nil, err
	}
	e := &Embedded{state: state, lock: lock, logger: cfg.Logger}
	if err := e.start(ctx, cfg); err != nil {
		if e.child != nil {
			err = errors.Join(err, e.child.end(context.WithoutCancel(ctx)))
		}
		return nil, errors.Join(err, unlock(lock))
	}
	return e, nil
}

func (e *Embedded) start(ctx context.Context, cfg EmbeddedConfig) error {
	bin, err := e.state.choose(cfg)
	if err != nil {
		return err
	}
	if bin, err = bin.Prepare(e.state.binaries(), e.state.cred); err != nil {
		return err
	}
	if err := e.state.initialise(ctx, bin); err != nil {
		return err
	}
	if err := e.state.clearStale(ctx, e.logger); err != nil {
		return err
	}
	if err := e.state.mkdir(e.state.socketDir()); err != nil {
		return fmt.Errorf("make the database's socket folder: %w", err)
	}
	if e.child, err = e.launch(ctx, bin); err != nil {
		return err
	}
	e.logger.Info("embedded PostgreSQL is running",
		"version", bin.Version, "pid", e.child.pid(), "data", e.state.data(), "binaries", bin.Dir)
	return e.state.assertSettings(ctx)
}

// launch starts the server. Just after a kill -9 of an earlier one its last
// processes may still hold the data; then it tries again for a while.
func (e *Embedded) launch(ctx context.Context, bin Binaries) (*child, error) {
	const attempts = 10
	args := serverArgs(e.state.inside(e.state.data()), e.state.inside(e.state.socketDir()))
	for n := 1; ; n++ {
		c, err := startChild(e.state, e.state.inside(bin.path("postgres")), args, e.logger)
		if err != nil {
			return nil, err
		}
		err = c.waitReady(ctx, e.state.data())
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.end(context.WithoutCancel(ctx)))
		if n == attempts || ctx.Err() != nil || !c.blockedByPredecessor() {
			return nil, err
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// serverArgs are the arguments of postgres. Statements and their values stay
// out of the log: they name people.
func serverArgs(data, sock string) []string {
	args := []string{"-D", data, "-k", sock, "-p", socketPort}
	for _, setting := range []string{
		"listen_addresses=", "unix_socket_permissions=0700", "max_connections=100",
		"shared_buffers=128MB", "timezone=UTC", "fsync=on", "full_page_writes=on",
		"synchronous_commit=on", "logging_collector=off", "log_destination=stderr",
		"log_min_messages=log", "log_min_error_statement=panic", "log_error_verbosity=terse",
		"log_statement=none", "log_line_prefix=",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// URL is the address of Homeport's database on this server. It holds no secret.
func (e *Embedded) URL() string { return socketURL(e.state.socketDir(), database) }

// Done receives one value when the server has ended: nil after Stop, else why.
// Then it is closed.
func (e *Embedded) Done() <-chan error { return e.child.done }

// Stop ends the server in good order and frees the state folder. When ctx ends
// first the server is ended at once; its data stay safe either way. Stopping
// twice is no error.
func (e *Embedded) Stop(ctx context.Context) error {
	e.stop.Do(func() { e.result = errors.Join(e.child.end(ctx), unlock(e.lock)) })
	return e.result
}

// ErrNotRunning is returned when no server runs on a state folder.
var ErrNotRunning = errors.New("no embedded PostgreSQL runs on this state folder")

// AttachEmbedded returns the URL of the database of the server that another
// homeport runs on stateDir, for commands that work beside it. It waits while
// that server starts, as long as ctx allows. The error is ErrNotRunning when
// there is none.
func AttachEmbedded(ctx context.Context, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	state := stateDir{dir: abs, seen: abs}
	data, sock := state.data(), state.socketDir()
	for {
		p, err := readPidFile(data)
		if errors.Is(err, os.ErrNotExist) || err == nil && !runsOn(p.pid, data) {
			return "", ErrNotRunning
		}
		if err != nil {
			return "", fmt.Errorf("look for the embedded PostgreSQL: %w", err)
		}
		if p.ready {
			return socketURL(sock, database), nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", fmt.Errorf("wait for the embedded PostgreSQL to start: %w", err)
		}
	}
}

// socketPort is only a part of the socket's name: nothing listens on TCP.
const socketPort = "5432"

func socketURL(sock, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database}
	u.RawQuery = url.Values{"host": {sock}, "port": {socketPort}}.Encode()
	return u.String()
}

// signalProcess sends a signal; a process that is gone is no error.
func signalProcess(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}
