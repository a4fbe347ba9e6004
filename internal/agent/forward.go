//go:build linux

package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	forwardDial = 10 * time.Second
	maxForwards = 64 // listening forwards of one connection
)

// The payloads of RFC 4254, section 7.
type (
	dialRequest struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	listenRequest struct {
		Host string
		Port uint32
	}
	listenReply struct{ Port uint32 }
)

// forwards are the listening forwards of one connection, by what the client
// asked for.
type forwards struct {
	mu     sync.Mutex
	open   map[listenRequest]net.Listener
	closed bool
}

// add keeps a listener; false means that it may not be kept.
func (f *forwards) add(r listenRequest, l net.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.open[r]; taken || f.closed || len(f.open) >= maxForwards {
		return false
	}
	if f.open == nil {
		f.open = map[listenRequest]net.Listener{}
	}
	f.open[r] = l
	return true
}

func (f *forwards) remove(r listenRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.open[r]
	if ok {
		l.Close()
		delete(f.open, r)
	}
	return ok
}

func (f *forwards) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, l := range f.open {
		l.Close()
	}
}

// dialForward connects a client's local forward (-L, -W, -D) to an address as
// the pod sees it.
func (c *sshConn) dialForward(ctx context.Context, nc ssh.NewChannel) {
	var r dialRequest
	if err := ssh.Unmarshal(nc.ExtraData(), &r); err != nil || r.Port > 0xffff {
		_ = nc.Reject(ssh.ConnectionFailed, "the address cannot be read")
		return
	}
	dialer := net.Dialer{Timeout: forwardDial}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		conn.Close()
		return
	}
	splice(ctx, ch, requests, conn)
}

// listenForward opens a remote forward (-R), on the pod's loopback only.
func (c *sshConn) listenForward(ctx context.Context, payload []byte) (bool, []byte) {
	var r listenRequest
	if err := ssh.Unmarshal(payload, &r); err != nil || r.Port > 0xffff {
		return false, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(loopback(r.Host), strconv.Itoa(int(r.Port))))
	if err != nil {
		return false, nil
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		l.Close()
		return false, nil
	}
	var reply []byte
	if r.Port == 0 {
		r.Port = uint32(addr.Port)
		reply = ssh.Marshal(listenReply{r.Port})
	}
	if !c.forwards.add(r, l) {
		l.Close()
		return false, nil
	}
	c.server.wg.Go(func() { c.acceptForward(ctx, r, l) })
	return true, reply
}

func (c *sshConn) cancelForward(payload []byte) bool {
	var r listenRequest
	if err := ssh.Unmarshal(payload, &r); err != nil {
		return false
	}
	return c.forwards.remove(r)
}

func (c *sshConn) acceptForward(ctx context.Context, r listenRequest, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	wait := newBackoff(5*time.Millisecond, time.Second, r.Host)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if wait.sleep(ctx) != nil {
				return
			}
			continue
		}
		wait.reset()
		c.server.wg.Go(func() { c.sendForward(ctx, r, conn) })
	}
}

// sendForward hands a connection that a remote forward accepted to the client.
func (c *sshConn) sendForward(ctx context.Context, r listenRequest, conn net.Conn) {
	m := dialRequest{Host: r.Host, Port: r.Port, OriginHost: "127.0.0.1"}
	if from, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		m.OriginHost, m.OriginPort = from.IP.String(), uint32(from.Port)
	}
	ch, requests, err := c.OpenChannel("forwarded-tcpip", ssh.Marshal(m))
	if err != nil {
		conn.Close()
		return
	}
	splice(ctx, ch, requests, conn)
}

// loopback is the address a remote forward listens on: never one that other
// machines reach, whatever the client asked for.
func loopback(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return host
	}
	return "127.0.0.1"
}

// splice copies both ways until both sides ended; the end of one direction
// leaves the other open.
func splice(ctx context.Context, ch ssh.Channel, requests <-chan *ssh.Request, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	sent := make(chan struct{})
	go func() { // ends with conn or the channel
		_, _ = io.Copy(conn, ch)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		close(sent)
	}()
	closed := make(chan struct{})
	go func() { // ends with the channel, at the latest by the Close below
		ssh.DiscardRequests(requests)
		<-sent // what came before the close is still to go out
		conn.Close()
		close(closed)
	}()
	_, _ = io.Copy(ch, conn)
	_ = ch.CloseWrite()
	<-sent
	_ = ch.Close()
	<-closed
}
