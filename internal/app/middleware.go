package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/id"
)

// requestIDHeader names a request in its answer and in the log.
const requestIDHeader = "X-Request-Id"

var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

// outer wraps everything that is served: every request has an id, a line in
// the log and a count, and no panic ends the process.
func (a *App) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rid := r.Header.Get(requestIDHeader)
		if !goodRequestID.MatchString(rid) {
			rid = id.New().String()
		}
		w.Header().Set(requestIDHeader, rid)
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		start := a.clock.Wall()
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, rid))
		defer a.finishRequest(rec, r, start)
		next.ServeHTTP(rec, r)
	})
}

// finishRequest logs and counts a request, and answers for one that panicked.
func (a *App) finishRequest(rec *recorder, r *http.Request, start time.Time) {
	v := recover()
	if err, _ := v.(error); v != nil && !errors.Is(err, http.ErrAbortHandler) {
		a.logger.ErrorContext(r.Context(), "request panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
		if !rec.wrote {
			api.WriteFault(rec, api.ErrInternal)
		}
	}
	took, part := a.clock.Wall().Sub(start), area(r.URL.Path)
	a.metrics.requests.WithLabelValues(r.Method, part, strconv.Itoa(rec.status)).Inc()
	a.metrics.seconds.WithLabelValues(r.Method, part).Observe(took.Seconds())
	level := slog.LevelDebug
	if rec.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	a.logger.LogAttrs(r.Context(), level, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", rec.status), slog.Duration("took", took))
	if err, _ := v.(error); errors.Is(err, http.ErrAbortHandler) {
		panic(err) // the server breaks the connection: who reads must not take half an answer for a whole one
	}
}

// withRequestID adds the request's id to every line logged with its context.
type withRequestID struct{ slog.Handler }

// Handle adds the id.
func (h withRequestID) Handle(ctx context.Context, r slog.Record) error {
	if rid, ok := ctx.Value(requestIDKey{}).(string); ok {
		r.AddAttrs(slog.String("request_id", rid))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper.
func (h withRequestID) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRequestID{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper.
func (h withRequestID) WithGroup(name string) slog.Handler {
	return withRequestID{h.Handler.WithGroup(name)}
}

type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer began.
func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

var areaOf = regexp.MustCompile(`^/(api/[a-z-]+|auth/v1|agent/v1/[a-z]+|agent/(?:install|bin)|webhooks|dev|test-checkout|assets)`)

// area is the part of a path that metrics are kept by: never an id.
func area(path string) string {
	if m := areaOf.FindString(path); m != "" {
		return m
	}
	return "page"
}

// secure sets the headers of every answer that a browser may show.
func (a *App) secure(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	if err := guard.AddTrustedOrigin(a.config.PublicURL); err != nil {
		a.logger.Error("public URL is no origin", "err", err)
	}
	guard.AddInsecureBypassPattern("POST /webhooks/stripe")
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { api.WriteFault(w, errCrossOrigin) }))
	guarded := guard.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Content-Security-Policy", a.csp)
		if a.https {
			h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
		}
		guarded.ServeHTTP(w, r)
	})
}
