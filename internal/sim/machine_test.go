package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/pg"
)

// bin is the folder of the binaries under test.
var bin string

func TestMain(m *testing.M) { os.Exit(bintest.Run(m, &bin)) }

// folder is a fresh folder on a disk that the database's user can enter, with a
// name short enough for sockets.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hpsim") //nolint:usetesting // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A database is the embedded server as it is shipped, with fsync, to be killed.
type database struct {
	t     *testing.T
	state string
	*pg.Embedded
}

func (d *database) start() {
	d.t.Helper()
	modules, err := filepath.Abs("../../web/node_modules")
	if err != nil {
		d.t.Fatal(err)
	}
	d.Embedded, err = pg.StartEmbedded(d.t.Context(), pg.EmbeddedConfig{StateDir: d.state, NPMDirs: []string{modules}})
	if err != nil {
		d.t.Fatal(err)
	}
}

// kill ends the server by kill -9 and starts it again: it recovers.
func (d *database) kill() {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.state, "pgdata", "postmaster.pid"))
	if err != nil {
		d.t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(raw), &pid); err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	<-d.Done() //nolint:errcheck // it was killed
	if err := d.Stop(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.start()
}

func (d *database) stop() {
	if err := d.Stop(context.WithoutCancel(d.t.Context())); err != nil {
		d.t.Error(err)
	}
}

// A process is one `homeport serve`.
type process struct {
	t      *testing.T
	url    string
	env    []string
	logs   bytes.Buffer
	cmd    *exec.Cmd
	exited chan struct{}
	killed bool // by signal
}

func newProcess(t *testing.T, db *database, cards *network) *process {
	t.Helper()
	port := bintest.FreePort(t)
	p := &process{t: t, url: fmt.Sprintf("http://localhost:%d", port)}
	p.env = append(bintest.Environ(),
		"HOMEPORT_STATE_DIR="+folder(t), "HOMEPORT_DATABASE_URL="+db.URL(), "HOMEPORT_METRICS_ADDR=off", "HOMEPORT_LOG_LEVEL=error",
		fmt.Sprintf("HOMEPORT_ADDR=127.0.0.1:%d", port), "HOMEPORT_PUBLIC_URL="+p.url,
		"HOMEPORT_STRIPE_SECRET_KEY=sk_test_of_the_simulation", "HOMEPORT_STRIPE_WEBHOOK_SECRET="+webhookSecret,
		"HOMEPORT_STRIPE_API_BASE="+cards.server.URL)
	return p
}

// start runs the server, armed to die at a failpoint unless that is empty, and
// waits until it is ready or dead again.
func (p *process) start(failpoint string) {
	p.t.Helper()
	p.cmd = exec.Command(filepath.Join(bin, "homeport"), "serve")
	p.cmd.Env = append(p.env[:len(p.env):len(p.env)], "HOMEPORT_FAILPOINT="+failpoint)
	p.logs.Reset()
	p.cmd.Stderr = &p.logs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exited, cmd := make(chan struct{}), p.cmd
	p.exited = exited
	go func() {
		err := cmd.Wait()
		var status *exec.ExitError
		p.killed = errors.As(err, &status) && status.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		close(exited)
	}()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		select {
		case <-exited:
			if !p.killed {
				p.t.Fatalf("the server ended by itself:\n%s", p.logs.String())
			}
			return
		default:
		}
		if resp, err := browser.Get(p.url + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	p.end()
	p.t.Fatalf("the server is not ready:\n%s", p.logs.String())
}

// dead says whether the server died.
func (p *process) dead() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// end kills the server.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may be dead already
	<-p.exited
}

// command runs an operator's command and returns what it says, with its status.
func (p *process) command(args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(bin, "homeport"), args...)
	cmd.Env = p.env
	return cmd.Output()
}

// workers are the goroutines of one round.
type workers struct {
	sync.WaitGroup
	stop chan struct{}
}

func (w *workers) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}
