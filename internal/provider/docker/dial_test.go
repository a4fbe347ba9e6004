package docker_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/docker"
)

// keyPair draws an SSH key and keeps its private half in a file.
func keyPair(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize))
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, write(t, string(pem.EncodeToMemory(block)))
}

// An sshHost is an SSH server that forwards to sockets, as OpenSSH does.
type sshHost struct {
	t       *testing.T
	address string
	config  *ssh.ServerConfig
	target  string // where the engine really is
	socket  string // what must be asked for

	mu    sync.Mutex
	conns []net.Conn
}

func newSSHHost(t *testing.T, key ssh.Signer, user ssh.PublicKey, target string) *sshHost {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The host has keys of two kinds; known_hosts has one of them.
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.NewSignerFromKey(second)
	if err != nil {
		t.Fatal(err)
	}
	h := &sshHost{t: t, address: l.Addr().String(), target: target, socket: "/run/test.sock", config: &ssh.ServerConfig{
		PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != "lend" || string(k.Marshal()) != string(user.Marshal()) {
				return nil, errors.New("not this user")
			}
			return nil, nil
		},
	}}
	h.config.AddHostKey(other)
	h.config.AddHostKey(key)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns = append(h.conns, conn)
			h.mu.Unlock()
			wg.Go(func() { h.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		h.cut()
		wg.Wait()
	})
	return h
}

// cut breaks all connections.
func (h *sshHost) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

func (h *sshHost) serve(conn net.Conn) {
	_, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		var to struct {
			Path     string
			Reserved string
			Port     uint32
		}
		if c.ChannelType() != "direct-streamlocal@openssh.com" || ssh.Unmarshal(c.ExtraData(), &to) != nil || to.Path != h.socket {
			_ = c.Reject(ssh.ConnectionFailed, "no such socket")
			continue
		}
		engine, err := net.Dial("tcp", h.target)
		if err != nil {
			_ = c.Reject(ssh.ConnectionFailed, "no engine")
			continue
		}
		ch, rs, err := c.Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(rs)
		go func() { _, _ = io.Copy(ch, engine); _ = ch.Close() }()
		go func() { _, _ = io.Copy(engine, ch); engine.Close() }()
	}
}

// TestEngineIsReachedBySSH: through the socket that is named, also after the
// connection broke; never at a host with another key.
func TestEngineIsReachedBySSH(t *testing.T) {
	t.Parallel()
	_, d := fresh(t)
	hostKey, _ := keyPair(t)
	user, userFile := keyPair(t)
	server := newSSHHost(t, hostKey, user.PublicKey(), strings.TrimPrefix(d.URL, "http://"))
	known := write(t, knownhosts.Line([]string{server.address}, hostKey.PublicKey())+"\n")
	c := adapter(t, d, func(h *docker.Host) {
		h.Engine, h.SSHKey, h.SSHKnown = "ssh://lend@"+server.address+"/run/test.sock", userFile, known
	})
	l := request(t, c)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	server.cut()
	for try := range 3 { // a connection that breaks while it is used is an error, once
		if _, err := c.Find(t.Context(), l.Name); err == nil {
			break
		} else if try == 2 {
			t.Fatalf("after the connection broke: %v", err)
		}
	}

	stranger, strangerFile := keyPair(t)
	wrong := write(t, knownhosts.Line([]string{server.address}, stranger.PublicKey())+"\n")
	l.Name = "hp-test-00000002-1"
	for name, change := range map[string]func(h *docker.Host){
		"another host key":   func(h *docker.Host) { h.SSHKnown = wrong },
		"another user's key": func(h *docker.Host) { h.SSHKey = strangerFile },
		"another socket":     func(h *docker.Host) { h.Engine = "ssh://lend@" + server.address },
	} {
		other := adapter(t, d, func(h *docker.Host) {
			h.Engine, h.SSHKey, h.SSHKnown = "ssh://lend@"+server.address+"/run/test.sock", userFile, known
			change(h)
		})
		if _, err := other.Launch(t.Context(), l); !errors.Is(err, provider.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := host("ssh://lend@192.0.2.1")
	h.SSHKey, h.SSHKnown = userFile, known
	if _, err := docker.New(docker.Config{Host: h, Clock: d.Clock}); err == nil || !strings.Contains(err.Error(), "does not hold the key") {
		t.Errorf("a host that known_hosts does not name: %v", err)
	}
}

// An authority signs certificates for both ends.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour),
	}
	a.key = a.draw()
	der := a.sign(a.cert, a.key)
	a.file = write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return a
}

func (a *authority) draw() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// issue makes a certificate, and returns the files of it and its key.
func (a *authority) issue() (cert, key string) {
	private := a.draw()
	der := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, private)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return write(a.t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(a.t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})))
}

// TestEngineIsReachedByTLS: with certificates of both ends, and not without.
func TestEngineIsReachedByTLS(t *testing.T) {
	t.Parallel()
	_, d := fresh(t)
	a, b := newAuthority(t), newAuthority(t)
	target, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := a.issue()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	text, err := os.ReadFile(a.file)
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	server.StartTLS()
	t.Cleanup(server.Close)
	with := func(ca, cert, key string) *docker.Cloud {
		return adapter(t, d, func(h *docker.Host) {
			h.Engine, h.TLSCA, h.TLSCert, h.TLSKey = "tcp://"+server.Listener.Addr().String(), ca, cert, key
		})
	}
	ours, ourKey := a.issue()
	offers(t, with(a.file, ours, ourKey))
	theirs, theirKey := b.issue()
	if list, err := with(a.file, theirs, theirKey).Offers(t.Context()); err == nil {
		t.Errorf("with another authority's certificate: %v", list)
	}
	if list, err := with(b.file, ours, ourKey).Offers(t.Context()); err == nil {
		t.Errorf("at an engine of another authority: %v", list)
	}
	h := host("tcp://" + server.Listener.Addr().String())
	h.TLSCA, h.TLSCert, h.TLSKey = a.file, ours, filepath.Join(t.TempDir(), "none")
	if _, err := docker.New(docker.Config{Host: h, Clock: d.Clock}); err == nil {
		t.Error("a key that is not there was read")
	}
}
