// Package gotrue speaks the part of the GoTrue protocol that the browser's
// auth client uses, under /auth/v1. It translates between HTTP and auth and
// decides nothing.
//
// What always holds: every answer but the confirmation page and redirects is
// JSON, also for unknown paths and methods; opening a link by GET or HEAD
// changes nothing; no session token is ever in an address.
package gotrue

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/clock"
)

const (
	prefix  = "/auth/v1"
	maxBody = 64 << 10
)

// Deps are what a handler is made of.
type Deps struct {
	Auth      *auth.Service
	Clock     *clock.Clock
	Logger    *slog.Logger
	PublicURL string // where browsers find this server
	Version   string // of this server, for /health; may be empty
	// ClientIP says where a request comes from; nil takes the peer's address.
	ClientIP func(*http.Request) string
}

// A handler serves /auth/v1.
type handler struct {
	Deps
	secure bool // browsers come by https
	guard  *http.CrossOriginProtection
	routes map[string]route
}

// A route is one path: its methods, and the content types its bodies may have.
type route struct {
	methods map[string]http.HandlerFunc
	types   []string // nil: bodies are not read
}

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// New returns the handler of every path under /auth/v1.
func New(deps Deps) http.Handler {
	if deps.ClientIP == nil {
		deps.ClientIP = peerIP
	}
	h := &handler{Deps: deps, guard: http.NewCrossOriginProtection()}
	if u, err := url.Parse(deps.PublicURL); err == nil {
		h.secure = u.Scheme == "https"
		_ = h.guard.AddTrustedOrigin(u.Scheme + "://" + u.Host) // an odd address is refused by auth.New
	}
	only := func(method string, f http.HandlerFunc) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{method: f}
	}
	read := func(f http.HandlerFunc) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{http.MethodGet: f, http.MethodHead: f}
	}
	h.routes = map[string]route{
		"/otp":    {methods: only(http.MethodPost, h.otp), types: []string{typeJSON}},
		"/token":  {methods: only(http.MethodPost, h.token), types: []string{typeJSON}},
		"/logout": {methods: only(http.MethodPost, h.logout)},
		"/user":   {methods: read(h.user)},
		"/verify": {methods: map[string]http.HandlerFunc{
			http.MethodGet: h.openLink, http.MethodHead: h.openLink, http.MethodPost: h.verify,
		}, types: []string{typeJSON, typeForm}},
		"/.well-known/jwks.json": {methods: read(h.jwks)},
		"/settings":              {methods: read(h.settings)},
		"/health":                {methods: read(h.health)},
	}
	return h
}

// ServeHTTP finds the route and refuses what no route takes.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	echoVersion(header, r)
	rt, ok := h.routes[strings.TrimPrefix(r.URL.Path, prefix)]
	if !ok || !strings.HasPrefix(r.URL.Path, prefix+"/") {
		h.fail(w, r, errNotFound)
		return
	}
	serve, ok := rt.methods[r.Method]
	if !ok {
		header.Set("Allow", rt.allow())
		h.fail(w, r, errMethod)
		return
	}
	if err := h.guard.Check(r); err != nil {
		h.fail(w, r, errCrossOrigin.Because(err))
		return
	}
	if r.Method == http.MethodPost && rt.types != nil && !rt.reads(r) {
		h.fail(w, r, errContentType)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	serve(w, r)
}

// allow lists the methods of a route in a fixed order.
func (rt route) allow() string {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		if rt.methods[m] != nil {
			methods = append(methods, m)
		}
	}
	return strings.Join(methods, ", ")
}

// reads says that the route takes the body's content type. A body without one
// is taken for JSON.
func (rt route) reads(r *http.Request) bool {
	got := contentType(r)
	for _, t := range rt.types {
		if got == t {
			return true
		}
	}
	return false
}

func contentType(r *http.Request) string {
	v := r.Header.Get("Content-Type")
	if v == "" {
		return typeJSON
	}
	v, _, _ = strings.Cut(v, ";")
	return strings.ToLower(strings.TrimSpace(v))
}

// client describes where r comes from.
func (h *handler) client(r *http.Request) auth.Client {
	return auth.Client{IP: h.ClientIP(r), UserAgent: r.UserAgent()}
}

func peerIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// write answers with JSON.
func (h *handler) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.Logger.DebugContext(r.Context(), "auth answer not delivered", "error", err)
	}
}
