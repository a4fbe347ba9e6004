package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/provider"
)

// What a call may take, at most, and how much of an answer is read.
const (
	readFor = 15 * time.Second
	makeFor = 40 * time.Second // two of them fit into a launch
	maxBody = 64 << 20         // bytes
)

// engine is one Docker engine. Every call goes through do.
type engine struct{ *client.Client }

// newEngine makes the client of a host's engine. It calls nobody; the API's
// version is agreed with the first call.
func newEngine(h Host) (*engine, error) {
	t, scheme, err := transportTo(h)
	if err != nil {
		return nil, err
	}
	c, err := client.New(
		// The address stands for any: transportTo knows where the engine is.
		client.WithHost("tcp://engine.invalid:80"),
		client.WithHTTPClient(&http.Client{Transport: &watched{t}, CheckRedirect: client.CheckRedirect}),
		client.WithScheme(scheme), client.WithUserAgent("homeport"),
	)
	if err != nil {
		return nil, fmt.Errorf("engine of %s: %w", h.Name, err)
	}
	return &engine{c}, nil
}

// A failure is a call that the engine did not grant.
type failure struct {
	status int    // 0 = no answer
	text   string // what it said, without secrets
	cause  error
}

// Error says what came back, in few words.
func (f *failure) Error() string {
	if f.status == 0 {
		return f.text
	}
	return fmt.Sprintf("status %d: %s", f.status, f.text)
}

// Unwrap returns the client's error.
func (f *failure) Unwrap() error { return f.cause }

// says reports whether the answer holds one of the words, whatever their case.
func (f *failure) says(words ...string) bool {
	text := strings.ToLower(f.text)
	for _, w := range words {
		if strings.Contains(text, strings.ToLower(w)) {
			return true
		}
	}
	return false
}

// failed returns the failure in an error's chain.
func failed(err error) (*failure, bool) {
	var f *failure
	return f, errors.As(err, &f)
}

func notFound(err error) bool {
	f, ok := failed(err)
	return ok && f.status == http.StatusNotFound
}

// do makes a call within its time. Its error is ErrUnreachable when nothing was
// sent, ErrRateLimited on a 429, else a *failure, after which the engine may
// have acted unless its status and words say otherwise. hide is in no error.
func do(ctx context.Context, limit time.Duration, call func(ctx context.Context) error, hide ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	seen := &trace{}
	err := call(context.WithValue(ctx, traceKey{}, seen))
	if err == nil {
		return nil
	}
	f := &failure{status: int(seen.status.Load()), text: shown(err.Error(), hide), cause: err}
	switch {
	case f.status == http.StatusTooManyRequests:
		return provider.ErrRateLimited.After(int(seen.after.Load())).Because(f)
	case !seen.sent.Load() && !errors.Is(err, context.Canceled):
		return provider.ErrUnreachable.Because(f)
	}
	return f
}

// maxShown bounds the part of an answer that is kept.
const maxShown = 300

// shown is the beginning of the engine's text, fit for a log.
func shown(text string, hide []string) string {
	for _, secret := range hide {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[hidden]")
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	for len(text) > maxShown {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// trace is what is known of the newest request of a call.
type trace struct {
	sent   atomic.Bool
	status atomic.Int64
	after  atomic.Int64 // seconds
}

type traceKey struct{}

// watched writes down what became of each request, which the client's errors do
// not say: whether a connection was there, and the status.
type watched struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	seen, ok := r.Context().Value(traceKey{}).(*trace)
	if !ok {
		seen = &trace{}
	}
	seen.sent.Store(false)
	seen.status.Store(0)
	res, err := w.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { seen.sent.Store(true) },
	})))
	if err != nil {
		return nil, err
	}
	seen.status.Store(int64(res.StatusCode))
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		seen.after.Store(int64(min(n, 600)))
	}
	// A start that is granted has no body; anything else may come from what
	// stands before the engine.
	if strings.HasSuffix(r.URL.Path, "/start") && res.StatusCode == http.StatusOK {
		_ = res.Body.Close()
		return nil, errors.New("the answer is not one of the engine's")
	}
	if !strings.HasSuffix(r.URL.Path, "/images/create") { // its progress has no bound
		res.Body = &bounded{io.LimitReader(res.Body, maxBody), res.Body}
	}
	return res, nil
}

// bounded is a body that ends early rather than never.
type bounded struct {
	io.Reader
	io.Closer
}
