//go:build linux

package agent

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/agentapi"
)

// dial opens a connection with Go's client, as a probe would.
func (r *rig) dial(keyFile string) (*ssh.Client, error) {
	r.t.Helper()
	b, err := os.ReadFile(keyFile)
	if err != nil {
		r.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err != nil {
		r.t.Fatal(err)
	}
	host, err := ssh.ParsePrivateKey([]byte(r.node.welcome.HostKey))
	if err != nil {
		r.t.Fatal(err)
	}
	return ssh.Dial("tcp", "127.0.0.1:"+r.port, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(host.PublicKey()),
	})
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger, _ := r.newKey("stranger")
	r.start(nil)
	r.node.awaitPhase(agentapi.PhaseServing)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"another key", []string{"-i", stranger, "-o", "IdentityFile=none", pod, "true"}, "Permission denied (publickey)"},
		{"another user", []string{"nobody@127.0.0.1", "true"}, "Permission denied (publickey)"},
		{"a password", []string{"-o", "PubkeyAuthentication=no", pod, "true"}, "Permission denied (publickey)"},
		{"another subsystem", []string{"-s", pod, "netconf"}, "subsystem request failed"},
		{"a tunnel device", []string{"-w", "0:0", "-o", "ExitOnForwardFailure=yes", pod, "true"}, "unnel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			cmd := r.ssh(args...)
			if tt.name == "another key" {
				other := *r
				other.key = stranger
				cmd = other.ssh(pod, "true")
			}
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %q, %v; want %q", out, err, tt.want)
			}
		})
	}
}

func TestProbeKeyAuthenticatesButGetsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	probe, line := r.newKey("probe")
	r.node.welcome.ProbeKey = line
	r.start(nil)
	r.node.awaitPhase(agentapi.PhaseServing)
	c, err := r.dial(probe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.NewSession(); err == nil {
		t.Error("the probe got a session")
	}
	if _, err := c.Dial("tcp", "127.0.0.1:"+r.port); err == nil {
		t.Error("the probe got a forward")
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the probe got a listener")
	}
}

func TestNoLoginBeforeTheRestoreIsWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.node.refuse[agentapi.PathHello], r.node.code = 503, "starting"
	r.start(nil)
	conn, err := net.Dial("tcp", "127.0.0.1:"+r.port) // the socket itself is there
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	banner := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		banner <- line
	}()
	r.node.update(func() {
		if r.node.restored != 0 {
			t.Error("restored without a hello")
		}
		select {
		case line := <-banner:
			t.Errorf("the server answered %q before the restore", line)
		default:
		}
		delete(r.node.refuse, agentapi.PathHello)
	})
	if line := <-banner; !strings.HasPrefix(line, "SSH-2.0-Homeport") {
		t.Errorf("banner %q", line)
	}
}

func TestARemovedKeyEndsItsSessionsAndComesIn(t *testing.T) {
	t.Parallel()
	r := served(t)
	cmd := r.ssh(pod, "echo in; read forever")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "in\n" {
		t.Fatalf("%q %v", line, err)
	}
	other, line := r.newKey("other")
	r.node.order(func(o *agentapi.Orders) { o.AuthorizedKeys = []string{line} })
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 255 { // which is ssh's own: the connection ended
		t.Errorf("the session of the removed key went on, until %v", cmd.ProcessState)
	}
	if c, err := r.dial(r.key); err == nil {
		_ = c.Close()
		t.Error("the removed key still logs in")
	}
	c, err := r.dial(other)
	if err != nil {
		t.Fatalf("the added key does not log in: %v", err)
	}
	_ = c.Close()
}

// echoServer answers each connection with what it sent, once it stopped sending.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b, _ := io.ReadAll(c)
				_, _ = c.Write(b)
			}()
		}
	}()
	return l.Addr().String()
}

func TestLocalForwardsHalfClose(t *testing.T) {
	t.Parallel()
	r := served(t)
	if got := r.output("there and back", "-W", echoServer(t), pod); got != "there and back" {
		t.Errorf("got %q", got)
	}
	if out, code := r.try("", "-W", "127.0.0.1:1", pod); code != 255 {
		t.Errorf("a closed port gave %q, %d", out, code)
	}
}

func TestRemoteForwardsListenOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	r := served(t)
	c, err := r.dial(r.key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	l, err := c.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		in, err := l.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		b, _ := io.ReadAll(in)
		_, _ = in.Write(append(b, "!"...))
	}()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("hello"))
	_ = conn.(*net.TCPConn).CloseWrite()
	if got := readAll(t, conn); got != "hello!" {
		t.Errorf("got %q", got)
	}
	if err := exec.Command("sh", "-c", "grep -qi '^ *[0-9]*: 00000000:'$(printf %04X "+port+") /proc/net/tcp").Run(); err == nil {
		t.Error("the forward listens on every address")
	}
	if err := l.Close(); err != nil {
		t.Errorf("cancel: %v", err)
	}
	awaitRefused(t, "127.0.0.1:"+port)
}

// awaitRefused waits until nobody listens on addr any more.
func awaitRefused(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
		if sleep(ctx, killPoll) != nil {
			t.Fatalf("%s still listens", addr)
		}
	}
}

func TestAHangUpEndsTheTerminalsProcesses(t *testing.T) {
	t.Parallel()
	r := served(t)
	gone := filepath.Join(r.home, "gone")
	cmd := r.ssh("-tt", pod, "trap 'echo hup > "+gone+"; exit' HUP; echo in; while :; do read x; done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "in\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	awaitFile(t, gone)
}

// An installer without an init starts the agent in the background, where a shell
// takes Ctrl-C from it and nohup hang-ups. Signals are a process's, so the test
// has one of its own.
func TestShellsHaveTheirSignalsWhereTheAgentHasNone(t *testing.T) {
	t.Parallel()
	const deaf = "HOMEPORT_TEST_DEAF"
	if os.Getenv(deaf) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", `trap '' HUP INT; exec "$0" -test.run="^$1$"`, self, t.Name())
		cmd.Env = append(os.Environ(), deaf+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if !signal.Ignored(syscall.SIGHUP) {
		t.Fatal("this process hears of hang-ups")
	}
	r := served(t)
	for _, sig := range []string{"HUP", "INT"} {
		if got := r.output("", pod, "trap 'echo heard; exit' "+sig+"; kill -"+sig+" $$; echo deaf"); got != "heard\n" {
			t.Errorf("a shell that was sent %s says %q", sig, got)
		}
	}
}

func TestABackgroundProcessDoesNotHoldATerminal(t *testing.T) {
	t.Parallel()
	r := served(t)
	if got := r.output("", "-tt", pod, "trap '' HUP; sleep 300 & echo done"); got != "done\r\n" {
		t.Errorf("got %q", got)
	}
}

// awaitFile waits until a file is there and not empty.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
		if sleep(ctx, killPoll) != nil {
			t.Fatalf("%s did not appear", path)
		}
	}
}

func TestANewNoticeReachesOpenTerminals(t *testing.T) {
	t.Parallel()
	r := served(t)
	cmd := r.ssh("-tt", pod, "echo in; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "in\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	r.node.order(func(o *agentapi.Orders) { o.Notice += "\nThe balance lasts 15 minutes." })
	for _, want := range []string{"\r\n", "The balance lasts 15 minutes.\r\n"} {
		if line, err := out.ReadString('\n'); line != want {
			t.Fatalf("%q %v", line, err)
		}
	}
	_, _ = io.WriteString(in, "\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
