package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	miekg "github.com/miekg/dns"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/dns"
	"homeport.dev/homeport/internal/dns/dnstest"
)

const (
	ownKey   = dnstest.Key
	otherKey = dnstest.OtherKey
)

// nameServer runs a name server for the zone pods.example.test. It returns its
// address and a way to look names up in it.
func nameServer(t *testing.T) (string, *net.Resolver) {
	t.Helper()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := probe.Addr().(*net.TCPAddr).AddrPort()
	_ = probe.Close()
	return at.String(), dnstest.Start(t, at)
}

func server(t *testing.T, address, key string) *dns.Server {
	t.Helper()
	s, err := dns.NewServer(address, dnstest.Zone, key, clock.New())
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

// A removal that the server makes only after we gave it up takes no name from
// the pod that has it by then.
func TestALateRemovalTakesNoNameFromASuccessor(t *testing.T) {
	t.Parallel()
	address, resolver := nameServer(t)
	direct := server(t, address, ownKey)
	for _, family := range [][2]string{{"192.0.2.7", "192.0.2.8"}, {"host.cloud.example.com", "other.cloud.example.com"}} {
		if err := direct.Add(t.Context(), podName, family[0]); err != nil {
			t.Fatal(err)
		}
		slow, updates, release := slowServer(t, address)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := server(t, slow, ownKey).Remove(ctx, podName)
		cancel()
		if err == nil {
			t.Error("a removal without an answer is called done")
		}
		select {
		case <-updates:
		default:
			t.Fatal("the removal did not come to the server")
		}
		if err := direct.Add(t.Context(), podName, family[1]); err != nil {
			t.Fatal(err)
		}
		release()
		if got, err := leads(t.Context(), resolver); err != nil || got != family[1] {
			t.Errorf("the successor's name leads to %q, %v", got, err)
		}
		if err := direct.Remove(t.Context(), podName); err != nil {
			t.Fatal(err)
		}
		if got, err := leads(t.Context(), resolver); err == nil {
			t.Errorf("the name leads to %s after its end", got)
		}
	}
}

// slowServer stands before a name server and keeps an update, which it tells of,
// until it is released: then the server has answered it.
func slowServer(t *testing.T, address string) (slow string, updates <-chan struct{}, release func()) {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	came, let, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	pass := func(c *miekg.Conn) error {
		defer c.Close()
		m, err := c.ReadMsgHeader(nil)
		if err != nil {
			return err
		}
		late := m[2]>>3&15 == miekg.OpcodeUpdate
		if late {
			close(came)
			<-let
		}
		back, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		server := &miekg.Conn{Conn: back}
		defer server.Close()
		if _, err := server.Write(m); err != nil {
			return err
		}
		answer, err := server.ReadMsgHeader(nil)
		if late {
			close(answered)
		}
		if err == nil {
			_, err = c.Write(answer)
		}
		return err
	}
	go func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			go func() { _ = pass(&miekg.Conn{Conn: c}) }() // who waited may be gone
		}
	}()
	return front.Addr().String(), came, func() {
		close(let)
		<-answered
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
