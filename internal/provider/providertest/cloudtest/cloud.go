// Package cloudtest makes doubles of real clouds: an HTTP server with a book of
// machines that live in real time, which goes wrong as clouds go wrong, and
// writes down what it held when. Its Dialect gives it a cloud's paths and
// words. A double is a providertest.Control; it fails its test when two machines
// of one name were alive at once, and when a request does not fit the cloud's
// published description (see Describe).
package cloudtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
)

// The operations, as providertest names them.
const (
	Offers    = "offers"
	Check     = "check" // a look at one offer just before a launch
	Launch    = "launch"
	Find      = "find"
	Terminate = "terminate"
)

// A Dialect is how one cloud speaks.
type Dialect struct {
	// Operation says which operation a request is; "" = none that goes wrong.
	Operation func(r *http.Request) string
	// Authorized says whether the request shows the right key.
	Authorized func(r *http.Request) bool
	// Routes are the cloud's calls, below Base.
	Routes func(c *Cloud, mux *http.ServeMux)
	Base   string // path of the API, e.g. /v1
	// Refusals are the cloud's own words, by "operation/kind": "launch/no_capacity".
	Refusals map[string]Answer
	// Kinds are further faults, "operation/kind", that Routes play by Fault.
	Kinds []string
}

// An Answer is what a cloud says instead of doing anything.
type Answer struct {
	Status int
	Body   string
	Header map[string]string
}

// Times of a double, short so that tests are.
const (
	bootsIn   = 100 * time.Millisecond
	lateBy    = 300 * time.Millisecond
	endsIn    = 500 * time.Millisecond // of a slow end
	addressIn = 300 * time.Millisecond // of a machine that is active without an address
	lagFor    = 30 * time.Second       // machines younger than this are not listed, with a lag
)

// A Cloud is one double.
type Cloud struct {
	Dialect
	URL   string // base URL for the adapter
	Clock *clock.Clock

	t        testing.TB
	mu       sync.Mutex
	book     []*Machine // ended ones, too
	faults   map[string]*fault
	requests []Request
	host     Host // nil: machines are in the book only
	over     chan struct{}
	later    sync.WaitGroup
	check    *checker
}

type fault struct {
	kind string
	left int
}

// A Request is one that the double got.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	At                  time.Time
}

// New starts a double; it ends with the test.
func New(t testing.TB, d Dialect) *Cloud {
	t.Helper()
	c := &Cloud{Dialect: d, Clock: clock.New(), t: t, faults: map[string]*fault{}, over: make(chan struct{})}
	mux := http.NewServeMux()
	d.Routes(c, mux)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(mux, w, r) }))
	c.URL = server.URL + d.Base
	t.Cleanup(func() {
		server.Close()
		close(c.over)
		c.later.Wait()
		c.audit()
	})
	return c
}

// anyOf are the faults that the double plays by itself, by operation.
var anyOf = map[string][]string{
	Offers:    {"error", "malformed", "slow", "slow_body", "rate_limited", "rate_limited_unsaid", "price_moved", "unauthorized"},
	Launch:    {"error_before", "error_after", "late", "hang_after", "malformed", "slow_body", "never_boots", "boot_fails", "no_address", "rate_limited", "rate_limited_unsaid"},
	Find:      {"error", "malformed", "empty", "lag", "rate_limited"},
	Terminate: {"error", "slow", "gone", "rate_limited"},
}

// Inject implements providertest.Control.
func (c *Cloud) Inject(t *testing.T, op, kind string, times int) bool {
	t.Helper()
	_, word := c.Refusals[op+"/"+kind]
	if !word && !slices.Contains(anyOf[op], kind) && !slices.Contains(c.Kinds, op+"/"+kind) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[op] = &fault{kind, times}
	return true
}

// Clear implements providertest.Control.
func (c *Cloud) Clear(*testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.faults)
}

// Machines implements providertest.Control.
func (c *Cloud) Machines(*testing.T) []string {
	var names []string
	for _, m := range c.held() {
		names = append(names, m.Name)
	}
	return names
}

// Requests lists what the double got, in order.
func (c *Cloud) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

type faultKey struct{}

// Fault is what goes wrong with a request, for Routes to play; "" = nothing.
func Fault(r *http.Request) string {
	kind, _ := r.Context().Value(faultKey{}).(string)
	return kind
}

// take uses one call of the fault in force.
func (c *Cloud) take(op string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op == Check { // only the price is looked at, and it moves for the launch
		if f := c.faults[Launch]; f == nil || f.kind != "price_moved" {
			return ""
		}
		op = Launch
	}
	f := c.faults[op]
	if f == nil {
		return ""
	}
	if f.left--; f.left == 0 {
		delete(c.faults, op)
	}
	return f.kind
}

// serve answers a request, or has it go wrong.
func (c *Cloud) serve(mux http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Errorf("read a request: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	c.requests = append(c.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body, c.Clock.Wall()})
	c.mu.Unlock()
	if !c.Authorized(r) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	c.check.request(c.t, c.Base, r, body)
	op := c.Operation(r)
	kind := c.take(op)
	if a, ok := c.Refusals[op+"/"+kind]; ok {
		a.write(w)
		return
	}
	// What the cloud does, it does whether or not the caller waits for it.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), faultKey{}, kind)
	do := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		again := r.WithContext(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(rec, again)
		return rec
	}
	switch c.play(kind, w, r, do) {
	case true:
		return
	default:
		rec := do()
		c.check.response(c.t, c.Base, r, rec)
		copyAnswer(w, rec)
	}
}

// play has a request go wrong in a way that is the same for all clouds.
func (c *Cloud) play(kind string, w http.ResponseWriter, r *http.Request, do func() *httptest.ResponseRecorder) bool {
	switch kind {
	case "error", "error_before":
		http.Error(w, "internal error", http.StatusInternalServerError)
	case "error_after":
		do()
		http.Error(w, "internal error", http.StatusInternalServerError)
	case "late":
		c.later.Go(func() {
			time.Sleep(lateBy)
			do()
		})
		http.Error(w, "gateway timeout", http.StatusGatewayTimeout)
	case "hang_after":
		do()
		<-r.Context().Done()
	case "malformed":
		do()
		_, _ = io.WriteString(w, `{"id": <html>`)
	case "slow":
		if c.Operation(r) != Offers {
			return false
		}
		<-r.Context().Done()
	case "slow_body":
		rec := do()
		w.WriteHeader(rec.Code)
		half := rec.Body.Bytes()[:rec.Body.Len()/2]
		_, _ = w.Write(half)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "rate_limited":
		Answer{Status: http.StatusTooManyRequests, Body: "slow down", Header: map[string]string{"Retry-After": "1"}}.write(w)
	case "rate_limited_unsaid":
		Answer{Status: http.StatusTooManyRequests, Body: "slow down"}.write(w)
	case "unauthorized":
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case "gone":
		do()
		http.Error(w, "not found", http.StatusNotFound)
	default:
		return false
	}
	return true
}

func (a Answer) write(w http.ResponseWriter) {
	for k, v := range a.Header {
		w.Header().Set(k, v)
	}
	if strings.HasPrefix(a.Body, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

func copyAnswer(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}
