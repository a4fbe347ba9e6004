// Package e2e holds the tests that run the real binaries as an operator and a
// user would: processes that are killed, real SSH, a real PostgreSQL.
package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// bin is the folder of the binaries under test.
var bin string

func TestMain(m *testing.M) { os.Exit(bintest.Run(m, &bin)) }

// sshPorts gives each server of this process a range of SSH ports of its own.
var sshPorts atomic.Int64

// A server is one homeport process with a database and a state folder of its own.
type server struct {
	t     *testing.T
	url   string
	state string
	env   []string
	logs  *log

	under    []string      // command that runs it; nil = none
	resolver *net.Resolver // what knows its pods' names; nil = they lead to this machine

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	deaths atomic.Int64 // by signal, other than by stop
}

// newServer returns a server that is not started. Its pods, its process and its
// folder are gone when the test ends.
func newServer(t *testing.T) *server {
	t.Helper()
	state, err := os.MkdirTemp("", "hp") //nolint:usetesting // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	first := 30000 + 200*sshPorts.Add(1)
	s := &server{t: t, state: state, logs: &log{}}
	s.env = []string{
		"HOMEPORT_STATE_DIR=" + state, "HOMEPORT_DATABASE_URL=" + pgtest.URL(t), "HOMEPORT_METRICS_ADDR=off",
		fmt.Sprintf("HOMEPORT_SSH_PORTS=%d-%d", first, first+199),
	}
	s.listenOn(bintest.FreePort(t))
	t.Cleanup(s.destroy)
	return s
}

func (s *server) listenOn(port int) {
	s.url = fmt.Sprintf("http://localhost:%d", port)
	s.env = append(s.env, fmt.Sprintf("HOMEPORT_ADDR=127.0.0.1:%d", port), "HOMEPORT_PUBLIC_URL="+s.url)
}

// peer returns another node on the same database and state folder.
func (s *server) peer() *server {
	p := &server{t: s.t, state: s.state, logs: &log{}, env: append([]string{}, s.env...)}
	p.listenOn(bintest.FreePort(s.t))
	p.env = append(p.env, "HOMEPORT_PUBLIC_URL="+s.url) // both are behind one name
	s.t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// database is the URL of the server's database.
func (s *server) database() string {
	for _, line := range s.env {
		if address, ok := strings.CutPrefix(line, "HOMEPORT_DATABASE_URL="); ok {
			return address
		}
	}
	s.t.Fatal("the server has no database of its own")
	return ""
}

// start runs the server and waits until it is ready. extra settings are
// NAME=value.
func (s *server) start(extra ...string) {
	s.t.Helper()
	s.spawn(extra...)
	s.waitReady()
}

func (s *server) spawn(extra ...string) {
	s.t.Helper()
	command := append(slices.Clone(s.under), filepath.Join(bin, "homeport"), "serve")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(bintest.Environ(), s.env...), extra...)
	cmd.Stdout, cmd.Stderr = s.logs, s.logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
	go func() {
		err := cmd.Wait()
		var status *exec.ExitError
		if errors.As(err, &status) && status.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			s.deaths.Add(1)
		}
		close(exited)
	}()
}

func (s *server) waitReady() {
	s.t.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(s.url + "/readyz")
		if err != nil {
			select {
			case <-s.exited:
				s.t.Fatalf("the server ended:\n%s", s.logs)
			default:
			}
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("the server is not ready:\n%s", s.logs)
}

// end sends a signal and waits for the process to be gone.
func (s *server) end(sig syscall.Signal) {
	s.mu.Lock()
	cmd, exited := s.cmd, s.exited
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig) // it may be gone already
	<-exited
}

// supervise starts the server again, without extra settings, whenever it dies,
// as a service manager would, until the test ends.
func (s *server) supervise(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.exited:
				if ctx.Err() != nil {
					return
				}
				s.spawn()
			}
		}
	})
	s.t.Cleanup(wg.Wait)
}

// command runs an operator's command.
func (s *server) command(args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "homeport"), args...)
	cmd.Env = append(bintest.Environ(), s.env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("homeport %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out
}

// tries runs an operator's command that may be refused.
func (s *server) tries(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(bin, "homeport"), args...)
	cmd.Env = append(bintest.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *server) destroy() {
	s.end(syscall.SIGKILL)
	s.command("sandbox", "stop")
	if s.t.Failed() {
		s.t.Logf("log of the server:\n%s", s.logs)
	}
	if err := os.RemoveAll(s.state); err != nil {
		s.t.Errorf("remove the state folder: %v", err)
	}
}

// machines are the sandbox machines that exist on this host, whatever any row says.
func (s *server) machines() []string {
	found, err := filepath.Glob(filepath.Join(s.state, "sandbox", "*", "hp-*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// A log keeps the newest part of what a process wrote.
type log struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps b.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if len(l.text) > 64<<10 {
		l.text = l.text[len(l.text)-64<<10:]
	}
	return len(b), nil
}

// String returns it.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
