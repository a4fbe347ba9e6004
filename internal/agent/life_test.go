//go:build linux

package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

// ended waits for the end of Run.
func (r *rig) ended() error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		r.t.Fatal("the agent did not end")
		return nil
	}
}

// session starts a process in the pod and returns once it runs.
func (r *rig) session(command string) (io.WriteCloser, *bufio.Reader, func() error) {
	r.t.Helper()
	cmd := r.ssh(pod, "echo in; "+command)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "in\n" {
		r.t.Fatalf("%q %v", line, err)
	}
	return in, out, cmd.Wait
}

func TestTheAgentEndsByTheControlPlanesWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		say  func(n *node)
		want error
	}{
		{"stop", func(n *node) { n.command(agentapi.CommandStop) }, nil},
		{"fenced", func(n *node) {
			n.update(func() { n.refuse[agentapi.PathLease], n.code = http.StatusConflict, agentapi.CodeFenced })
		}, ErrFenced},
		{"unknown", func(n *node) {
			n.update(func() { n.refuse[agentapi.PathLease], n.code = http.StatusUnauthorized, "no_such_token" })
		}, ErrRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := served(t)
			pidFile := filepath.Join(r.home, "pid")
			_, _, wait := r.session("trap '' HUP TERM; echo $$ > " + pidFile + "; echo ready; while :; do sleep 1; done")
			awaitFile(t, pidFile)
			tt.say(r.node)
			if err := r.ended(); !errors.Is(err, tt.want) {
				t.Errorf("ended with %v", err)
			}
			if err := wait(); err == nil {
				t.Error("the session ended well")
			}
			awaitGone(t, pidFile)
			awaitRefused(t, "127.0.0.1:"+r.port)
		})
	}
}

func TestARefusedHelloEndsTheAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.node.refuse[agentapi.PathHello], r.node.code = http.StatusNotFound, "instance_not_found"
	r.start(nil)
	if err := r.ended(); !errors.Is(err, ErrRefused) {
		t.Errorf("ended with %v", err)
	}
}

func TestARestartOfTheControlPlaneDisturbsNobody(t *testing.T) {
	t.Parallel()
	for _, page := range []bool{false, true} {
		r := served(t)
		in, out, wait := r.session("read x; echo got $x")
		r.node.update(func() { r.node.down, r.node.page = !page, page })
		r.node.server.CloseClientConnections()
		if got := r.output("", pod, "echo new session"); got != "new session\n" {
			t.Errorf("while the node is away: %q", got)
		}
		_, _ = io.WriteString(in, "it\n")
		if line, err := out.ReadString('\n'); line != "got it\n" {
			t.Errorf("the old session says %q, %v", line, err)
		}
		if err := wait(); err != nil {
			t.Error(err)
		}
		leases := 0
		r.node.update(func() { r.node.down, r.node.page, leases = false, false, r.node.leases })
		r.node.await("a heartbeat after the restart", func() bool { return r.node.leases > leases })
		r.node.command(agentapi.CommandStop)
		if err := r.ended(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFailedRestoreIsReportedByItsCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.node.welcome.Volume.SizeBytes = 1 << 60
	r.node.loseNext[agentapi.PathFailed] = true
	r.start(nil)
	r.node.await("the report", func() bool { return len(r.node.failed) == 2 })
	if got := r.node.failed[1]; got.Code != "disk_full" || got.Epoch != 1 {
		t.Errorf("reported %+v", got)
	}
	r.node.command(agentapi.CommandStop)
	if err := r.ended(); err != nil {
		t.Error(err)
	}
	if r.node.restored != 0 || slices.Contains(r.node.phases, agentapi.PhaseServing) {
		t.Error("it served all the same")
	}
}

func TestFoldersOfAnotherAttachmentAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	state := filepath.Join(r.dir, "state")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeMark(state, mark{Volume: "another", Epoch: 1, Restored: true}); err != nil {
		t.Fatal(err)
	}
	r.start(nil)
	r.node.await("the report", func() bool { return len(r.node.failed) > 0 })
	if got := r.node.failed[0]; got.Code != "internal" {
		t.Errorf("reported %+v", got)
	}
}

func TestAnUnchangedNodeIsNotAskedInALoop(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.node.await("two held heartbeats", func() bool { return r.node.last.Seen == r.node.orders.Version })
	r.node.mu.Lock()
	before := r.node.leases
	r.node.mu.Unlock()
	r.output("", pod, "true")
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	if r.node.leases > before+1 {
		t.Errorf("%d heartbeats within one command", r.node.leases-before)
	}
}

// TestAPodsEveryProcessEndsWithIt runs the agent in a process of its own, as
// on a machine of its own.
func TestAPodsEveryProcessEndsWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := r.process()
	r.node.awaitPhase(agentapi.PhaseServing)
	pidFile := filepath.Join(r.home, "pid")
	orphan := filepath.Join(r.home, "orphan")
	r.output("", pod, "(setsid sh -c 'echo $$ > "+orphan+"' &)")
	awaitFile(t, orphan)
	awaitGone(t, orphan) // a dead one that nobody waited for would still be listed
	r.output("", pod, "(setsid setsid sh -c 'echo $$ > "+pidFile+"; exec env -i sleep 600' > /dev/null 2>&1 < /dev/null &)")
	awaitFile(t, pidFile)
	r.node.command(agentapi.CommandStop)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	awaitGone(t, pidFile)
}

// awaitGone waits until the process whose number a file holds is gone.
func awaitGone(t *testing.T, pidFile string) {
	t.Helper()
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err != nil {
			return
		}
		if sleep(ctx, killPoll) != nil {
			t.Fatalf("process %s is still there", pid)
		}
	}
}
