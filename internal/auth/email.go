package auth

import (
	"net/netip"
	"strings"
)

// MaxEmail is the longest address, in characters.
const MaxEmail = 255

// CleanEmail trims an address and checks its form: printable ASCII name@host
// (international hosts in their xn-- form). The faults are ErrEmailMissing,
// ErrEmailInvalid and ErrEmailLong.
func CleanEmail(raw string) (string, error) {
	email := strings.TrimSpace(raw)
	if email == "" {
		return "", ErrEmailMissing
	}
	if len(email) > MaxEmail {
		return "", ErrEmailLong
	}
	name, host, _ := strings.Cut(email, "@")
	if !validName(name) || !validHost(host) {
		return "", ErrEmailInvalid
	}
	return email, nil
}

// FoldEmail is the form in which addresses are compared: without case, and
// with nothing else taken away.
func FoldEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func validName(name string) bool {
	if name == "" || len(name) > 64 || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>@[\]`, r)
	})
}

func validHost(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
	}
	return len(labels) > 1 || strings.EqualFold(host, "localhost")
}

// cleanText makes what a client said about itself fit to store: valid, without
// control characters, at most limit bytes.
func cleanText(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// network is the part of an IP address that stands for one customer: the whole
// of an IPv4 address, the first 64 bits of an IPv6 one.
func network(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}
