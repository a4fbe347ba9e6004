package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/apiclient"
	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/id"
)

// TestAVolumeThatOnlyItsTeamOpens walks a volume with a key of its team's through
// the real thing: a pod writes into it, and locked it is nobody's: the operator's
// commands say so, and a plain restic reads it with the key. Unlocked it goes on
// at another cloud. The node's log has no key.
func TestAVolumeThatOnlyItsTeamOpens(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("restic"); err != nil {
		t.Fatal("restic is not installed: run scripts/need-tools")
	}
	s := newServer(t)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	key := "hpk_" + id.Token()
	call := func(path string, in any) (v apitype.Volume, err error) {
		err = u.Call(t.Context(), http.MethodPost, path, in, &v)
		return v, err
	}
	v, err := call("/volumes", apitype.CreateVolume{TeamID: u.TeamID, Name: "secret", Key: &key})
	if err != nil || !v.TeamKey || v.Locked {
		t.Fatalf("made %+v, %v", v, err)
	}
	one, in := "/volumes/"+v.ID, "?team_id="+u.TeamID
	at := u.offer("H100_80GB")
	p := u.rent(at, v.ID)
	u.run(p, "echo canary > /workspace/canary; sync")
	u.end(p.ID)
	if v, err = call(one+"/lock"+in, nil); err != nil || !v.Locked {
		t.Fatalf("locked, it is %+v, %v", v, err)
	}

	var r struct {
		Repository, Password string
		TeamKey              bool `json:"team_key"`
	}
	if err := json.Unmarshal(s.command("volume", "repository", v.ID, "--json"), &r); err != nil || r.Password != "" || !r.TeamKey {
		t.Errorf("the operator is told %+v, %v", r, err)
	}
	if text := string(s.command("volume", "repository", v.ID)); !strings.Contains(text, "only its team has") {
		t.Errorf("the operator reads %q", text)
	}
	if out, err := s.tries("volume", "cat", v.ID, "canary"); err == nil || !strings.Contains(out, "This volume is locked.") || strings.Contains(out, "canary\n") {
		t.Errorf("the operator reads %q, %v", out, err)
	}
	cmd := exec.CommandContext(t.Context(), "restic", "-q", "--no-cache", "--no-lock", "-r", r.Repository, "dump", "latest", "/workspace/canary")
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+key)
	if out, err := cmd.Output(); err != nil || string(out) != "canary\n" {
		t.Errorf("restic reads %q with the key: %v", out, err)
	}

	order := u.order(u.offer("H100_80GB", at.Provider), v.ID)
	var refused *apiclient.Refusal
	if _, err := u.createOnce(order, id.New().String()); !errors.As(err, &refused) || refused.Code != "volume_locked" {
		t.Errorf("a pod on a locked volume: %v", err)
	}
	if _, err := call(one+"/unlock"+in, apitype.UnlockVolume{Key: "hpk_" + id.Token()}); !errors.As(err, &refused) || refused.Code != "volume_key_wrong" {
		t.Errorf("another key: %v", err)
	}
	if v, err = call(one+"/unlock"+in, apitype.UnlockVolume{Key: key}); err != nil || v.Locked {
		t.Fatalf("unlocked, it is %+v, %v", v, err)
	}
	if out, err := s.tries("volume", "cat", v.ID, "canary"); err != nil || out != "canary\n" {
		t.Errorf("unlocked, the operator reads %q, %v", out, err)
	}
	p = u.rent(u.offer("H100_80GB", at.Provider), v.ID)
	if got := u.run(p, "cat /workspace/canary"); got != "canary\n" {
		t.Errorf("the other cloud has %q", got)
	}
	u.end(p.ID)
	checkNothingLeft(t, s)
	if strings.Contains(s.logs.String(), key[4:]) {
		t.Error("the key is in the log")
	}
}
