package bootstrap_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
)

// host is the SSH server of a new machine.
type host struct {
	addr   *net.TCPAddr
	l      net.Listener
	answer func(h *host, conn net.Conn, ch ssh.Channel) // to a command that was read

	mu    sync.Mutex
	tries int
	user  string
	ran   string
	stdin []byte
}

// ends has commands end with a status.
func ends(status uint32) func(*host, net.Conn, ssh.Channel) {
	return func(_ *host, _ net.Conn, ch ssh.Channel) {
		_, _ = io.WriteString(ch, "the machine says why")
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		_ = ch.Close()
	}
}

// newHost serves SSH to whoever has the key, from the nth try on.
func newHost(t *testing.T, key ssh.PublicKey, fromTry int, answer func(*host, net.Conn, ssh.Channel)) *host {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{answer: answer}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.tries < fromTry || !bytes.Equal(k.Marshal(), key.Marshal()) {
			return nil, errors.New("not yet")
		}
		h.user = c.User()
		return nil, nil
	}}
	cfg.AddHostKey(own)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.l, h.addr = l, l.Addr().(*net.TCPAddr)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { h.serve(conn, cfg) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return h
}

func (h *host) serve(conn net.Conn, cfg *ssh.ServerConfig) {
	defer conn.Close()
	h.mu.Lock()
	h.tries++
	h.mu.Unlock()
	_, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for next := range channels {
		ch, in, err := next.Accept()
		if err != nil {
			return
		}
		for req := range in {
			_ = req.Reply(req.Type == "exec", nil)
			if req.Type != "exec" {
				continue
			}
			stdin, _ := io.ReadAll(ch)
			h.mu.Lock()
			h.ran, h.stdin = string(req.Payload[4:]), stdin
			h.mu.Unlock()
			h.answer(h, conn, ch)
		}
	}
}

// machine is where the host is.
func (h *host) machine() provider.Machine {
	return provider.Machine{Name: "hp-test-00000001-1", Host: "127.0.0.1", SSHPort: h.addr.Port}
}

func pusher(t *testing.T) bootstrap.Pusher {
	t.Helper()
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return bootstrap.Pusher{Key: key, Every: 20 * time.Millisecond}
}

func TestPushTriesUntilTheMachineTakesTheKey(t *testing.T) {
	t.Parallel()
	p := pusher(t)
	h := newHost(t, p.Key.PublicKey(), 3, ends(0))
	m := h.machine()
	m.SSHUser = "ubuntu"
	if err := p.Push(t.Context(), m, long); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	script, _ := bootstrap.Script(long)
	if h.user != "ubuntu" || !strings.Contains(h.ran, "sh -s") || string(h.stdin) != script || h.tries != 3 {
		t.Errorf("after %d tries %s ran %q with %d bytes", h.tries, h.user, h.ran, len(h.stdin))
	}
	if line := p.PublicKey(); !strings.HasPrefix(line, "ssh-ed25519 ") || strings.Contains(line, "\n") {
		t.Errorf("the key's line is %q", line)
	}
}

func TestPushThatFailsEndsWithItsCallerAndSaysWhy(t *testing.T) {
	t.Parallel()
	p := pusher(t)
	h := newHost(t, p.Key.PublicKey(), 0, ends(1))
	m := h.machine()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := p.Push(ctx, m, long)
	if err == nil || !strings.Contains(err.Error(), "the machine says why") || strings.Contains(err.Error(), long.Token) {
		t.Errorf("push: %v", err)
	}
	m.Host = ""
	if err := p.Push(t.Context(), m, long); err == nil {
		t.Error("a machine without an address was pushed to")
	}
}

// TestPushTellsWhetherItsPayloadMayRun: a caller takes a token back only when
// nothing on the machine has it.
func TestPushTellsWhetherItsPayloadMayRun(t *testing.T) {
	t.Parallel()
	const never = 1000
	for name, one := range map[string]struct {
		fromTry int
		answer  func(h *host, conn net.Conn, ch ssh.Channel)
		gone    bool // nothing listens
		may     bool
	}{
		"nothing listens":     {gone: true},
		"the key is not good": {fromTry: never},
		"it failed":           {answer: ends(1), may: true},
		"it failed, and then nothing listens": {answer: func(h *host, conn net.Conn, ch ssh.Channel) {
			_ = h.l.Close()
			ends(1)(h, conn, ch)
		}, may: true},
		"the caller is tired of it": {answer: func(*host, net.Conn, ssh.Channel) {}, may: true},
	} {
		p := pusher(t)
		h := newHost(t, p.Key.PublicKey(), one.fromTry, one.answer)
		if one.gone {
			_ = h.l.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := p.Push(ctx, h.machine(), long); err == nil || errors.Is(err, provider.ErrNotLetIn) == one.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPushLeavesAPayloadAloneThatMayRun: no second one is started beside it.
func TestPushLeavesAPayloadAloneThatMayRun(t *testing.T) {
	t.Parallel()
	p := pusher(t)
	h := newHost(t, p.Key.PublicKey(), 0, func(_ *host, conn net.Conn, _ ssh.Channel) { _ = conn.Close() })
	if err := p.Push(t.Context(), h.machine(), long); err == nil || errors.Is(err, provider.ErrNotLetIn) {
		t.Errorf("a connection that broke: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tries != 1 {
		t.Errorf("the payload was started %d times", h.tries)
	}
}

// TestPushedPayloadEndsWithAllItStarted runs the command of a push for real, as
// a user who has sudo, with an installer that hangs and nobody who waits for it.
func TestPushedPayloadEndsWithAllItStarted(t *testing.T) {
	t.Parallel()
	p := pusher(t)
	h := newHost(t, p.Key.PublicKey(), 0, ends(0))
	if err := p.Push(t.Context(), h.machine(), long); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	for _, name := range []string{"timeout", "sleep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		programs[name] = path
	}
	dir := t.TempDir()
	tools(t, dir, "true", map[string]string{
		"id":      "#!/bin/sh\necho ${ROOT-1000}\n",
		"sudo":    "#!/bin/sh\necho sudo $1 $2 >" + dir + "/log\nshift\nROOT=0\nexport ROOT\nexec \"$@\"\n",
		"timeout": "#!/bin/sh\necho $1 $2 $3 >>" + dir + "/log\nshift 3\nexec " + programs["timeout"] + " -k 1 1 \"$@\"\n",
		"curl":    "#!/bin/sh\nprintf 'echo installs; " + programs["sleep"] + " 600\n# end'\n",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h.mu.Lock()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.ran)
	cmd.Stdin = bytes.NewReader(h.stdin)
	h.mu.Unlock()
	cmd.Env = []string{"PATH=" + dir}
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput() // until nobody holds its end of the pipe
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 124 || string(said) != "installs\n" {
		t.Errorf("the payload ended with %v and said %q", err, said)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	if want := fmt.Sprintf("sudo -n timeout\n-k 5 %d\n", int(provider.PushLives.Seconds())-5); string(log) != want {
		t.Errorf("it ran under %q, want %q", log, want)
	}
}
