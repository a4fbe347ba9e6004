package bootstrap_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
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
	addr *net.TCPAddr

	mu    sync.Mutex
	tries int
	user  string
	ran   string
	stdin []byte
}

// newHost serves SSH to whoever has the key, from the nth try on; its commands
// end with a status.
func newHost(t *testing.T, key ssh.PublicKey, fromTry int, status uint32) *host {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{}
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
	h.addr = l.Addr().(*net.TCPAddr)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { h.serve(conn, cfg, status) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return h
}

func (h *host) serve(conn net.Conn, cfg *ssh.ServerConfig, status uint32) {
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
			_, _ = io.WriteString(ch, "the machine says why")
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			_ = ch.Close()
		}
	}
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
	h := newHost(t, p.Key.PublicKey(), 3, 0)
	m := provider.Machine{Name: "hp-test-00000001-1", Host: "127.0.0.1", SSHPort: h.addr.Port, SSHUser: "ubuntu"}
	if err := p.Push(t.Context(), m, long); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	script, _ := bootstrap.Script(long)
	if h.user != "ubuntu" || h.ran != "sh -s" || string(h.stdin) != script || h.tries != 3 {
		t.Errorf("after %d tries %s ran %q with %d bytes", h.tries, h.user, h.ran, len(h.stdin))
	}
	if line := p.PublicKey(); !strings.HasPrefix(line, "ssh-ed25519 ") || strings.Contains(line, "\n") {
		t.Errorf("the key's line is %q", line)
	}
}

func TestPushThatFailsEndsWithItsCallerAndSaysWhy(t *testing.T) {
	t.Parallel()
	p := pusher(t)
	h := newHost(t, p.Key.PublicKey(), 0, 1)
	m := provider.Machine{Name: "hp-test-00000001-1", Host: "127.0.0.1", SSHPort: h.addr.Port}
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
