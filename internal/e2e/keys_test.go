package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/fail"
)

// A masterKey is one as `homeport keys list --json` tells of it.
type masterKey struct {
	ID, State string
	Values    int64
}

func masterKeys(t *testing.T, s *server) []masterKey {
	t.Helper()
	var list struct{ Keys []masterKey }
	if err := json.Unmarshal(s.command("keys", "list", "--json"), &list); err != nil {
		t.Fatal(err)
	}
	return list.Keys
}

// killed runs an operator's command that dies at a failpoint, and returns what
// it said.
func (s *server) killed(failpoint string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "homeport"), args...)
	cmd.Env = append(append(bintest.Environ(), s.env...), "HOMEPORT_FAILPOINT="+failpoint)
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.t.Errorf("homeport %s did not die at %s: %v\n%s", strings.Join(args, " "), failpoint, err, out)
	}
	return string(out)
}

// TestMasterKeyIsRotatedUnderAPodAndTwoNodes kills the operator's commands at
// each of their failpoints and runs them again, while a pod syncs, people sign
// in and volumes are made on two nodes, none of which is started again. Then the
// old key is gone, and everything opens: the pod's files on another cloud, and
// the repository by a plain restic.
func TestMasterKeyIsRotatedUnderAPodAndTwoNodes(t *testing.T) {
	t.Parallel()
	a := newServer(t)
	a.start()
	b := a.peer()
	b.start()
	u := a.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	at := u.offer("H100_80GB")
	p := u.rent(at, v.ID)
	u.run(p, "echo before > /workspace/before; sync")
	first := masterKeys(t, a)
	if len(first) != 1 || first[0].State != "current" || first[0].Values == 0 {
		t.Fatalf("the keys are %v", first)
	}
	secrets := []string{readKeys(t, a)}

	said := ""
	busy(t, a, b, func() {
		for _, name := range fail.Names {
			if strings.HasPrefix(name, "keys.") && !strings.HasPrefix(name, "keys.retired.") {
				said += a.killed(name, "keys", "rotate")
			}
		}
		said += string(a.command("keys", "rotate"))
	})
	u.run(p, "echo meanwhile > /workspace/meanwhile; sync")
	keys := masterKeys(t, a)
	if len(keys) != 2 || keys[0].State != "old" || keys[0].Values != 0 || keys[1].State != "current" || keys[1].Values <= first[0].Values {
		t.Fatalf("the keys are %v", keys)
	}
	for _, name := range fail.Names {
		if strings.HasPrefix(name, "keys.retired.") {
			said += a.killed(name, "keys", "retire", keys[0].ID)
		}
	}
	secrets = append(secrets, strings.Fields(readKeys(t, a))...)
	said += string(a.command("keys", "retire", keys[0].ID))
	if left := strings.Fields(readKeys(t, a)); len(left) != 1 || left[0] == strings.TrimSpace(secrets[0]) {
		t.Errorf("%d keys are in the file, or the old one", len(left))
	}
	if keys = masterKeys(t, a); keys[0].State != "retired" || keys[1].State != "current" {
		t.Errorf("the keys are %v", keys)
	}
	for _, secret := range secrets {
		if said += a.logs.String() + b.logs.String(); strings.Contains(said, strings.TrimSpace(secret)) {
			t.Error("a key is in a log, or was printed")
		}
	}

	u.run(p, "echo after > /workspace/after; sync")
	u.end(p.ID)
	b.end(syscall.SIGTERM)
	b.start()
	other := u.on(b)
	p2 := other.rent(other.offer("H100_80GB", at.Provider), v.ID)
	if got := other.run(p2, "cd /workspace && cat before meanwhile after"); got != "before\nmeanwhile\nafter\n" {
		t.Errorf("the other cloud has %q", got)
	}
	other.end(p2.ID)
	resticReads(t, a, v.ID)
	checkNothingLeft(t, a)
}

// busy keeps two nodes at work while fn runs: people sign in and rent pods with
// new volumes.
func busy(t *testing.T, a, b *server, fn func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, s := range []*server{a, b} {
		wg.Go(func() {
			for {
				u := s.signIn()
				u.addKey()
				v := steady(t, func() (apitype.Volume, error) { return u.CreateVolume(t.Context(), "new") })
				u.pay("25")
				p := u.rent(u.offer("H100_80GB"), v.ID)
				u.run(p, "echo new > /workspace/new; sync")
				u.end(p.ID)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	fn()
	close(done)
	wg.Wait()
}

func readKeys(t *testing.T, s *server) string {
	t.Helper()
	path := filepath.Join(s.state, "master.key")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info.Mode(), err)
	}
	return string(text)
}

// resticReads opens a volume's repository as whoever leaves does.
func resticReads(t *testing.T, s *server, volumeID string) {
	t.Helper()
	if _, err := exec.LookPath("restic"); err != nil {
		t.Skip("restic is not installed")
	}
	var r struct{ Repository, Password string }
	if err := json.Unmarshal(s.command("volume", "repository", volumeID, "--json"), &r); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "restic", "-q", "--no-cache", "--no-lock", "-r", r.Repository, "dump", "latest", "/workspace/after")
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+r.Password)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || string(out) != "after\n" {
		t.Errorf("restic reads %q: %v\n%s", out, err, errs.String())
	}
}
