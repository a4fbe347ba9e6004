//go:build linux

package sandbox_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// node is another process that launches one machine.
type node struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func startNode(t *testing.T, dir, name string) *node {
	t.Helper()
	n := &node{cmd: exec.Command(os.Args[0], "node", dir, name)}
	if _, err := n.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.cmd.Stderr = os.Stderr
	n.out = bufio.NewReader(out)
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)
	if got := n.line(t); got != "launching" {
		t.Fatalf("the node says %q", got)
	}
	return n
}

// line is the next line that the node says.
func (n *node) line(t *testing.T) string {
	t.Helper()
	line, err := n.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

func TestMachineOutlivesItsNode(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	n := startNode(t, dir, "hp-abcd-00000001-1")
	line := n.line(t)
	c := s.Clouds()["saltpier"]
	before, _ := find(t, c, "hp-abcd-00000001-1")
	n.kill()
	m, there := find(t, c, "hp-abcd-00000001-1")
	if !there || m != before || m.State != provider.Running || "launched "+m.Ref != line {
		t.Fatalf("after its node died the machine is %+v, before it was %+v", m, before)
	}
	if got := ask(t, m, "call /agent/v1/hello"); !strings.HasPrefix(got, "error ") {
		t.Errorf("without a node the agent API answered %q", got)
	}
	s.Start(t.Context())
	eventually(t, "the other node answers on the machine's socket", func() bool {
		return ask(t, m, "call /agent/v1/hello") == "200 node says hello"
	})
	if err := c.Terminate(t.Context(), m.Ref); err != nil {
		t.Fatal(err)
	}
}

// TestNodeKilledWhileLaunching kills the node 0, 2, 4 … ms after it began:
// whatever there is then must be listed, or not exist, and must end.
func TestNodeKilledWhileLaunching(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	seen := map[provider.State]int{}
	for i := range 24 {
		name := fmt.Sprintf("hp-abcd-%08d-1", i)
		n := startNode(t, dir, name)
		select {
		case <-time.After(time.Duration(i*2) * time.Millisecond):
		case <-t.Context().Done():
		}
		n.kill()
		var m provider.Machine
		eventually(t, "the launch is over", func() bool {
			m, _ = find(t, c, name)
			return m.State != provider.Building
		})
		seen[m.State]++
		if m.Ref == "" {
			if left := touching(t, filepath.Join(dir, "saltpier", name)); len(left) > 0 {
				t.Fatalf("killed after %d ms: nothing is listed but %v run", i*2, left)
			}
			continue
		}
		if err := c.Terminate(t.Context(), m.Ref); err != nil {
			t.Fatal(err)
		}
		if _, there := find(t, c, name); there {
			t.Fatalf("killed after %d ms: not ended", i*2)
		}
	}
	eventually(t, "no process is left", func() bool { return len(touching(t, dir)) == 0 })
	t.Logf("states met: %v", seen)
}

func TestHalfMadeMachinesAreListedAndEnd(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	if err := s.SetScript(t.Context(), sandbox.Script{Faults: []sandbox.Fault{{Op: sandbox.OpLaunch, Kind: "never_boots", Times: 1}}}); err != nil {
		t.Fatal(err)
	}
	m := launch(t, c, "hp-abcd-00000001-1")
	// Without its scripted fate the folder is what a node leaves that dies before stage 1.
	file := filepath.Join(dir, "saltpier", m.Name, "machine.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "never_boots", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := find(t, c, m.Name); got.State != provider.Failed || got.Reason == "" {
		t.Errorf("a launch that was cut off is %+v", got)
	}
	if err := c.Terminate(t.Context(), m.Ref); err != nil {
		t.Fatal(err)
	}
	if _, there := find(t, c, m.Name); there {
		t.Error("not ended")
	}
}

func TestFilesTornByACrashOfTheHostStopNothing(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	if err := s.SetScript(t.Context(), sandbox.Script{Faults: []sandbox.Fault{{Op: sandbox.OpLaunch, Kind: "never_boots", Times: 0}}}); err != nil {
		t.Fatal(err)
	}
	m, other := launch(t, c, "hp-abcd-00000001-1"), launch(t, c, "hp-abcd-00000002-1")
	for _, file := range []string{"saltpier/" + m.Name + "/machine.json", "saltpier/" + m.Name + "/birth.json", "script.json"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := find(t, c, m.Name); got.State != provider.Failed {
		t.Errorf("a machine without a record is %+v", got)
	}
	for _, ref := range []string{m.Ref, other.Ref} {
		if err := c.Terminate(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	if list, err := c.Find(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestTerminateAgainFinishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	grave := filepath.Join(dir, "saltpier", ".gone-hp-abcd-00000001-1")
	if err := os.MkdirAll(filepath.Join(grave, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Clouds()["saltpier"].Terminate(t.Context(), "hp-abcd-00000001-1.00000000"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(grave); !os.IsNotExist(err) {
		t.Error("its files are left")
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	var old []string
	for _, name := range []string{".new-123", ".gone-hp-abcd-00000001-1"} {
		path := filepath.Join(dir, "saltpier", name)
		if err := os.MkdirAll(filepath.Join(path, "workspace"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		old = append(old, path)
	}
	young := filepath.Join(dir, "saltpier", ".new-456")
	if err := os.Mkdir(young, 0o755); err != nil {
		t.Fatal(err)
	}
	s.Start(t.Context())
	for _, path := range old {
		eventually(t, path+" is removed", func() bool { _, err := os.Stat(path); return os.IsNotExist(err) })
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("a folder that may be in the making was removed")
	}
}
