//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// request asks for a machine of an offer.
func request(name string, o provider.Offer, port int) provider.Launch {
	return provider.Launch{
		Name: name, Offer: o, MaxPrice: o.UpstreamPrice, SSHPort: port,
		Bootstrap: provider.Bootstrap{Token: "token-of-" + name, Hostname: "abcd1234"},
	}
}

// open returns sandbox clouds on a folder; it skips where pods cannot run.
func open(t *testing.T, dir string) *sandbox.Sandbox {
	t.Helper()
	s, err := newSandbox(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Supported(t.Context()); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh returns sandbox clouds on a folder of their own, whose machines end
// with the test and leave nothing.
func fresh(t *testing.T) (*sandbox.Sandbox, string) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	t.Cleanup(func() {
		if _, err := s.StopAll(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if left := touching(t, dir); len(left) > 0 {
			t.Errorf("processes that still use %s: %v", dir, left)
		}
	})
	return s, dir
}

// touching lists the processes in whose mounts the folder appears: the pods
// made of it, seen from outside.
func touching(t *testing.T, dir string) []string {
	t.Helper()
	shown := strings.TrimPrefix(dir, strings.TrimSuffix(os.TempDir(), "/")) + "/" // mountinfo begins at the file system's root
	files, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), shown) {
			list = append(list, strings.Split(f, "/")[2])
		}
	}
	return list
}

func firstOffer(t *testing.T, c provider.Adapter) provider.Offer {
	t.Helper()
	list, err := c.Offers(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("offers: %d, %v", len(list), err)
	}
	return list[0]
}

func launch(t *testing.T, c provider.Adapter, name string) provider.Machine {
	t.Helper()
	m, err := c.Launch(t.Context(), request(name, firstOffer(t, c), 0))
	if err != nil {
		t.Fatalf("launch %s: %v", name, err)
	}
	return m
}

// find returns the one machine of that name, or none.
func find(t *testing.T, c provider.Adapter, name string) (provider.Machine, bool) {
	t.Helper()
	list, err := c.Find(t.Context(), name)
	if err != nil || len(list) > 1 {
		t.Fatalf("find %s: %v, %v", name, list, err)
	}
	if len(list) == 0 {
		return provider.Machine{}, false
	}
	return list[0], true
}

// eventually waits until check holds; it fails the test when it never does.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-limit.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// ask sends one line to the machine's port and returns the answer.
func ask(t *testing.T, m provider.Machine, line string) string {
	t.Helper()
	return askAt(t, "127.0.0.1", m.SSHPort, line)
}

func askAt(t *testing.T, host string, port int, line string) string {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
