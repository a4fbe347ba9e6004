package dns

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	miekg "github.com/miekg/dns"

	"homeport.dev/homeport/internal/clock"
)

const (
	// recordTTL bounds for how long a resolver leads to a pod's last machine, in
	// seconds.
	recordTTL = 60
	// updateFor bounds one update.
	updateFor = 10 * time.Second
	// tsigFudge is how far the clocks may differ, in seconds (RFC 8945, 10).
	tsigFudge = 300
)

// algorithms of keys, by the names that nsupdate and tsig-keygen give them. MD5
// and SHA-1 are not among them.
var algorithms = map[string]string{
	"hmac-sha224": miekg.HmacSHA224, "hmac-sha256": miekg.HmacSHA256,
	"hmac-sha384": miekg.HmacSHA384, "hmac-sha512": miekg.HmacSHA512,
}

// A Server is a primary name server that takes dynamic updates (RFC 2136) which
// are signed by a shared key (RFC 8945). Each pod's name has one record: A or
// AAAA for an address, CNAME for a host name.
type Server struct {
	address   string // host:port
	zone      string
	key       string // its name
	algorithm string
	clock     *clock.Clock // its wall time signs
	client    miekg.Client
}

// NewServer is the server at address (host, or host:port) for names in zone.
// key is [algorithm:]name:secret, as nsupdate takes it, the secret in base64.
func NewServer(address, zone, key string, clk *clock.Clock) (*Server, error) {
	if address == "" {
		return nil, errors.New("the name server has no address")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "53")
	}
	if _, ok := miekg.IsDomainName(zone); !ok || strings.Trim(zone, ".") == "" {
		return nil, fmt.Errorf("%q is not a zone", zone)
	}
	parts := strings.Split(key, ":")
	if len(parts) == 2 {
		parts = append([]string{"hmac-sha256"}, parts...)
	}
	// What is wrong is told without the key: it is a secret.
	if len(parts) != 3 || parts[1] == "" {
		return nil, errors.New("the key of the name server is not algorithm:name:secret")
	}
	algorithm, ok := algorithms[strings.ToLower(parts[0])]
	if !ok {
		return nil, errors.New("the key of the name server is for no algorithm among hmac-sha224, hmac-sha256, hmac-sha384 and hmac-sha512")
	}
	if raw, err := base64.StdEncoding.DecodeString(parts[2]); err != nil || len(raw) == 0 {
		return nil, errors.New("the secret in the key of the name server is not base64")
	}
	name := miekg.CanonicalName(parts[1])
	return &Server{
		address: address, zone: miekg.CanonicalName(zone), key: name, algorithm: algorithm, clock: clk,
		client: miekg.Client{Net: "tcp", Timeout: updateFor, TsigSecret: map[string]string{name: parts[2]}},
	}, nil
}

// Add makes name lead to the address, whatever it led to before.
func (s *Server) Add(ctx context.Context, name, address string) error {
	record, err := record(miekg.CanonicalName(name), address)
	if err != nil {
		return err
	}
	// In the order of the message, and all or nothing (RFC 2136, 3.4.2): nobody
	// sees the name without its record.
	return s.update(ctx, name, func(m *miekg.Msg, owner []miekg.RR) {
		m.RemoveName(owner)
		m.Insert([]miekg.RR{record})
	})
}

// Remove forgets the name, as it leads now: a server that makes the change only
// after we gave up takes nothing from who has the name by then. One that does not
// say where the name leads is asked to forget all of it.
func (s *Server) Remove(ctx context.Context, name string) error {
	led, told, err := s.leads(ctx, miekg.CanonicalName(name))
	switch {
	case err != nil:
		return fmt.Errorf("look where %s leads: %w", name, err)
	case told && len(led) == 0:
		return nil
	}
	return s.update(ctx, name, func(m *miekg.Msg, owner []miekg.RR) {
		if told {
			m.Remove(led)
		} else {
			m.RemoveName(owner)
		}
	})
}

// leads reads the records of a name, if the server tells.
func (s *Server) leads(ctx context.Context, name string) (led []miekg.RR, told bool, err error) {
	for _, kind := range []uint16{miekg.TypeA, miekg.TypeAAAA} { // to each a CNAME is told, too
		answer, err := s.exchange(ctx, new(miekg.Msg).SetQuestion(name, kind))
		if err != nil {
			return nil, false, err
		}
		switch {
		case answer.Rcode == miekg.RcodeNameError:
			return nil, true, nil
		case answer.Rcode != miekg.RcodeSuccess || !answer.Authoritative:
			return nil, false, nil
		}
		for _, r := range answer.Answer {
			known := slices.ContainsFunc(led, func(other miekg.RR) bool { return miekg.IsDuplicate(r, other) })
			if miekg.CanonicalName(r.Header().Name) == name && !known {
				led = append(led, r)
			}
		}
	}
	return led, true, nil
}

// Check proves that the server knows the zone and takes our key, and changes nothing.
func (s *Server) Check(ctx context.Context) error {
	return s.send(ctx, new(miekg.Msg).SetUpdate(s.zone))
}

func (s *Server) update(ctx context.Context, name string, change func(m *miekg.Msg, owner []miekg.RR)) error {
	name = miekg.CanonicalName(name)
	if !miekg.IsSubDomain(s.zone, name) || name == s.zone {
		return fmt.Errorf("publish %s: it does not lie below the zone %s", name, s.zone)
	}
	m := new(miekg.Msg).SetUpdate(s.zone)
	change(m, []miekg.RR{&miekg.ANY{Hdr: miekg.RR_Header{Name: name}}})
	if err := s.send(ctx, m); err != nil {
		return fmt.Errorf("publish %s: %w", name, err)
	}
	return nil
}

// send signs an update and waits for its answer, whose signature is checked too:
// without one, anybody between us and the server could say that all is well.
func (s *Server) send(ctx context.Context, m *miekg.Msg) error {
	answer, err := s.exchange(ctx, m)
	if err != nil {
		return err
	}
	if answer.Rcode != miekg.RcodeSuccess {
		return fmt.Errorf("name server %s says %s", s.address, miekg.RcodeToString[answer.Rcode])
	}
	return nil
}

// exchange signs a message and returns its answer, which is signed where it is
// no refusal.
func (s *Server) exchange(ctx context.Context, m *miekg.Msg) (*miekg.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, updateFor)
	defer cancel()
	m.SetTsig(s.key, s.algorithm, tsigFudge, s.clock.Wall().Unix())
	answer, _, err := s.client.ExchangeContext(ctx, m, s.address)
	if err != nil {
		return nil, fmt.Errorf("name server %s: %w", s.address, err)
	}
	accepted := answer.Rcode == miekg.RcodeSuccess || answer.Rcode == miekg.RcodeNameError
	if accepted && answer.IsTsig() == nil { // the client checks only a signature that is there
		return nil, fmt.Errorf("name server %s did not sign its answer", s.address)
	}
	return answer, nil
}

// record is what a name has: an address, or another name.
func record(name, address string) (miekg.RR, error) {
	header := miekg.RR_Header{Name: name, Class: miekg.ClassINET, Ttl: recordTTL}
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		if _, ok := miekg.IsDomainName(address); !ok || !strings.Contains(strings.TrimSuffix(address, "."), ".") {
			return nil, fmt.Errorf("publish %s: %q is neither an address nor a host name", name, address)
		}
		header.Rrtype = miekg.TypeCNAME
		return &miekg.CNAME{Hdr: header, Target: miekg.CanonicalName(address)}, nil
	case ip.Unmap().Is4():
		header.Rrtype = miekg.TypeA
		return &miekg.A{Hdr: header, A: net.IP(ip.Unmap().AsSlice())}, nil
	}
	header.Rrtype = miekg.TypeAAAA
	return &miekg.AAAA{Hdr: header, AAAA: net.IP(ip.WithZone("").AsSlice())}, nil
}
