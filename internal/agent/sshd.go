//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Limits of the SSH server.
const (
	loginGrace     = 60 * time.Second // from the connection to a proven key
	maxAuthTries   = 6                // as OpenSSH's
	maxStarting    = 64               // connections without a proven key, at a time
	maxChannels    = 128              // sessions and forwards of one connection
	keepaliveEvery = 30 * time.Second
	keepaliveMiss  = 4 // silent rounds after which a connection is dead
)

const (
	extRight = "right" // Permissions extension: what the proven key may do
	extKey   = "key"   // its wire form
)

// errKeyRefused occurs for keys that may not log in, and for users other than root.
var errKeyRefused = errors.New("this key may not log in")

// sshServer lets people in. It serves once, on the listeners it was given.
type sshServer struct {
	keys   *keyring
	procs  *table
	home   string
	motd   func() string
	log    *slog.Logger
	config *ssh.ServerConfig
	slots  chan struct{} // connections without a proven key

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*sshConn]struct{}
	terminals map[*session]struct{} // sessions on a terminal
	closed    bool
	wg        sync.WaitGroup
}

// sshConn is one connection whose key is proven.
type sshConn struct {
	*ssh.ServerConn
	server   *sshServer
	key      string // wire form
	forwards forwards
	channels chan struct{} // slots
}

func newSSHServer(hostKey []byte, keys *keyring, procs *table, home string, motd func() string, log *slog.Logger) (*sshServer, error) {
	signer, err := ssh.ParsePrivateKey(hostKey)
	if err != nil {
		return nil, errors.New("the host key cannot be read") // the cause could quote the key
	}
	s := &sshServer{
		keys: keys, procs: procs, home: home, motd: motd, log: log,
		slots: make(chan struct{}, maxStarting), conns: map[*sshConn]struct{}{}, terminals: map[*session]struct{}{},
	}
	s.config = &ssh.ServerConfig{
		MaxAuthTries:      maxAuthTries,
		ServerVersion:     "SSH-2.0-Homeport",
		PublicKeyCallback: s.authenticate,
	}
	s.config.AddHostKey(signer)
	return s, nil
}

// authenticate is asked before the client has proven anything.
func (s *sshServer) authenticate(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if meta.User() != "root" {
		return nil, errKeyRefused
	}
	wire := string(key.Marshal())
	switch s.keys.rights(wire) {
	case rightLogin:
		return &ssh.Permissions{Extensions: map[string]string{extRight: "login", extKey: wire}}, nil
	case rightProbe:
		return &ssh.Permissions{Extensions: map[string]string{extRight: "probe", extKey: wire}}, nil
	default:
		return nil, errKeyRefused
	}
}

// serve accepts connections from now on. It may be called once.
func (s *sshServer) serve(ctx context.Context, listeners []net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.listeners = listeners
	for _, l := range listeners {
		s.wg.Go(func() { s.accept(ctx, l) })
	}
}

func (s *sshServer) accept(ctx context.Context, l net.Listener) {
	wait := newBackoff(5*time.Millisecond, time.Second, l.Addr().String())
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			if conn != nil {
				conn.Close()
			}
			return
		}
		if err != nil { // out of files, or aborted by the client
			s.log.Warn("accept an ssh connection", "error", err)
			if wait.sleep(ctx) != nil {
				return
			}
			continue
		}
		wait.reset()
		select {
		case s.slots <- struct{}{}:
			s.wg.Go(func() { s.handle(ctx, conn) })
		default:
			conn.Close()
		}
	}
}

// handle takes a connection from its first byte to its end.
func (s *sshServer) handle(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	conn, channels, requests, err := s.handshake(ctx, raw)
	<-s.slots
	if err != nil {
		s.log.Debug("ssh handshake", "error", err)
		return
	}
	if !s.track(conn) {
		return
	}
	defer s.untrack(conn)
	defer conn.forwards.closeAll()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { conn.keepAlive(ctx) })
	wg.Go(func() { conn.answer(ctx, requests) })
	for c := range channels {
		conn.open(ctx, &wg, c)
	}
	cancel()
}

// handshake ends when a key is proven or loginGrace is over.
func (s *sshServer) handshake(ctx context.Context, raw net.Conn) (*sshConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	timer := time.AfterFunc(loginGrace, func() { raw.Close() })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c, channels, requests, err := ssh.NewServerConn(raw, s.config)
	stop()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("with %s: %w", raw.RemoteAddr(), err)
	}
	conn := &sshConn{ServerConn: c, server: s, key: c.Permissions.Extensions[extKey], channels: make(chan struct{}, maxChannels)}
	return conn, channels, requests, nil
}

// track adds a connection, unless the server closed or the key was removed
// since it was proven.
func (s *sshServer) track(c *sshConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.keys.rights(c.key) == rightNone {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *sshServer) untrack(c *sshConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// recheck closes the connections whose key may not log in any more.
func (s *sshServer) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if s.keys.rights(c.key) == rightNone {
			_ = c.Close()
		}
	}
}

// shut ends the listeners and every connection. It may be called twice.
func (s *sshServer) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
}

// close shuts the server and waits for all it serves.
func (s *sshServer) close() {
	s.shut()
	s.wg.Wait()
}

// announce writes text on every terminal, as far as their clients read.
func (s *sshServer) announce(text string) {
	text = terminalText(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for t := range s.terminals {
		s.wg.Go(func() { _, _ = t.ch.Write([]byte("\r\n" + text)) }) // ends with the connection at the latest
	}
}

// onTerminal notes that a session has a terminal, or none any more.
func (s *sshServer) onTerminal(t *session, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.terminals, t)
	if has {
		s.terminals[t] = struct{}{}
	}
}

// mayOpen reports whether the connection's key may do more than authenticate.
func (c *sshConn) mayOpen() bool { return c.server.keys.rights(c.key) == rightLogin }

// open gives a channel to its handler.
func (c *sshConn) open(ctx context.Context, wg *sync.WaitGroup, nc ssh.NewChannel) {
	if !c.mayOpen() {
		_ = nc.Reject(ssh.Prohibited, "this key gets no session")
		return
	}
	var handler func(context.Context, ssh.NewChannel)
	switch nc.ChannelType() {
	case "session":
		handler = c.session
	case "direct-tcpip":
		handler = c.dialForward
	default:
		_ = nc.Reject(ssh.UnknownChannelType, "this channel type is not served")
		return
	}
	select {
	case c.channels <- struct{}{}:
	default:
		_ = nc.Reject(ssh.ResourceShortage, "too many channels on this connection")
		return
	}
	wg.Go(func() {
		defer func() { <-c.channels }()
		handler(ctx, nc)
	})
}

// answer serves the requests that belong to no channel.
func (c *sshConn) answer(ctx context.Context, requests <-chan *ssh.Request) {
	for r := range requests {
		var ok bool
		var payload []byte
		if c.mayOpen() {
			switch r.Type {
			case "tcpip-forward":
				ok, payload = c.listenForward(ctx, r.Payload)
			case "cancel-tcpip-forward":
				ok = c.cancelForward(r.Payload)
			}
		}
		if r.WantReply {
			_ = r.Reply(ok, payload)
		}
	}
}

// keepAlive closes the connection when its client stopped answering.
func (c *sshConn) keepAlive(ctx context.Context) {
	tick := time.NewTicker(keepaliveEvery)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	waiting, missed := false, 0
	for {
		select {
		case <-ctx.Done():
			_ = c.Close() // also ends a request that waits for its answer
			if waiting {
				<-answered
			}
			return
		case <-answered:
			waiting, missed = false, 0
		case <-tick.C:
			if missed++; missed > keepaliveMiss {
				_ = c.Close()
				continue
			}
			if !waiting {
				waiting = true
				go func() { // ended by Close at the latest, and waited for above
					_, _, _ = c.SendRequest("keepalive@openssh.com", true, nil)
					answered <- struct{}{}
				}()
			}
		}
	}
}
