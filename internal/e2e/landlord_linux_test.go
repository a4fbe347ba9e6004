package e2e_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider/docker/dockertest"
	"homeport.dev/homeport/internal/provider/prime/primetest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// A landlord runs the machines of all doubles as containers of one engine. In the
// network of each the loopback address of the node leads to the node, as the
// internet would lead to its public address.
type landlord struct {
	t       *testing.T
	engine  *dockertest.Engine
	network string
	gateway netip.Addr
	node    string // its address on this host and, so it seems, on every machine

	work     sync.WaitGroup // of the SSH servers
	mu       sync.Mutex
	machines map[string]*dockertest.Machine // that run, by name
	tokens   map[string]string              // of the agents, by machine
	started  int
	most     int // machines at once
}

func newLandlord(t *testing.T, e *dockertest.Engine) *landlord {
	t.Helper()
	l := &landlord{t: t, engine: e, machines: map[string]*dockertest.Machine{}, tokens: map[string]string{}}
	l.network, l.gateway = e.Network()
	t.Cleanup(l.work.Wait)
	return l
}

// count is how many machines were started, and how many ran at once, at most.
func (l *landlord) count() (started, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started, l.most
}

// token is that of the agent of a machine; "" = none was brought.
func (l *landlord) token(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tokens[name]
}

var tokenLine = regexp.MustCompile(`(?m)^t='([^']+)'$`)

// note reads the token in a payload.
func (l *landlord) note(name, payload string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := tokenLine.FindStringSubmatch(payload); found != nil {
		l.tokens[name] = found[1]
	}
}

// A house is where the machines of one cloud run.
type house struct {
	*landlord
	cloud
}

// Start implements cloudtest.Host.
func (h house) Start(sent cloudtest.Machine) (netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	var first []string
	if h.starts.args != nil {
		first = h.starts.args(sent.Start)
	}
	m, err := h.engine.NewMachine(ctx, sent.Name, h.network, first)
	h.mu.Lock()
	h.machines[sent.Name] = m
	h.started++
	h.most = max(h.most, len(h.machines))
	h.mu.Unlock()
	if err == nil {
		err = m.Lead(h.node, h.node)
	}
	if err == nil {
		err = m.Place(ctx, driver(h.t, h.gpu))
	}
	if err == nil && h.starts.script == nil {
		err = h.letIn(ctx, m, sent)
	}
	if err == nil {
		err = m.Start(ctx)
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	if h.starts.script != nil {
		h.note(sent.Name, h.starts.script(h.t, sent.Start))
	}
	if h.starts.run != nil {
		out, status, err := m.Run(ctx, "", h.starts.run(h.t, sent.Start)...)
		if err != nil || status != 0 {
			return netip.AddrPort{}, fmt.Errorf("what it was sent ended with %d: %w: %s", status, err, out)
		}
	}
	if h.starts.mapped {
		return m.Publish(h.gateway, 22)
	}
	return netip.AddrPortFrom(m.Address, 22), nil
}

// Stop implements cloudtest.Host.
func (h house) Stop(sent cloudtest.Machine) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), time.Minute)
	defer cancel()
	h.mu.Lock()
	m := h.machines[sent.Name]
	h.mu.Unlock()
	if err := m.Remove(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.machines, sent.Name)
	h.mu.Unlock()
	return nil
}

// stops is the program by which a machine ends its own SSH server.
var stops = map[string]string{"/usr/sbin/service": `#!/bin/sh
[ "$*" = 'ssh stop' ] && exec curl -fsS http://127.0.0.1:1022/
`}

// letIn runs the SSH server of a machine's own image: it lets the cloud's user in
// by the key that the machine was made with, runs what is asked on the machine,
// and gives way when it is stopped there.
func (h house) letIn(ctx context.Context, m *dockertest.Machine, sent cloudtest.Machine) error {
	allowed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(sent.Start))
	if err != nil {
		return fmt.Errorf("the key of %s: %w", sent.Name, err)
	}
	own, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize)))
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != primetest.User || string(k.Marshal()) != string(allowed.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(own)
	if err := m.Place(ctx, stops); err != nil {
		return err
	}
	door, err := m.Listen("0.0.0.0:22")
	if err != nil {
		return err
	}
	stop, err := m.Listen("127.0.0.1:1022")
	if err != nil {
		return err
	}
	h.work.Go(func() {
		_ = http.Serve(stop, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { _ = door.Close() })) // until the machine ends
	})
	h.work.Go(func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			h.work.Go(func() { h.serve(m, sent.Name, conn, config) })
		}
	})
	return nil
}

// serve runs what one connection asks for.
func (h house) serve(m *dockertest.Machine, name string, conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	h.work.Go(func() { ssh.DiscardRequests(requests) })
	for one := range channels {
		ch, asked, err := one.Accept()
		if err != nil {
			return
		}
		for req := range asked {
			_ = req.Reply(req.Type == "exec", nil)
			if req.Type != "exec" {
				continue
			}
			input, _ := io.ReadAll(ch)
			h.note(name, string(input))
			out, status, err := m.Run(h.t.Context(), string(input), "/bin/sh", "-c", string(req.Payload[4:]))
			if err != nil {
				h.t.Errorf("what was pushed: %v", err)
			}
			_, _ = io.WriteString(ch, out)
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
			_ = ch.Close()
		}
	}
}
