//go:build linux

package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/agentapi"
)

// served starts an agent and waits until it serves.
func served(t testing.TB) *rig {
	t.Helper()
	r := newRig(t)
	r.start(nil)
	r.node.awaitPhase(agentapi.PhaseServing)
	return r
}

func TestCommandsRunAsWithOpenSSH(t *testing.T) {
	t.Parallel()
	r := served(t)
	tests := []struct {
		name, stdin string
		args        []string
		want        string
		code        int
	}{
		{"output", "", []string{pod, "echo hello"}, "hello\n", 0},
		{"exit status", "", []string{pod, "exit 42"}, "", 42},
		{"stderr", "", []string{pod, "echo no >&2; exit 1"}, "no\n", 1},
		{"home is the working folder", "", []string{pod, "pwd; echo $HOME"}, r.home + "\n" + r.home + "\n", 0},
		{"standard input ends", "one\ntwo\n", []string{pod, "wc -l; echo after"}, "2\nafter\n", 0},
		{"input nobody reads", strings.Repeat("x", 1<<20), []string{pod, "true"}, "", 0},
		{"a signal ends it", "", []string{pod, "kill -TERM $$"}, "", 255},
		{"terminal", "", []string{"-tt", pod, "test -t 0 && tty | cut -d/ -f3"}, "pts\r\n", 0},
		{"terminal status", "", []string{"-tt", pod, "exit 7"}, "", 7},
		{"no newline is rewritten", "", []string{"-tt", pod, `stty -opost; printf 'a\nb'`}, "a\nb", 0},
		{"language passes", "", []string{"-o", "SetEnv=LC_TEST=de", pod, "echo $LC_TEST"}, "de\n", 0},
		{"nothing else passes", "", []string{"-o", "SetEnv=LD_PRELOAD=/x.so BASH_ENV=/x", pod, "echo .$LD_PRELOAD$BASH_ENV."}, "..\n", 0},
		{"nothing of the agent's environment", "", []string{pod, "env | grep -c GO"}, "0\n", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, code := r.try(tt.stdin, tt.args...)
			if out != tt.want || code != tt.code {
				t.Errorf("got %q, %d; want %q, %d", out, code, tt.want, tt.code)
			}
		})
	}
}

func TestALoginShellGreets(t *testing.T) {
	t.Parallel()
	r := served(t)
	out := r.output("shopt -q login_shell && echo login=$0; exit\n", "-tt", pod)
	for _, want := range []string{"GPUs are simulated.\r\nNothing is limited.\r\n", "login=-bash"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
}

func TestBigStreamsPassWhole(t *testing.T) {
	t.Parallel()
	r := served(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	cmd := r.ssh(pod, "cat")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil || !bytes.Equal(out, data) {
		t.Errorf("%d of %d bytes came back: %v", len(out), len(data), err)
	}
}

func TestCopiesByBothProtocols(t *testing.T) {
	t.Parallel()
	r := served(t)
	local := filepath.Join(r.dir, "local")
	if err := os.WriteFile(local, bytes.Repeat([]byte("x"), 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, protocol := range map[string]string{"sftp": "-s", "scp": "-O"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, down := filepath.Join(r.workspace, name), local+name
			for _, pair := range [][2]string{{local, pod + ":" + up}, {pod + ":" + up, down}} {
				args := append(r.sshArgs(), protocol, "-p", "-P", r.port, pair[0], pair[1])
				if out, err := exec.CommandContext(t.Context(), "scp", args...).CombinedOutput(); err != nil {
					t.Fatalf("scp: %v: %s", err, out)
				}
			}
			want, _ := os.ReadFile(local)
			got, err := os.ReadFile(down)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes came back: %v", len(got), len(want), err)
			}
		})
	}
}

func TestSFTPStartsInHomeAndKeepsSpecialBits(t *testing.T) {
	t.Parallel()
	r := served(t)
	local := filepath.Join(r.dir, "tool")
	if err := os.WriteFile(local, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	batch := "pwd\nput " + local + " tool\nchmod 4755 tool\nln -s tool link\nrename tool tool2\nls -l\n"
	cmd := exec.CommandContext(t.Context(), "sftp", append(r.sshArgs(), "-P", r.port, "-b", "-", pod)...)
	cmd.Stdin = strings.NewReader(batch)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sftp: %v: %s", err, out)
	}
	if !strings.Contains(string(out), "Remote working directory: "+r.home) {
		t.Errorf("sftp does not start in %s: %s", r.home, out)
	}
	info, err := os.Stat(filepath.Join(r.home, "tool2"))
	if err != nil || info.Mode()&os.ModeSetuid == 0 {
		t.Errorf("the setuid bit is gone: %v %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(r.home, "link")); err != nil || target != "tool" {
		t.Errorf("link: %q %v", target, err)
	}
}

func TestUsersLackWhatContainersLack(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has something to give up")
	}
	r := served(t)
	out := r.output("", pod, "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Umask)' /proc/self/status")
	for _, line := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t00000000a80425fb", "CapBnd:\t00000000a80425fb",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Umask:\t0022",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if out, code := r.try("", pod, "mount -t tmpfs none "+r.home); code == 0 {
		t.Errorf("a user could mount: %s", out)
	}
	r.output("", pod, "touch f && chown 12:34 f && chmod 6755 f && test -u f -a -g f")
}
