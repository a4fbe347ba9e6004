package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/pg"
)

// A server is one homeport process as make run starts it, with an embedded
// database that keeps what it is told, and a state folder of its own.
type server struct {
	t     *testing.T
	url   string
	addr  string
	state string
	env   []string
	logs  tail

	cmd    *exec.Cmd
	exited chan struct{}
}

// newServer returns a server that is not started. Its pods, its process and its
// folder are gone when the test ends.
func newServer(t *testing.T) *server {
	t.Helper()
	state, err := os.MkdirTemp("", "hpb") //nolint:usetesting // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	port := bintest.FreePort(t)
	s := &server{t: t, state: state, addr: fmt.Sprintf("127.0.0.1:%d", port), url: fmt.Sprintf("http://localhost:%d", port)}
	s.env = []string{
		"HOMEPORT_STATE_DIR=" + state, "HOMEPORT_ADDR=" + s.addr, "HOMEPORT_PUBLIC_URL=" + s.url,
		"HOMEPORT_METRICS_ADDR=off", "HOMEPORT_SSH_PORTS=40000-44999",
	}
	t.Cleanup(s.destroy)
	return s
}

// start runs the server and returns how long it took until /readyz said so.
func (s *server) start() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.cmd = exec.Command(filepath.Join(bin, "homeport"), "serve")
	s.cmd.Env = append(bintest.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.logs, &s.logs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.exited = make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // how it ended is in the log
		close(s.exited)
	}()
	for time.Since(began) < time.Minute {
		select {
		case <-s.exited:
			s.t.Fatalf("the server ended:\n%s", s.logs.String())
		case <-time.After(5 * time.Millisecond):
		}
		resp, err := http.Get("http://" + s.addr + "/readyz")
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return time.Since(began)
		}
	}
	s.t.Fatalf("the server is not ready:\n%s", s.logs.String())
	return 0
}

// end sends a signal and returns how long the process needed to be gone.
func (s *server) end(sig syscall.Signal) time.Duration {
	if s.cmd == nil {
		return 0
	}
	began := time.Now()
	_ = s.cmd.Process.Signal(sig) // it may be gone already
	<-s.exited
	return time.Since(began)
}

func (s *server) destroy() {
	s.end(syscall.SIGTERM)
	stop := exec.Command(filepath.Join(bin, "homeport"), "sandbox", "stop")
	stop.Env = append(bintest.Environ(), s.env...)
	if out, err := stop.CombinedOutput(); err != nil {
		s.t.Errorf("sandbox stop: %v\n%s", err, out)
	}
	if s.t.Failed() {
		s.t.Logf("log of the server:\n%s", s.logs.String())
	}
	if err := os.RemoveAll(s.state); err != nil {
		s.t.Errorf("remove the state folder: %v", err)
	}
}

// database is the address of the embedded database of the running server.
func (s *server) database() string {
	s.t.Helper()
	address, err := pg.AttachEmbedded(s.t.Context(), s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	return address
}

// machines is how many sandbox machines there are, whatever any row says.
func (s *server) machines() int {
	found, err := filepath.Glob(filepath.Join(s.state, "sandbox", "*", "hp-*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(found)
}

// machinesLeft is how many there still are when they had time to go.
func (s *server) machinesLeft() int {
	for end := time.Now().Add(20 * time.Second); s.machines() > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	return s.machines()
}

// cpu is the CPU time that a process and the server's PostgreSQL have used.
func (s *server) cpu(pid int) time.Duration {
	s.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	parents, used, postgres := map[int]int{}, map[int]time.Duration{}, map[int]bool{}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it ended
		}
		each, _ := strconv.Atoi(filepath.Base(dir)) // digits, by the pattern
		parents[each], used[each], postgres[each] = parseStat(stat)
	}
	sum := used[pid]
	for each := range parents {
		if !postgres[each] {
			continue
		}
		for up := each; up > 1; up = parents[up] {
			if up == s.cmd.Process.Pid {
				sum += used[each]
				break
			}
		}
	}
	return sum
}

// parseStat reads /proc/PID/stat.
func parseStat(stat []byte) (parent int, used time.Duration, postgres bool) {
	name, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0, 0, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	user, err2 := strconv.Atoi(fields[11])
	system, err3 := strconv.Atoi(fields[12])
	if errors.Join(err1, err2, err3) != nil {
		return 0, 0, false
	}
	return parent, time.Duration(user+system) * 10 * time.Millisecond, bytes.HasSuffix(name, []byte("(postgres"))
}

// A tail keeps the newest part of what a process wrote.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps b.
func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if len(l.text) > 64<<10 {
		l.text = l.text[len(l.text)-64<<10:]
	}
	return len(b), nil
}

// String returns it.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
