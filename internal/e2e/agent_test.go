package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledAgentLosesNothingCommitted kills the agent, and with it the pod, in
// the middle of a sync: the volume is at its last committed snapshot, whole,
// and can be mounted again.
func TestKilledAgentLosesNothingCommitted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	a := u.offer("H100_80GB")
	p := u.rent(a, v.ID)
	u.run(p, "head -c 5000000 /dev/urandom > /workspace/one; sha256sum < /workspace/one > /workspace/one.sum; sync")
	u.end(p.ID)
	head := headOf(t, s, v.ID)

	p = u.rent(a, v.ID)
	u.run(p, "head -c 400000000 /dev/urandom > /workspace/two; sync; ls -l /workspace/two")
	// Deleting asks for the final sync; the agent dies while its packs travel.
	if err := u.DeletePod(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	before := objects(t, s, v.ID)
	until(t, "packs to travel", func() bool { return objects(t, s, v.ID) > before })
	killAgent(t, s, p.ID)
	p = u.waitForLong(p.ID, "deleted", 4*time.Minute)
	if !strings.Contains(p.StatusDetail, "machine was lost") {
		t.Errorf("status_detail is %q", p.StatusDetail)
	}
	if got := headOf(t, s, v.ID); got != head {
		t.Errorf("the head moved from %s to %s", head, got)
	}

	p = u.rent(u.offer("H100_80GB", a.Provider), v.ID)
	if got := u.run(p, "cd /workspace && sha256sum < one | cmp - one.sum && ls"); got != "one\none.sum\n" {
		t.Errorf("the volume holds %q", got)
	}
	u.end(p.ID)
	checkNothingLeft(t, s)
}

// headOf is the volume's committed snapshot.
func headOf(t *testing.T, s *server, volumeID string) string {
	t.Helper()
	var r struct{ Snapshot string }
	if err := json.Unmarshal(s.command("volume", "repository", volumeID, "--json"), &r); err != nil {
		t.Fatal(err)
	}
	return r.Snapshot
}

// objects counts the volume's stored packs.
func objects(t *testing.T, s *server, volumeID string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.state, "blobs", "v", volumeID, "data", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// killAgent kills the first process of a pod's machine.
func killAgent(t *testing.T, s *server, podID string) {
	t.Helper()
	if err := tryKillAgent(s, podID); err != nil {
		t.Fatal(err)
	}
}

func tryKillAgent(s *server, podID string) error {
	found, err := filepath.Glob(filepath.Join(s.state, "sandbox", "*", "hp-*-"+podID[:8]+"-*", "birth.json"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("machines of the pod: %v, %w", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	var birth struct{ PID int }
	if err := json.Unmarshal(text, &birth); err != nil || birth.PID <= 1 {
		return fmt.Errorf("birth record %s: %w", text, err)
	}
	return syscall.Kill(birth.PID, syscall.SIGKILL)
}
