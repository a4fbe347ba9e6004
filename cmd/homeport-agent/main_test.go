//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheAgentLinksNothingOfTheControlPlane(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "homeport.dev/homeport/internal/agent") {
		t.Fatal("the list does not even hold the agent")
	}
	for _, dep := range deps {
		for _, banned := range []string{"pgx", "huma", "minio", "aws", "river", "stripe", "homeport/internal/pg", "homeport/internal/app"} {
			if strings.Contains(dep, banned) {
				t.Errorf("the agent links %s", dep)
			}
		}
	}
}

func TestOptionsTakeTheTokenFromFileOrInputOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "HOMEPORT_AGENT_URL=https://control.example/"
	tests := []struct {
		name    string
		environ []string
		stdin   string
		token   string
		ok      bool
	}{
		{"input", []string{url}, " from-input \n", "from-input", true},
		{"file", []string{url, "HOMEPORT_AGENT_TOKEN_FILE=" + file}, "ignored", "from-file", true},
		{"no token", []string{url}, "\n", "", false},
		{"not from the environment", []string{url, "HOMEPORT_AGENT_TOKEN=x"}, "", "", false},
		{"no file", []string{url, "HOMEPORT_AGENT_TOKEN_FILE=" + file + "x"}, "x", "", false},
		{"no address", nil, "x", "", false},
	}
	for _, tt := range tests {
		o, err := readOptions(tt.environ, strings.NewReader(tt.stdin))
		if (err == nil) != tt.ok || tt.ok && o.token != tt.token {
			t.Errorf("%s: %q, %v", tt.name, o.token, err)
		}
	}
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"serve"}, {"exec"}} {
		if err := dispatch(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
