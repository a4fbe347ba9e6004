package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider/docker"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDescriptionIsRead(t *testing.T) {
	t.Parallel()
	got, err := docker.Read(write(t, `{"hosts": [
		{"name": "attic", "engine": "unix:///run/docker.sock", "country": "germany", "image": "pods/base", "prices": {"RTX4090_24GB": "0.35"}},
		{"name": "cellar", "engine": "ssh://lend@192.0.2.9:2222/run/user/1000/docker.sock", "ssh_key": "/k", "ssh_known_hosts": "/h", "country": "FR",
		 "data_center": "lyon-1", "secure": true, "image": "pods/base@sha256:00", "pull": true, "disk_gb": 200, "disk_quota": true,
		 "prices": {"A100_80GB": "1.10"}, "gpus": [{"type": "A100_80GB", "socket": "SXM4", "ids": ["0", "1"]}]}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []docker.Host{
		{
			Name: "attic", Engine: "unix:///run/docker.sock", Country: "DE", DataCenter: "attic", Image: "pods/base", DiskGB: 50,
			Prices: map[string]string{"RTX4090_24GB": "0.35"},
		},
		{
			Name: "cellar", Engine: "ssh://lend@192.0.2.9:2222/run/user/1000/docker.sock", SSHKey: "/k", SSHKnown: "/h", Country: "FR",
			DataCenter: "lyon-1", Secure: true, Image: "pods/base@sha256:00", Pull: true, DiskGB: 200, DiskQuota: true,
			Prices: map[string]string{"A100_80GB": "1.10"}, GPUs: []docker.Devices{{Type: "A100_80GB", Socket: "SXM4", IDs: []string{"0", "1"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMistakesInADescriptionAreNamed: one row per mistake, changed in a
// description that is right.
func TestMistakesInADescriptionAreNamed(t *testing.T) {
	t.Parallel()
	const right = `{"hosts": [{"name": "attic", "engine": "unix:///run/docker.sock", "country": "DE", "image": "pods/base", "prices": {"L4_24GB": "0.2"}}]}`
	for _, c := range []struct{ old, with, want string }{
		{`"attic"`, `"At tic"`, "the name is not"},
		{`"DE"`, `"Atlantis"`, `country "Atlantis" is not known`},
		{`"pods/base"`, `""`, "not the name of an image"},
		{`"L4_24GB"`, `"L4"`, `no GPU type "L4"`},
		{`"0.2"`, `"0"`, "not a price"},
		{`"0.2"`, `"-1"`, "not a price"},
		{`"0.2"`, `"1,50"`, "not a price"},
		{`{"L4_24GB": "0.2"}`, `{}`, "prices are needed"},
		{`unix:///run/docker.sock`, `/run/docker.sock`, "none of unix://, ssh:// and tcp://"},
		{`unix:///run/docker.sock`, `tcp://192.0.2.1:2375`, "who reaches it is root there"},
		{`unix:///run/docker.sock`, `tcp://192.0.2.1`, "needs tcp://host:port"},
		{`unix:///run/docker.sock`, `ssh://192.0.2.1`, "ssh needs"},
		{`unix:///run/docker.sock`, `ssh://me:secret@192.0.2.1`, "a password is not taken"},
		{`"image"`, `"pull": "yes", "image"`, "not a list of engines"},
		{`"image"`, `"imagine": 1, "image"`, "not a list of engines"},
		{`"image"`, `"network": "host", "image"`, "a network of their own"},
		{`"image"`, `"network": "a b", "image"`, "not one word"},
		{`"image"`, `"disk_gb": -1, "image"`, "disk_gb"},
		{`"image"`, `"address": "http://here", "image"`, "is no address"},
		{`"image"`, `"agent_url": "https://h/path", "image"`, "agent_url"},
		{`"image"`, `"agent_url": "homeport", "image"`, "agent_url"},
		{`"image"`, `"gpus": [{"type": "L4_24GB"}], "image"`, "needs ids"},
		{`"image"`, `"gpus": [{"type": "L4_24GB", "ids": ["0", "0"]}], "image"`, "there twice"},
		{`"image"`, `"gpus": [{"type": "L4_24GB", "ids": ["0,1"]}], "image"`, "is no id"},
		{`"image"`, `"gpus": [{"type": "L4_24GB", "ids": ["0"], "socket": "AGP"}], "image"`, "no socket"},
		{`"image"`, `"simulate": [{"type": "L4_24GB"}], "image"`, "needs a count"},
		{`"image"`, `"simulate": [{"type": "L4_24GB", "count": 65}], "image"`, "more than 64"},
		{`"image"`, `"simulate": [{"type": "L4_24GB", "count": 1}], "gpus": [{"type": "L4_24GB", "ids": ["0"]}], "image"`, "exclude each other"},
		{`{"name": "attic"`, `{"name": "attic"}, {"name": "attic"`, `two hosts are named "attic"`},
		{right, `{"hosts": []}`, "names no host"},
		{right, `{}`, "names no host"},
		{right, `hosts`, "not a list of engines"},
	} {
		if !strings.Contains(right, c.old) {
			t.Fatalf("%q is not in the description", c.old)
		}
		_, err := docker.Read(write(t, strings.Replace(right, c.old, c.with, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %s: %v, want %q", c.with, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the mistake shows a password: %v", err)
		}
	}
	if _, err := docker.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
