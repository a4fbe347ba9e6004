// Package dockertest runs a Docker engine of a test's own: dockerd on a private
// socket and data root, with an image made of this host's programs, since no
// registry is asked. The engine and all it holds end with the test.
package dockertest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/id"
)

// Image is what the engine has.
const Image = "homeport-test:1"

// An Engine is one dockerd.
type Engine struct {
	*client.Client
	Socket string // its path

	t    testing.TB
	dir  string
	logs *tail

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start runs an engine. The test is skipped only where nobody could run one:
// without root, or in a container that lacks rights.
func Start(t testing.TB) *Engine {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil {
		if os.Geteuid() == 0 {
			t.Fatal("dockerd is not installed: run scripts/need-tools")
		}
		t.Skip("only root runs an engine")
	}
	dir, err := os.MkdirTemp("", "hpd") //nolint:usetesting // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Socket: filepath.Join(dir, "docker.sock"), t: t, dir: dir, logs: &tail{}}
	t.Cleanup(e.destroy)
	e.Client, err = client.New(client.WithHost("unix://" + e.Socket))
	if err != nil {
		t.Fatal(err)
	}
	if !e.start() {
		if os.Geteuid() == 0 && !lacksRights(e.logs.String()) {
			t.Fatalf("dockerd ended:\n%s", e.logs)
		}
		t.Skipf("dockerd has not the rights that it needs here:\n%s", e.logs)
	}
	e.load()
	return e
}

// lacksRights tells the end of an engine whose container or user may not do what
// engines do from every other end.
func lacksRights(log string) bool {
	log = strings.ToLower(log)
	for _, words := range []string{"operation not permitted", "permission denied", "read-only file system", "must be run as root"} {
		if strings.Contains(log, words) {
			return true
		}
	}
	return false
}

// start runs dockerd and waits until it answers; false = it ended. It leaves the
// host's firewall and its default bridge alone: a proxy process publishes the ports.
func (e *Engine) start() bool {
	e.t.Helper()
	cmd := exec.Command("dockerd", "--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"),
		"--pidfile", filepath.Join(e.dir, "pid"), "-H", "unix://"+e.Socket, "--log-level=warn", "--bridge=none", "--iptables=false", "--ip6tables=false")
	cmd.Stdout, cmd.Stderr = e.logs, e.logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	e.mu.Lock()
	e.cmd, e.exited = cmd, exited
	e.mu.Unlock()
	limit := time.NewTimer(90 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := e.Ping(e.t.Context(), client.PingOptions{}); err == nil {
			return true
		}
		select {
		case <-exited:
			e.mu.Lock()
			e.cmd = nil
			e.mu.Unlock()
			return false
		case <-limit.C:
			e.t.Fatalf("dockerd does not answer:\n%s", e.logs)
		case <-tick.C:
		}
	}
}

// Restart ends the engine by a signal, and starts it again.
func (e *Engine) Restart(sig syscall.Signal) {
	e.t.Helper()
	e.stop(sig)
	if !e.start() {
		e.t.Fatalf("dockerd does not start again:\n%s", e.logs)
	}
}

func (e *Engine) stop(sig syscall.Signal) {
	e.mu.Lock()
	cmd, exited := e.cmd, e.exited
	e.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig) // it may be gone already
	<-exited
}

// Clear removes every container.
func (e *Engine) Clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), time.Minute)
	defer cancel()
	res, err := e.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		e.t.Errorf("list the containers that are left: %v", err)
	}
	for _, c := range res.Items {
		if _, err := e.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			e.t.Errorf("remove container %s: %v", c.ID, err)
		}
	}
}

// destroy ends every container, the engine, and what is left of it.
func (e *Engine) destroy() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), time.Minute)
	defer cancel()
	e.mu.Lock()
	started := e.cmd != nil
	e.mu.Unlock()
	if started {
		e.Clear()
		if res, err := e.NetworkList(ctx, client.NetworkListOptions{}); err == nil {
			for _, n := range res.Items {
				_, _ = e.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}) // those of the engine itself stay
			}
		}
	}
	e.stop(syscall.SIGTERM)
	if e.t.Failed() {
		e.t.Logf("log of dockerd:\n%s", e.logs)
	}
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Errorf("remove the engine's folder: %v", err)
	}
}

// load makes the image.
func (e *Engine) load() {
	e.t.Helper()
	var tar bytes.Buffer
	if err := hostImage(e.t.Context(), &tar); err != nil {
		e.t.Fatalf("make an image of this host's programs: %v", err)
	}
	// A volume, as many images have one, must go with its container.
	res, err := e.ImageImport(e.t.Context(), client.ImageImportSource{Source: &tar, SourceName: "-"}, Image,
		client.ImageImportOptions{Changes: []string{"VOLUME /cache"}})
	if err != nil {
		e.t.Fatalf("import the image: %v", err)
	}
	var said bytes.Buffer
	_, err = said.ReadFrom(res)
	if err = errors.Join(err, res.Close()); err != nil || strings.Contains(said.String(), "error") {
		e.t.Fatalf("import the image: %v: %s", err, said.String())
	}
}

// Network makes a network of its own range, and returns its name and the
// address at which its containers reach this host.
func (e *Engine) Network() (name string, gateway netip.Addr) {
	e.t.Helper()
	b := id.Bytes(2)
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 | b[0], b[1], 0}), 24)
	gateway = subnet.Addr().Next()
	_, err := e.NetworkCreate(e.t.Context(), "pods", client.NetworkCreateOptions{
		Driver: "bridge", IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet, Gateway: gateway}}},
	})
	if err != nil {
		e.t.Fatalf("make a network: %v", err)
	}
	return "pods", gateway
}

// Forward listens on an address and passes connections on to another, until the
// test ends. It returns where it listens.
func Forward(t testing.TB, on netip.Addr, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(on, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go relay(l, to)
	return l.Addr().String()
}

// relay passes connections on until their listener is closed.
func relay(l net.Listener, to string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go pass(in, to)
	}
}

func pass(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{})
	go func() {
		_, _ = out.(*net.TCPConn).ReadFrom(in)
		_ = out.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	_, _ = in.(*net.TCPConn).ReadFrom(out)
	_ = in.(*net.TCPConn).CloseWrite()
	<-done
}

// A tail keeps the newest part of what a process wrote.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps b.
func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-32<<10):]
	return len(b), nil
}

// String returns it.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
