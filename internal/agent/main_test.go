//go:build linux

package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// agentCommand makes the test binary an agent of its own.
const agentCommand = "agent-of-the-test"

// TestMain also is what the agent runs itself again as.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		var err error
		switch os.Args[1] {
		case ExecCommand:
			err = Exec(os.Args[2:])
		case SFTPCommand:
			err = SFTP()
			if err == nil {
				os.Exit(0)
			}
		case agentCommand:
			err = runAgentProcess()
			if err == nil {
				os.Exit(0)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// processConfig is what an agent of its own process is told.
type processConfig struct{ BaseURL, Token, SSH, StateDir, Workspace, Home string }

func runAgentProcess() error {
	var p processConfig
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	l, err := net.Listen("tcp", p.SSH)
	if err != nil {
		return err
	}
	return Run(context.Background(), Config{
		BaseURL: p.BaseURL, Token: p.Token, SSH: []net.Listener{l}, StateDir: p.StateDir, Workspace: p.Workspace, Home: p.Home,
		Alone: true, Ready: func() { fmt.Println("ready") },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// rig is one agent, its node and a client's keys.
type rig struct {
	t         testing.TB
	node      *node
	dir       string
	workspace string
	home      string
	port      string
	key       string // file of the client's private key
	done      chan error
}

// newRig prepares the folders and a key that may log in.
func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, node: newNode(t), dir: t.TempDir(), done: make(chan error, 1)}
	r.workspace, r.home = filepath.Join(r.dir, "workspace"), filepath.Join(r.dir, "root")
	for _, d := range []string{r.workspace, r.home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var line string
	r.key, line = r.newKey("client")
	r.node.welcome.AuthorizedKeys = []string{line}
	r.node.orders.AuthorizedKeys = []string{line}
	r.node.orders.Notice = r.node.welcome.Notice
	return r
}

// newKey makes a key pair and returns the private key's file and the public line.
func (r *rig) newKey(name string) (string, string) {
	r.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		r.t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		r.t.Fatal(err)
	}
	return path, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// start runs an agent in this process.
func (r *rig) start(change func(c *Config)) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.listening(l.Addr())
	c := Config{
		BaseURL: r.node.server.URL, Token: testToken, SSH: []net.Listener{l},
		StateDir: filepath.Join(r.dir, "state"), Workspace: r.workspace, Home: r.home, Limits: "Nothing is limited.",
		Logger: slog.New(slog.NewTextHandler(testWriter{r.t}, nil)),
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		r.done <- Run(ctx, c)
		close(ended)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// testWriter puts the agent's log into the test's.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// listening notes the port and trusts the pod's host key, and no other.
func (r *rig) listening(addr net.Addr) {
	r.t.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(r.node.welcome.HostKey))
	if err != nil {
		r.t.Fatal(err)
	}
	r.port = strconv.Itoa(addr.(*net.TCPAddr).Port)
	known := "[127.0.0.1]:" + r.port + " " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	if err := os.WriteFile(filepath.Join(r.dir, "known_hosts"), []byte(known), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// process is an agent in a process of its own.
func (r *rig) process() *exec.Cmd {
	r.t.Helper()
	if r.port == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		r.listening(l.Addr())
		l.Close()
	}
	config, err := json.Marshal(processConfig{
		BaseURL: r.node.server.URL, Token: testToken, SSH: "127.0.0.1:" + r.port,
		StateDir: filepath.Join(r.dir, "state"), Workspace: r.workspace, Home: r.home,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(self, agentCommand)
	cmd.Stdin = bytes.NewReader(config)
	cmd.Stderr = testWriter{r.t}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// sshArgs are the arguments of OpenSSH's programs.
func (r *rig) sshArgs() []string {
	return []string{
		"-F", "/dev/null", "-i", r.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + filepath.Join(r.dir, "known_hosts"),
	}
}

// ssh prepares an OpenSSH client.
func (r *rig) ssh(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	r.t.Cleanup(cancel)
	full := append(r.sshArgs(), "-p", r.port)
	return exec.CommandContext(ctx, "ssh", append(full, args...)...)
}

// output runs a command in the pod, which must succeed.
func (r *rig) output(stdin string, args ...string) string {
	r.t.Helper()
	out, code := r.try(stdin, args...)
	if code != 0 {
		r.t.Fatalf("ssh %q ended with %d: %s", args, code, out)
	}
	return out
}

// try runs ssh and returns both its outputs and its exit code.
func (r *rig) try(stdin string, args ...string) (string, int) {
	r.t.Helper()
	cmd := r.ssh(args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

const pod = "root@127.0.0.1"

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
