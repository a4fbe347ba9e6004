//go:build linux

package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/clock"
)

// tree reads a folder: name to mode and content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		what := info.Mode().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %d %x %d", len(b), sha256.Sum256(b), info.ModTime().UnixNano())
		}
		all[name] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// next is another pod's rig on the same volume.
func (r *rig) next(t *testing.T) *rig {
	t.Helper()
	o := newRig(t)
	old := r.node
	o.node.objects = old.objects
	v := old.welcome.Volume
	v.Epoch++
	o.node.welcome.Volume = v
	return o
}

// finish orders the last sync, waits for it, and ends the agent.
func (r *rig) finish() {
	r.t.Helper()
	r.node.command(agentapi.CommandFinal)
	r.node.awaitPhase(agentapi.PhaseDone)
	r.node.command(agentapi.CommandStop)
	if err := r.ended(); err != nil {
		r.t.Errorf("ended with %v", err)
	}
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is %q, was %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

func TestAVolumeGoesFromPodToPod(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "cd "+r.workspace+` && mkdir -p a/b && head -c 3000000 /dev/urandom > a/big && echo one > a/b/one &&
		chmod 751 a/b && ln -s big a/link && ln a/big a/hard && touch 'a/odd	name' && truncate -s 1M a/sparse`)
	r.node.command(agentapi.CommandSync)
	r.node.await("a commit", func() bool { return len(r.node.commits) == 1 })
	r.output("", pod, "echo two > "+r.workspace+"/two")
	want := tree(t, r.workspace)
	r.finish()
	if n := len(r.node.commits); n != 2 || !r.node.commits[1].Final || r.node.commits[0].Final {
		t.Errorf("%d commits: %v", n, r.node.commits)
	}
	if r.node.commits[1].Parent != r.node.commits[0].SnapshotID {
		t.Error("the second commit does not build on the first")
	}

	second := r.next(t)
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseServing)
	same(t, tree(t, second.workspace), want)
	second.finish()
	if n := len(second.node.commits); n != 0 {
		t.Errorf("%d commits of an unchanged volume", n)
	}
}

func TestFinalStopsEverybodyBeforeItSyncs(t *testing.T) {
	t.Parallel()
	r := served(t)
	file := filepath.Join(r.workspace, "log")
	_, _, wait := r.session("trap '' HUP TERM; exec > " + file + "; while :; do echo line; done")
	awaitFile(t, file)
	r.node.command(agentapi.CommandFinal)
	r.node.awaitPhase(agentapi.PhaseDone)
	_ = wait()
	want := tree(t, r.workspace)
	last := r.node.commits[len(r.node.commits)-1]
	if !last.Final || last.Unstable != 0 {
		t.Errorf("the last commit is not final, or torn: %+v", last)
	}
	second := r.next(t)
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseServing)
	same(t, tree(t, second.workspace), want)
	// The first one may be too short to be seen.
	tail := r.node.phases[max(0, len(r.node.phases)-3):]
	if !slices.Equal(tail, []agentapi.Phase{agentapi.PhaseServing, agentapi.PhaseFinal, agentapi.PhaseDone}) {
		t.Errorf("phases %v", r.node.phases)
	}
}

func TestALostAnswerToACommitIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.update(func() { r.node.loseNext[agentapi.PathCommit] = true })
	r.finish()
	if n, hellos := len(r.node.commits), len(r.node.hellos); n != 1 || hellos != 1 {
		t.Errorf("%d commits, %d hellos", n, hellos)
	}
}

func TestAHeadThatMovedIsTakenOver(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.command(agentapi.CommandSync)
	r.node.await("a commit", func() bool { return len(r.node.commits) == 1 })
	r.node.mu.Lock()
	first := *r.node.welcome.Volume.Head
	r.node.mu.Unlock()
	r.output("", pod, "echo y > "+r.workspace+"/y")
	r.node.command(agentapi.CommandSync)
	r.node.await("a second commit", func() bool { return len(r.node.commits) == 2 })
	r.node.update(func() { r.node.welcome.Volume.Head = &first }) // as if the last one had not counted
	r.output("", pod, "echo z > "+r.workspace+"/z")
	want := tree(t, r.workspace)
	r.finish()
	if n := len(r.node.hellos); n != 2 {
		t.Errorf("%d hellos", n)
	}
	second := r.next(t)
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseServing)
	same(t, tree(t, second.workspace), want)
}

func TestQuotaIsNotedAndTriedAgain(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.update(func() { r.node.refuse[agentapi.PathSign], r.node.code = http.StatusConflict, agentapi.CodeQuota })
	r.node.command(agentapi.CommandSync)
	r.node.await("the note", func() bool { return bytes.Contains([]byte(r.node.last.Note), []byte("quota")) })
	r.output("", pod, "echo still served")
	r.node.update(func() { clear(r.node.refuse) })
	r.finish()
	if len(r.node.commits) != 1 {
		t.Errorf("%d commits", len(r.node.commits))
	}
}

func TestAStoreThatFailsDelaysTheFinalSyncOnly(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.update(func() { r.node.badStore = 5 })
	r.finish()
	if len(r.node.commits) != 1 {
		t.Errorf("%d commits", len(r.node.commits))
	}
}

// The user is root, and may remove what is not theirs.
func TestARemovedStateFolderIsMadeAnew(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.command(agentapi.CommandSync)
	r.node.await("a commit", func() bool { return len(r.node.commits) == 1 })
	r.output("", pod, "rm -rf "+filepath.Join(r.dir, "state")+"; echo y > "+r.workspace+"/y")
	want := tree(t, r.workspace)
	r.finish()
	second := r.next(t)
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseServing)
	same(t, tree(t, second.workspace), want)
}

func TestFencedWhileSyncingEndsWithoutACommit(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.node.update(func() { r.node.refuse[agentapi.PathSign], r.node.code = http.StatusConflict, agentapi.CodeFenced })
	r.node.command(agentapi.CommandSync)
	if err := r.ended(); !errors.Is(err, ErrFenced) {
		t.Errorf("ended with %v", err)
	}
	if len(r.node.commits) != 0 {
		t.Errorf("%d commits", len(r.node.commits))
	}
}

func TestADamagedVolumeIsReported(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "head -c 2000000 /dev/urandom > "+r.workspace+"/x")
	r.finish()
	for name, body := range r.node.objects {
		if len(body) > 1<<20 {
			body = bytes.Clone(body)
			body[len(body)/3] ^= 1
			r.node.objects[name] = body
		}
	}
	second := r.next(t)
	second.start(nil)
	second.node.await("the report", func() bool { return len(second.node.failed) > 0 })
	if got := second.node.failed[0]; got.Code != "damaged" {
		t.Errorf("reported %+v", got)
	}
	if second.node.restored != 0 {
		t.Error("a damaged volume was served")
	}
}

func TestADeleteDuringTheRestoreCommitsNothing(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	r.finish()
	second := r.next(t)
	second.node.badStore = 1 << 30
	var tried atomic.Bool
	second.node.onObject = func(string) {
		if !tried.Swap(true) {
			second.node.command(agentapi.CommandFinal)
		}
	}
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseDone)
	second.node.command(agentapi.CommandStop)
	if err := second.ended(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if second.node.restored != 0 || len(second.node.commits) != 0 || len(second.node.failed) != 0 {
		t.Errorf("restored %d, commits %d, failed %v", second.node.restored, len(second.node.commits), second.node.failed)
	}
}

func TestAnEvictedAgentSyncsAndEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	evicted := make(chan struct{})
	r.start(func(c *Config) { c.Evicted = evicted })
	r.node.awaitPhase(agentapi.PhaseServing)
	r.output("", pod, "echo x > "+r.workspace+"/x")
	close(evicted)
	if err := r.ended(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := len(r.node.commits); n != 1 || !slices.Contains(r.node.phases, agentapi.PhaseDone) {
		t.Errorf("%d commits, phases %v", n, r.node.phases)
	}
}

// killAt kills the agent with -9 at the nth object it moves in that direction.
func (r *rig) killAt(cmd *exec.Cmd, method string, nth int32) {
	var moved atomic.Int32
	r.node.update(func() {
		r.node.onObject = func(m string) {
			if m == method && moved.Add(1) == nth {
				_ = cmd.Process.Signal(syscall.SIGKILL)
			}
		}
	})
}

func TestAKilledRestoreGoesOn(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.output("", pod, "cd "+r.workspace+" && for i in 1 2 3 4; do head -c 9000000 /dev/urandom > big$i; done; mkdir d && echo small > d/small")
	want := tree(t, r.workspace)
	r.finish()
	for _, nth := range []int32{1, 3, 4} {
		second := r.next(t)
		cmd := second.process()
		second.killAt(cmd, http.MethodGet, nth)
		_ = cmd.Wait()
		if second.node.restored != 0 {
			t.Fatalf("the restore was over before object %d", nth)
		}
		second.process()
		second.node.awaitPhase(agentapi.PhaseServing)
		same(t, tree(t, second.workspace), want)
	}
}

// TestKilledAgentsGoOn kills the agent with -9 while it uploads: its processes
// end or go on without it, and the next run neither restores over the user's
// files nor loses one.
func TestKilledAgentsGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := r.process()
	r.node.awaitPhase(agentapi.PhaseServing)
	r.output("", pod, "echo old > "+r.workspace+"/file; echo gone > "+r.workspace+"/gone")
	r.node.command(agentapi.CommandSync)
	r.node.await("a commit", func() bool { return len(r.node.commits) == 1 })
	r.output("", pod, "cd "+r.workspace+" && head -c 40000000 /dev/urandom > big; echo newer > file; rm gone")
	r.killAt(cmd, http.MethodPut, 2)
	r.node.command(agentapi.CommandSync)
	_ = cmd.Wait()
	if len(r.node.commits) != 1 {
		t.Fatalf("%d commits before the kill", len(r.node.commits))
	}
	want := tree(t, r.workspace)
	r.node.command(agentapi.CommandNone)
	again := r.process()
	r.node.await("a second hello", func() bool { return len(r.node.hellos) == 2 })
	if !r.node.hellos[1].Restarted {
		t.Error("the second hello does not say that it is one")
	}
	r.node.command(agentapi.CommandFinal)
	r.node.awaitPhase(agentapi.PhaseDone)
	r.node.command(agentapi.CommandStop)
	if err := again.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	same(t, tree(t, r.workspace), want)
	second := r.next(t)
	second.start(nil)
	second.node.awaitPhase(agentapi.PhaseServing)
	same(t, tree(t, second.workspace), want)
}

// BenchmarkEmptyVolume measures what a pod costs around an empty volume: from
// the agent's start to the heartbeat that says serving, and from the order of
// the last sync to the one that says done.
func BenchmarkEmptyVolume(b *testing.B) {
	wall := clock.New().Wall
	var up, down time.Duration
	for b.Loop() {
		r := newRig(b)
		began := wall()
		r.start(nil)
		r.node.awaitPhase(agentapi.PhaseServing)
		up += wall().Sub(began)
		began = wall()
		r.node.command(agentapi.CommandFinal)
		r.node.awaitPhase(agentapi.PhaseDone)
		down += wall().Sub(began)
		r.node.command(agentapi.CommandStop)
		if err := r.ended(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(up.Microseconds())/1000/float64(b.N), "up-ms")
	b.ReportMetric(float64(down.Microseconds())/1000/float64(b.N), "down-ms")
}
