package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/id"
)

// TestVolumesOnS3OutliveTheStore rents pods whose volume lies in an S3 service,
// which is killed in the middle of a final sync and of a restore: both come
// through, nothing is lost, and no pod ever has a credential.
func TestVolumesOnS3OutliveTheStore(t *testing.T) {
	t.Parallel()
	store := blobtest.NewServer(t, false)
	s := newServer(t)
	s.env = append(s.env, "HOMEPORT_S3_ENDPOINT="+store.Endpoint, "HOMEPORT_S3_BUCKET="+store.Bucket, "HOMEPORT_S3_PREFIX=hp",
		"HOMEPORT_S3_KEY_ID="+store.KeyID, "HOMEPORT_S3_SECRET="+store.Secret)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	packs := func() int {
		found, err := filepath.Glob(store.File("hp/v/" + v.ID + "/data/*/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	p := u.rent(u.offer("H100_80GB"), v.ID)
	u.run(p, "head -c 150000000 /dev/urandom > /workspace/one; sha256sum < /workspace/one > /workspace/one.sum; sync")
	if got := u.run(p, "cat /proc/[0-9]*/environ 2>/dev/null; env"); strings.Contains(got, store.Secret) {
		t.Errorf("the pod knows the credential: %s", got)
	}
	if got := u.run(p, "grep -rlsaF "+store.Secret[:8]+"'"+store.Secret[8:]+"' /workspace /root /home /etc /tmp /var /run /opt || true"); got != "" {
		t.Errorf("the credential lies in the pod: %s", got)
	}
	agents := agentsHold(t, store.Secret)
	if agents == 0 {
		t.Error("no agent was found")
	}
	t.Attr("measured", fmt.Sprintf("0 in environment, disk and the memory of %d agents", agents))
	if err := u.DeletePod(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "packs to travel", func() bool { return packs() > 0 })
	store.Kill()
	after := time.NewTimer(3 * time.Second)
	<-after.C
	store.Start()
	u.waitForLong(p.ID, "deleted", 3*time.Minute)
	head := headOf(t, s, v.ID)
	if head == "" {
		t.Fatal("nothing was committed")
	}

	store.Kill() // the restore begins without it
	if p, err = u.createOnce(u.order(u.offer("H100_80GB"), v.ID), id.New().String()); err != nil {
		t.Fatal(err)
	}
	u.waitFor(p.ID, "mounting")
	store.Start()
	after.Reset(150 * time.Millisecond)
	<-after.C
	store.Kill() // and is cut off
	after.Reset(2 * time.Second)
	<-after.C
	store.Start()
	p = u.waitForLong(p.ID, "ready", 3*time.Minute)
	if got := u.run(p, "cd /workspace && sha256sum < one | cmp - one.sum && ls"); got != "one\none.sum\n" {
		t.Errorf("the volume holds %q", got)
	}
	u.end(p.ID)
	if got := headOf(t, s, v.ID); got != head {
		t.Errorf("the head of an unchanged volume moved from %s to %s", head, got)
	}
	if found, _ := filepath.Glob(filepath.Join(s.state, "blobs", "v", "*")); len(found) > 0 {
		t.Errorf("objects lie in the folder: %v", found)
	}
	if got := string(s.command("volume", "damage")); got != "0 damaged objects\n" {
		t.Errorf("damage: %s", got)
	}
	if logs := s.logs.String(); strings.Contains(logs, store.Secret) || strings.Contains(logs, "X-Amz-Signature") {
		t.Error("the logs tell a secret")
	}
	checkNothingLeft(t, s)
}

// agentsHold searches the memory of every agent that runs here for a secret,
// and returns how many there are.
func agentsHold(t *testing.T, secret string) (agents int) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, exe := range found {
		dir := filepath.Dir(exe)
		argv, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(argv, []byte("homeport-agent")) {
			continue
		}
		memory, err := os.Open(filepath.Join(dir, "mem"))
		if err != nil {
			continue // it ended, or belongs to somebody else
		}
		if n := searchMemory(dir, memory, []byte(secret)); n > 0 {
			agents++
		} else if n < 0 {
			t.Errorf("the credential is in the memory of %q", argv)
		}
		_ = memory.Close()
	}
	return agents
}

// searchMemory returns how many bytes it looked at, -1 when the secret is there.
func searchMemory(dir string, memory *os.File, secret []byte) (looked int64) {
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); n != 3 || rights[0] != 'r' || to-from > 1<<30 {
			continue
		}
		part, err := io.ReadAll(io.NewSectionReader(memory, from, to-from))
		if err != nil && len(part) == 0 {
			continue // such as what the kernel shows
		}
		if bytes.Contains(part, secret) {
			return -1
		}
		looked += int64(len(part))
	}
	return looked
}
