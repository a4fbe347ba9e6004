package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// request asks for the cheapest kind of machine.
func request(name string, o provider.Offer, port int) provider.Launch {
	return provider.Launch{Name: name, Offer: o, MaxPrice: o.UpstreamPrice, SSHPort: port,
		Bootstrap: provider.Bootstrap{Token: "token-of-" + name, Hostname: "abcd1234"}}
}

// start returns sandbox clouds on a fresh folder whose machines end with the test.
func start(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s, err := newSandbox(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Supported(t.Context()); err != nil {
		t.Skipf("%v: %v", err, provider.ErrUnsupported)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := s.StopAll(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
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
		t.Fatalf("launch: %v", err)
	}
	return m
}

// ask sends one line to the machine's port and returns the answer.
func ask(t *testing.T, m provider.Machine, line string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", m.SSHPort), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, line)
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestMachineBoots(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.Clouds()["saltpier"]
	m := launch(t, c, "hp-abcd-00000001-1")
	t.Log(m, ask(t, m, "pod"))
	t.Log(ask(t, m, "user id; hostname; ls -la / /root /workspace /etc /run/homeport /opt/homeport/bin; cat /proc/self/mountinfo; ps ax; cat /proc/self/status"))
	t.Log(ask(t, m, "call /agent/v1/hello"))
	t.Log(ask(t, m, "call /other"))
}
