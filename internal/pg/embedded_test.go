package pg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// npmDirs are the node_modules folders that may hold the packaged server.
func npmDirs() []string {
	dirs := []string{filepath.Join("..", "..", "web", "node_modules")}
	if given := os.Getenv("HOMEPORT_TEST_NODE_MODULES"); given != "" {
		dirs = append(dirs, given)
	}
	return dirs
}

var template string // a state folder with data, made when first needed

func TestMain(m *testing.M) {
	code := m.Run()
	if template != "" {
		os.RemoveAll(template)
	}
	os.Exit(code)
}

var makeTemplate = sync.OnceValue(func() error {
	e, err := pg.StartEmbedded(context.Background(), pg.EmbeddedConfig{StateDir: template, NPMDirs: npmDirs()})
	if err != nil {
		return err
	}
	return e.Stop(context.Background())
})

var chooseTemplate sync.Once

// usedState is a state folder whose data were made by an earlier start.
func usedState(t *testing.T) string {
	t.Helper()
	state := pgtest.Dir(t)
	chooseTemplate.Do(func() { template = filepath.Join(filepath.Dir(state), fmt.Sprintf("hp-template-%d", os.Getpid())) })
	if err := makeTemplate(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-Rp", template+"/.", state).CombinedOutput(); err != nil {
		t.Fatalf("copy a state folder: %v: %s", err, out)
	}
	return state
}

func config(t *testing.T, state string) pg.EmbeddedConfig {
	t.Helper()
	return pg.EmbeddedConfig{
		StateDir: state,
		NPMDirs:  npmDirs(),
		Logger:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func start(t *testing.T, cfg pg.EmbeddedConfig) *pg.Embedded {
	t.Helper()
	e, err := pg.StartEmbedded(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t *testing.T, e *pg.Embedded) {
	t.Helper()
	if err := e.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var value T
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

const countRow = `with new as (insert into kept values (1) returning n) select count(*) + (select count(*) from new) from kept`

// serverPid reads the number of the server that runs on a state folder.
func serverPid(t *testing.T, state string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(state, "pgdata", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(raw), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestEmbeddedKeepsDataAcrossStarts(t *testing.T) {
	t.Parallel()
	found, err := pg.FindBinaries("", npmDirs())
	if err != nil {
		t.Fatal(err)
	}
	if found[len(found)-1].Package == "" {
		t.Log("the npm package is absent: only installed servers are tested")
	}
	for _, b := range found {
		t.Run(b.Version, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, pgtest.Dir(t))
			cfg.BinDir = b.Dir
			first := start(t, cfg)
			execute(t, first.URL(), "create table kept (n int)")
			stop(t, first)
			if err := <-first.Done(); err != nil {
				t.Errorf("an ordered stop was told as %v", err)
			}
			cfg.BinDir = "" // the data choose
			second := start(t, cfg)
			if n := query[int](t, second.URL(), countRow); n != 1 {
				t.Errorf("the table counts %d rows, want 1", n)
			}
			if v := query[string](t, second.URL(), "show server_version"); !strings.HasPrefix(v, b.Version) {
				t.Errorf("the data of %s run on %s", b.Version, v)
			}
		})
	}
}

func TestEmbeddedRefusesASecondHomeport(t *testing.T) {
	t.Parallel()
	cfg := config(t, usedState(t))
	e := start(t, cfg)
	_, err := pg.StartEmbedded(t.Context(), cfg)
	if !errors.Is(err, pg.ErrStateInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second start says %v, want that this process has the folder", err)
	}
	if n := query[int](t, e.URL(), "select 1"); n != 1 {
		t.Error("the first server suffered")
	}
	stop(t, e)
	start(t, cfg)
}

// TestStoppedHomeportLeavesTheFolder: also while another goroutine starts a
// process, which has copies of this one's descriptors for a moment.
func TestStoppedHomeportLeavesTheFolder(t *testing.T) {
	t.Parallel()
	cfg := config(t, usedState(t))
	e := start(t, cfg)
	held, err := e.CopyLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(held) }()
	stop(t, e)
	start(t, cfg)
}

func TestAttachFindsTheRunningServer(t *testing.T) {
	t.Parallel()
	if _, err := pg.AttachEmbedded(t.Context(), pgtest.Dir(t)); !errors.Is(err, pg.ErrNotRunning) {
		t.Errorf("attach to an empty folder: %v", err)
	}
	cfg := config(t, usedState(t))
	if _, err := pg.AttachEmbedded(t.Context(), cfg.StateDir); !errors.Is(err, pg.ErrNotRunning) {
		t.Errorf("attach before the first start: %v", err)
	}
	e := start(t, cfg)
	url, err := pg.AttachEmbedded(t.Context(), cfg.StateDir)
	if err != nil || url != e.URL() {
		t.Errorf("attach gives %q, %v; want %q", url, err, e.URL())
	}
	if name := query[string](t, url, "select current_database()"); name != "homeport" {
		t.Errorf("attached to database %q", name)
	}
	stop(t, e)
	if _, err := pg.AttachEmbedded(t.Context(), cfg.StateDir); !errors.Is(err, pg.ErrNotRunning) {
		t.Errorf("attach after the stop: %v", err)
	}
}

func TestEmbeddedTellsOfItsDeath(t *testing.T) {
	t.Parallel()
	cfg := config(t, usedState(t))
	e := start(t, cfg)
	if err := syscall.Kill(serverPid(t, cfg.StateDir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-e.Done(); err == nil {
		t.Error("a killed server was told as an ordered stop")
	}
	stop(t, e)
	// The pid file is still there, and the last processes may hold the data.
	again := start(t, cfg)
	if n := query[int](t, again.URL(), "select 1"); n != 1 {
		t.Error("the server does not answer after its recovery")
	}
}

func TestEmbeddedNeverTouchesForeignData(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, text string
		want       error
	}{
		"other version": {"PG_VERSION", "9\n", pg.ErrDataVersion},
		"no version":    {"precious", "data", pg.ErrDataUnknown},
		"not a version": {"PG_VERSION", "x", pg.ErrDataUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := pgtest.Dir(t)
			path := filepath.Join(state, "pgdata", tc.file)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := pg.StartEmbedded(t.Context(), config(t, state)); !errors.Is(err, tc.want) {
				t.Errorf("the start says %v, want %v", err, tc.want)
			}
			if raw, err := os.ReadFile(path); err != nil || string(raw) != tc.text {
				t.Errorf("the file now holds %q, %v", raw, err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
				t.Errorf("the folder now holds %d files", len(entries))
			}
		})
	}
}

func TestEmbeddedIgnoresAReusedPid(t *testing.T) {
	t.Parallel()
	cfg := config(t, usedState(t))
	cred, err := pg.ServerUser()
	if err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command("/bin/sleep", "600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait() // killed
	}()
	text := fmt.Sprintf("%d\n%s\n1\n5432\n\n\n\nready\n", stranger.Process.Pid, filepath.Join(cfg.StateDir, "pgdata"))
	writePidFile(t, cfg.StateDir, text)
	if _, err := pg.AttachEmbedded(t.Context(), cfg.StateDir); !errors.Is(err, pg.ErrNotRunning) {
		t.Errorf("attach took a stranger for the server: %v", err)
	}
	start(t, cfg)
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger was hurt: %v", err)
	}
}

func TestEmbeddedStopsAnOrphan(t *testing.T) {
	t.Parallel()
	found, err := pg.FindBinaries("", nil)
	if err != nil {
		t.Skip("no installed server to make an orphan of")
	}
	cfg := config(t, usedState(t)) // made by the same: installed ones come first
	cred, err := pg.ServerUser()
	if err != nil {
		t.Fatal(err)
	}
	data, sock := filepath.Join(cfg.StateDir, "pgdata"), filepath.Join(cfg.StateDir, "pgsock")
	orphan := exec.Command(filepath.Join(found[0].Dir, "postgres"), "-D", data, "-k", sock, "-c", "listen_addresses=")
	orphan.Dir = "/"
	orphan.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	for { // it has started when others would be told to join it
		if _, err := pg.AttachEmbedded(t.Context(), cfg.StateDir); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	start(t, cfg)
	if pid := serverPid(t, cfg.StateDir); pid == orphan.Process.Pid {
		t.Error("the orphan still serves")
	}
	if err := orphan.Wait(); err != nil {
		t.Errorf("the orphan was not stopped in good order: %v", err)
	}
}

func TestEmbeddedUsesAShortSocketPath(t *testing.T) {
	t.Parallel()
	long := filepath.Join(pgtest.Dir(t), strings.Repeat("x", 60), strings.Repeat("y", 60))
	if err := os.MkdirAll(long, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, long)
	e := start(t, cfg)
	url, err := pg.AttachEmbedded(t.Context(), long)
	if err != nil || url != e.URL() {
		t.Errorf("attach gives %q, %v; want %q", url, err, e.URL())
	}
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(conf.Host) })
	if strings.HasPrefix(conf.Host, long) {
		t.Errorf("the socket lies in %s", conf.Host)
	}
}

// TestHelperServe is not a test: it is the homeport that other tests start, to
// kill it or to run it as somebody else.
func TestHelperServe(t *testing.T) {
	state := os.Getenv("HOMEPORT_TEST_SERVE_STATE")
	if state == "" {
		t.Skip("only as a helper process")
	}
	e, err := pg.StartEmbedded(t.Context(), pg.EmbeddedConfig{
		StateDir: state,
		NPMDirs:  filepath.SplitList(os.Getenv("HOMEPORT_TEST_NODE_MODULES")),
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Println("failed:", err)
		t.FailNow()
	}
	fmt.Println("serving:", e.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the test closes it
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
