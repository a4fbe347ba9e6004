// Package agentedge serves the agent API, /agent/v1, to the agents in pods: on
// the node's listener and on every sandbox pod's socket. It decides nothing;
// every call needs the token of an open instance, but for objects of the
// folder store, whose URLs are rights themselves.
package agentedge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pod"
)

// Faults of the edge itself.
var (
	// ErrBody occurs when a body is not the JSON it should be.
	ErrBody = fault.New(fault.Malformed, "agent_body", "The body is not valid.")
	// ErrPath occurs for a path that the agent API does not have.
	ErrPath = fault.New(fault.NotFound, "agent_path", "There is no such call.")
)

// maxBody bounds a call's JSON: a commit carries a snapshot object and the
// names of what is new.
const maxBody = 8 << 20

// New returns the handler of /agent/v1. objects serves the folder store's
// grants; nil when the store is elsewhere, at the host and port store.
func New(pods *pod.Service, objects http.Handler, store string, logger *slog.Logger) http.Handler {
	e := &edge{pods: pods, logger: logger}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+agentapi.PathHello, call(e, e.pods.Hello))
	mux.HandleFunc("POST "+agentapi.PathChecked, call(e, quiet(e.pods.Checked)))
	mux.HandleFunc("GET "+agentapi.PathSpeed, e.speed)
	mux.HandleFunc("POST "+agentapi.PathLease, call(e, e.pods.Lease))
	mux.HandleFunc("POST "+agentapi.PathSign, call(e, e.pods.Sign))
	mux.HandleFunc("POST "+agentapi.PathCommit, call(e, e.pods.Commit))
	mux.HandleFunc("POST "+agentapi.PathRestored, call(e, quiet(e.pods.Restored)))
	mux.HandleFunc("POST "+agentapi.PathFailed, call(e, quiet(e.pods.Failed)))
	if objects != nil {
		mux.Handle(agentapi.PathObject, objects)
	}
	if store != "" {
		mux.Handle("GET "+agentapi.PathStore, e.relay(store))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { e.refuse(w, r, ErrPath) })
	return mux
}

type edge struct {
	pods   *pod.Service
	logger *slog.Logger
}

// quiet adapts a call without an answer.
func quiet[I any](fn func(context.Context, *pod.Agent, I) error) func(context.Context, *pod.Agent, I) (struct{}, error) {
	return func(ctx context.Context, a *pod.Agent, in I) (struct{}, error) {
		return struct{}{}, fn(ctx, a, in)
	}
}

// call makes a handler of one agent call.
func call[I, O any](e *edge, fn func(context.Context, *pod.Agent, I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		agent, err := e.authenticate(r)
		if err != nil {
			e.refuse(w, r, err)
			return
		}
		var in I
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
			e.refuse(w, r, ErrBody.Because(err))
			return
		}
		out, err := fn(r.Context(), agent, in)
		if err != nil {
			e.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			e.logger.DebugContext(r.Context(), "agent went away", "err", err)
		}
	}
}

// authenticate finds the agent that calls by its token.
func (e *edge) authenticate(r *http.Request) (*pod.Agent, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, pod.ErrAgentToken
	}
	return e.pods.Authenticate(r.Context(), token)
}

// speed sends as many bytes as an agent asks for, so that it sees how fast they come.
func (e *edge) speed(w http.ResponseWriter, r *http.Request) {
	if _, err := e.authenticate(r); err != nil {
		e.refuse(w, r, err)
		return
	}
	n, err := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
	if err != nil || n < 1 || n > agentapi.MaxSpeed {
		e.refuse(w, r, ErrBody)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	hum := noise(0x9e3779b97f4a7c15)
	if _, err := io.CopyN(w, &hum, n); err != nil {
		e.logger.DebugContext(r.Context(), "agent went away", "err", err)
	}
}

// noise reads as bytes that do not compress, for ever.
type noise uint64

func (x *noise) Read(p []byte) (int, error) {
	for i := range p {
		*x ^= *x << 13
		*x ^= *x >> 7
		*x ^= *x << 17
		p[i] = byte(*x)
	}
	return len(p), nil
}

// statusOf is what an agent reads of a fault's kind; others are 500.
var statusOf = map[fault.Kind]int{
	fault.Malformed: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Invalid: http.StatusUnprocessableEntity, fault.TooMany: http.StatusTooManyRequests,
	fault.Unavailable: http.StatusServiceUnavailable,
}

func (e *edge) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := agentapi.Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "Something went wrong on our side."}
	if f := fault.Of(err); f != nil && statusOf[f.Kind] != 0 {
		p = agentapi.Problem{Status: statusOf[f.Kind], Code: f.Code, Detail: f.Detail}
	}
	if p.Status == http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		e.logger.ErrorContext(r.Context(), "agent call failed", "path", r.URL.Path, "err", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	if err := json.NewEncoder(w).Encode(p); err != nil {
		e.logger.DebugContext(r.Context(), "agent went away", "err", err)
	}
}
