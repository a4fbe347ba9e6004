//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

func TestTerminateLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	m := launch(t, c, "hp-abcd-00000001-1")
	ask(t, m, "user mkdir -p /workspace/a/b /root/c && chmod 0 /workspace/a /root/c; (sleep 1000 >/dev/null 2>&1 &) ; (setsid sleep 1000 >/dev/null 2>&1 &)")
	groups := controlGroups(t, dir)
	if len(touching(t, dir)) == 0 {
		t.Fatal("the test does not see the machine's processes")
	}
	for range 2 {
		if err := c.Terminate(t.Context(), m.Ref); err != nil {
			t.Fatal(err)
		}
		if left := touching(t, dir); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	}
	if _, there := find(t, c, m.Name); there {
		t.Error("an ended machine is listed")
	}
	entries, err := os.ReadDir(filepath.Join(dir, "saltpier"))
	if err != nil || len(entries) != 0 {
		t.Errorf("files left: %v, %v", entries, err)
	}
	for _, g := range groups {
		if _, err := os.Stat(g); !os.IsNotExist(err) {
			t.Errorf("control group left: %v", err)
		}
	}
	if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.SSHPort)); err != nil {
		t.Errorf("port left: %v", err)
	} else {
		_ = l.Close()
	}
}

// controlGroups lists the folders that the host made for the machines of dir.
func controlGroups(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	for _, pid := range touching(t, dir) {
		b, err := os.ReadFile("/proc/" + pid + "/cgroup")
		if err != nil {
			continue // ended meanwhile
		}
		for line := range strings.Lines(string(b)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if strings.Contains(f[2], "/homeport/") {
				list = append(list, "/sys/fs/cgroup/"+f[1]+f[2])
			}
		}
	}
	return list
}

func TestMachineThatEndsIsGone(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	m := launch(t, c, "hp-abcd-00000001-1")
	if err := s.SetScript(t.Context(), sandbox.Script{Faults: []sandbox.Fault{{Op: sandbox.OpAgent, Kind: "machine_dies", Times: 1}}}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.SSHPort))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, "call /agent/v1/lease"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine is listed as gone", func() bool {
		m, there := find(t, c, m.Name)
		return there && m.State == provider.Gone && m.Reason != ""
	})
	if left := touching(t, dir); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if err := c.Terminate(t.Context(), m.Ref); err != nil {
		t.Fatal(err)
	}
	if _, there := find(t, c, m.Name); there {
		t.Error("an ended machine is listed")
	}
}

func TestPodEndsItselfWhenItsFolderIsRemoved(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	launch(t, s.Clouds()["saltpier"], "hp-abcd-00000001-1")
	for _, d := range []string{"run", "workspace"} {
		if err := os.RemoveAll(filepath.Join(dir, "saltpier", "hp-abcd-00000001-1", d)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the pod ends itself", func() bool { return len(touching(t, dir)) == 0 })
}

func TestNameIsLaunchedOnceByManyNodes(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	nodes := []*sandbox.Sandbox{s, open(t, dir), open(t, dir)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 6 {
		c := nodes[i%len(nodes)].Clouds()["saltpier"]
		o := firstOffer(t, c)
		wg.Go(func() {
			_, err := c.Launch(t.Context(), request("hp-abcd-00000001-1", o, 0))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if provider.NoMachine(err) {
				t.Errorf("a launch of a taken name says that there is no machine: %v", err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("made %d machines", made)
	}
	if n, err := s.StopAll(t.Context()); err != nil || n != 1 {
		t.Errorf("stopped %d, %v", n, err)
	}
}

func TestOneNodeServesASocketAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	open(t, dir)
	var nodes []*sandbox.Sandbox
	for _, text := range []string{"first", "second"} {
		s, err := newSandbox(dir, say(text))
		if err != nil {
			t.Fatal(err)
		}
		s.Start(t.Context())
		nodes = append(nodes, s)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if _, err := nodes[1].StopAll(ctx); err != nil {
			t.Error(err)
		}
		_ = nodes[1].Stop(ctx)
	})
	m := launch(t, nodes[0].Clouds()["saltpier"], "hp-abcd-00000001-1")
	if got := ask(t, m, "call /agent/v1/hello"); got != "200 first" {
		t.Errorf("answered %q", got)
	}
	if err := nodes[0].Stop(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second node takes over", func() bool { return ask(t, m, "call /agent/v1/hello") == "200 second" })
}

func TestTakenPortMakesNoMachine(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	c := s.Clouds()["saltpier"]
	_, err = c.Launch(t.Context(), request("hp-abcd-00000001-1", firstOffer(t, c), port))
	if !errors.Is(err, provider.ErrPortTaken) || !provider.NoMachine(err) {
		t.Errorf("launch on a taken port: %v", err)
	}
	if _, there := find(t, c, "hp-abcd-00000001-1"); there || len(touching(t, dir)) > 0 {
		t.Error("something is left")
	}
	if m, err := s.Clouds()["gullhaven"].Launch(t.Context(), request("hp-abcd-00000002-1", firstOffer(t, s.Clouds()["gullhaven"]), port)); err != nil || m.SSHPort == port {
		t.Errorf("a cloud that chooses ports: %+v, %v", m, err)
	}
}

func TestHostThatCannotRunPodsSaysWhy(t *testing.T) {
	t.Parallel()
	s, err := sandbox.New(sandbox.Config{Dir: t.TempDir(), AgentBinary: "/no/such/homeport-agent", Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Clouds()["saltpier"]
	_, err = c.Launch(t.Context(), request("hp-abcd-00000001-1", firstOffer(t, c), 0))
	if !errors.Is(err, provider.ErrUnsupported) || !strings.Contains(fault.Of(err).Detail, "homeport-agent is missing") {
		t.Errorf("launch: %v", err)
	}
	if _, there := find(t, c, "hp-abcd-00000001-1"); there {
		t.Error("something is left")
	}
}

func TestDroppedAgentCallsAreAnsweredByNobody(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	m := launch(t, s.Clouds()["saltpier"], "hp-abcd-00000001-1")
	if err := s.SetScript(t.Context(), sandbox.Script{Provider: "saltpier", Faults: []sandbox.Fault{{Op: sandbox.OpAgent, Kind: "drop", Times: 2}}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"503 ", "503 ", "200 "} {
		if got := ask(t, m, "call /agent/v1/lease"); !strings.HasPrefix(got, want) {
			t.Errorf("call %d: %q", i, got)
		}
	}
}
