package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

const (
	dialFor   = 10 * time.Second
	keepAlive = 30 * time.Second
	socket    = "/var/run/docker.sock" // of an engine that is reached by SSH
)

// transportTo makes the way to a host's engine, and its scheme.
func transportTo(h Host) (*http.Transport, string, error) {
	u, err := url.Parse(h.Engine)
	if err != nil {
		return nil, "", fmt.Errorf("engine of %s: %w", h.Name, err)
	}
	plain := &net.Dialer{Timeout: dialFor, KeepAlive: keepAlive}
	t := &http.Transport{MaxIdleConns: 6, IdleConnTimeout: keepAlive, TLSHandshakeTimeout: dialFor}
	switch u.Scheme {
	case "ssh":
		s, err := newTunnel(h, u, plain)
		if err != nil {
			return nil, "", fmt.Errorf("engine of %s: %w", h.Name, err)
		}
		t.DialContext = s.dial
		return t, "http", nil
	case "tcp":
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return plain.DialContext(ctx, "tcp", u.Host) }
		if h.TLSCert == "" {
			return t, "http", nil
		}
		t.TLSClientConfig, err = certificates(h, u.Hostname())
		if err != nil {
			return nil, "", fmt.Errorf("engine of %s: %w", h.Name, err)
		}
		return t, "https", nil
	}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return plain.DialContext(ctx, "unix", u.Path)
	}
	return t, "http", nil
}

// certificates are how engine and Homeport know each other.
func certificates(h Host, name string) (*tls.Config, error) {
	ours, err := tls.LoadX509KeyPair(h.TLSCert, h.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("our certificate: %w", err)
	}
	ca, err := os.ReadFile(h.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", h.TLSCA)
	}
	return &tls.Config{Certificates: []tls.Certificate{ours}, RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}, nil
}

// A tunnel reaches an engine's socket through one SSH connection, which is made
// anew when it breaks. The host is the one that known_hosts names.
type tunnel struct {
	plain   *net.Dialer
	address string
	socket  string
	config  *ssh.ClientConfig

	mu     sync.Mutex
	client *ssh.Client // nil = none, or it broke
}

func newTunnel(h Host, u *url.URL, plain *net.Dialer) (*tunnel, error) {
	text, err := os.ReadFile(h.SSHKey)
	if err != nil {
		return nil, fmt.Errorf("the SSH key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("the SSH key %s: %w", h.SSHKey, err)
	}
	known, err := knownhosts.New(h.SSHKnown)
	if err != nil {
		return nil, fmt.Errorf("the known hosts: %w", err)
	}
	t := &tunnel{plain: plain, address: net.JoinHostPort(u.Hostname(), "22"), socket: socket}
	if u.Port() != "" {
		t.address = u.Host
	}
	if u.Path != "" && u.Path != "/" {
		t.socket = u.Path
	}
	t.config = &ssh.ClientConfig{
		User: u.User.Username(), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: dialFor,
		HostKeyCallback: known, HostKeyAlgorithms: algorithms(known, t.address),
	}
	if len(t.config.HostKeyAlgorithms) == 0 {
		return nil, fmt.Errorf("%s does not hold the key of %s", h.SSHKnown, t.address)
	}
	return t, nil
}

// algorithms are those of the keys that known_hosts has of a host: without them
// the host may show another of its keys, which nobody knows.
func algorithms(known ssh.HostKeyCallback, address string) []string {
	var which *knownhosts.KeyError
	if !errors.As(known(address, &net.TCPAddr{}, noKey{}), &which) {
		return nil
	}
	var list []string
	for _, k := range which.Want {
		if name := k.Key.Type(); name == ssh.KeyAlgoRSA {
			list = append(list, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			list = append(list, name)
		}
	}
	return list
}

// noKey is a host key that no host has.
type noKey struct{}

// Type implements ssh.PublicKey.
func (noKey) Type() string { return "none" }

// Marshal implements ssh.PublicKey.
func (noKey) Marshal() []byte { return nil }

// Verify implements ssh.PublicKey.
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("it is no key") }

// dial opens a connection to the socket.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, fresh, err := t.connected(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := c.DialContext(ctx, "unix", t.socket)
	if err == nil {
		return conn, nil
	}
	t.drop(c)
	if fresh || ctx.Err() != nil {
		return nil, fmt.Errorf("the engine's socket %s: %w", t.socket, err)
	}
	return t.dial(ctx, "", "") // the connection had broken since its last use; the next one is fresh
}

// connected returns the connection, and whether it was made just now.
func (t *tunnel) connected(ctx context.Context) (*ssh.Client, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	conn, err := t.plain.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, false, err
	}
	// The handshake knows no context: the connection ends with it instead.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, t.address, t.config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, false, fmt.Errorf("log in at %s: %w", t.address, err)
	}
	t.client = ssh.NewClient(c, channels, requests)
	return t.client, true, nil
}

// drop forgets a connection that does not work any more.
func (t *tunnel) drop(c *ssh.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client == c {
		t.client = nil
	}
	_ = c.Close()
}
