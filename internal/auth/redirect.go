package auth

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Redirect returns where a sign-in may lead: raw, without its fragment, when
// its origin is the public one or one of those configured, and the public
// origin otherwise. What is refused is never echoed.
func (s *Service) Redirect(raw string) string {
	if raw == "" || len(raw) > 2000 || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return s.PublicURL
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Opaque != "" || strings.Contains(u.Host, "@") {
		return s.PublicURL
	}
	if !slices.Contains(s.origins, origin(u)) {
		return s.PublicURL
	}
	target := origin(u) + u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	return target
}

// origin is the scheme, host and port of u, in the form browsers compare them.
func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch {
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}

func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
