package dns_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	miekg "github.com/miekg/dns"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/dns"
)

// The keys that the zone of a nameServer knows: only the first may update it.
const (
	ownKey   = "hmac-sha256:homeport:c2hhcmVkIGJ5IHRoZSB0ZXN0cw=="
	otherKey = "hmac-sha512:reader:bWF5IG9ubHkgcmVhZCB0aGUgem9uZQ=="
)

const namedConf = `
options { directory "%[1]s"; listen-on port %[2]d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile none;
  recursion no; dnssec-validation no; allow-new-zones no; notify no; };
controls { };
key "homeport" { algorithm hmac-sha256; secret "c2hhcmVkIGJ5IHRoZSB0ZXN0cw=="; };
key "reader" { algorithm hmac-sha512; secret "bWF5IG9ubHkgcmVhZCB0aGUgem9uZQ=="; };
zone "pods.example.test" { type primary; file "%[1]s/zone"; allow-update { key "homeport"; }; };
`

const zoneText = `$TTL 60
@ IN SOA ns hostmaster 1 60 60 600 60
@ IN NS ns
ns IN A 127.0.0.1
`

// nameServer runs Debian's BIND for the zone pods.example.test. It returns its
// address and a way to look names up in it.
func nameServer(t *testing.T) (string, *net.Resolver) {
	t.Helper()
	program := "/usr/sbin/named"
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the tests need the name server of Debian: apt-get install bind9")
	}
	dir := t.TempDir()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := probe.Addr().(*net.TCPAddr).Port
	_ = probe.Close()
	for name, text := range map[string]string{"named.conf": fmt.Sprintf(namedConf, dir, port), "zone": zoneText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	server := exec.Command(program, "-g", "-n", "1", "-c", filepath.Join(dir, "named.conf"))
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	for range 100 {
		if _, err := resolver.LookupHost(t.Context(), "ns.pods.example.test."); err == nil {
			return address, resolver
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the name server does not answer")
	return "", nil
}

func server(t *testing.T, address, key string) *dns.Server {
	t.Helper()
	s, err := dns.NewServer(address, "pods.example.test", key, clock.New())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const podName = "0123abcd.pods.example.test"

// A pod's name leads to its machine, to the next one after a move to another
// cloud (an address of the other family, or a host name), and nowhere after its end.
func TestNameServerFollowsThePod(t *testing.T) {
	t.Parallel()
	address, resolver := nameServer(t)
	s := server(t, address, ownKey)
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"192.0.2.7", "192.0.2.7", "2001:db8::7", "host.cloud.example.com", "192.0.2.8"} {
		if err := s.Add(t.Context(), podName, to); err != nil {
			t.Fatal(err)
		}
		got, err := leads(t.Context(), resolver)
		if err != nil || got != to {
			t.Errorf("after %s was added the name leads to %q, %v", to, got, err)
		}
	}
	if err := s.Add(t.Context(), "fedcba98.pods.example.test", "192.0.2.9"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // removing twice is removing once
		if err := s.Remove(t.Context(), podName); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := leads(t.Context(), resolver); err == nil {
		t.Errorf("an ended pod's name leads to %s", got)
	}
	if other, err := resolver.LookupHost(t.Context(), "fedcba98.pods.example.test."); err != nil || other[0] != "192.0.2.9" {
		t.Errorf("another pod's name leads to %v, %v", other, err)
	}
}

// leads is where the pod's name leads.
func leads(ctx context.Context, r *net.Resolver) (string, error) {
	if to, err := r.LookupCNAME(ctx, podName+"."); err == nil && to != podName+"." {
		return strings.TrimSuffix(to, "."), nil
	}
	addrs, err := r.LookupNetIP(ctx, "ip", podName+".")
	if err != nil || len(addrs) != 1 {
		return fmt.Sprint(addrs), errors.Join(err, errors.New("not one address"))
	}
	return addrs[0].Unmap().String(), nil
}

func TestNameServerRefusesWhoMayNotUpdate(t *testing.T) {
	t.Parallel()
	address, resolver := nameServer(t)
	for name, key := range map[string]string{
		"a key without the right": otherKey,
		"an unknown key":          "hmac-sha256:stranger:c2hhcmVkIGJ5IHRoZSB0ZXN0cw==",
		"a wrong secret":          "hmac-sha256:homeport:d3Jvbmc=",
	} {
		s := server(t, address, key)
		err := s.Add(t.Context(), podName, "192.0.2.7")
		if err == nil || s.Check(t.Context()) == nil {
			t.Errorf("%s was let in", name)
			continue
		}
		if secret := key[strings.LastIndex(key, ":")+1:]; strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
	s := server(t, address, ownKey)
	for name, to := range map[string]string{
		"pods.example.test": "192.0.2.7", "abcd1234.elsewhere.test": "192.0.2.7", podName: "", "f" + podName: "no host",
	} {
		if err := s.Add(t.Context(), name, to); err == nil {
			t.Errorf("%q leads to %q now", name, to)
		}
	}
	if got, err := resolver.LookupHost(t.Context(), podName+"."); err == nil {
		t.Errorf("the name leads to %v", got)
	}
	if err := server(t, "127.0.0.1:1", ownKey).Add(t.Context(), podName, "192.0.2.7"); err == nil {
		t.Error("a server that does not listen took an update")
	}
}

// An answer that nobody signed is no success: whoever sits between could give it.
func TestAnswerWithoutASignatureIsNotBelieved(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 3)
	somebody := &miekg.Server{
		Listener:      listener,
		MsgAcceptFunc: func(miekg.Header) miekg.MsgAcceptAction { return miekg.MsgAccept },
		Handler: miekg.HandlerFunc(func(w miekg.ResponseWriter, m *miekg.Msg) {
			asked <- struct{}{}
			if err := w.WriteMsg(new(miekg.Msg).SetReply(m)); err != nil {
				t.Error(err)
			}
		}),
	}
	served := make(chan error, 1)
	go func() { served <- somebody.ActivateAndServe() }()
	s := server(t, listener.Addr().String(), ownKey)
	for what, err := range map[string]error{
		"an added name": s.Add(t.Context(), podName, "192.0.2.7"), "a removed name": s.Remove(t.Context(), podName), "the zone": s.Check(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "did not sign its answer") {
			t.Errorf("%s is believed: %v", what, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("the server was asked %d times", len(asked))
	}
	if err := errors.Join(somebody.Shutdown(), <-served); err != nil {
		t.Error(err)
	}
}

func TestSettingsOfANameServer(t *testing.T) {
	t.Parallel()
	for _, bad := range [][3]string{
		{"", "pods.example.test", ownKey},
		{"ns.example.test", "", ownKey},
		{"ns.example.test", ".", ownKey},
		{"ns.example.test", "pods.example.test", ""},
		{"ns.example.test", "pods.example.test", "homeport"},
		{"ns.example.test", "pods.example.test", "hmac-md5:homeport:c2hhcmVk"},
		{"ns.example.test", "pods.example.test", "homeport:not base64!"},
		{"ns.example.test", "pods.example.test", "homeport:"},
	} {
		if _, err := dns.NewServer(bad[0], bad[1], bad[2], clock.New()); err == nil || (bad[2] != "" && strings.Contains(err.Error(), bad[2])) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"ns.example.test", "ns.example.test:5353", "192.0.2.1", "[2001:db8::1]:53", netip.IPv6Loopback().String()} {
		if _, err := dns.NewServer(good, "pods.example.test.", "homeport:c2hhcmVk", clock.New()); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}
