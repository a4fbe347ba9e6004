package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/fault"
)

// A Problem is the body of every refusal (RFC 9457). Clients match its code,
// people read its detail.
type Problem struct {
	Type     string `json:"type" doc:"urn:homeport:<code>"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail" doc:"A sentence for the user."`
	Code     string `json:"code" doc:"Stable; see docs/codes.md."`
	Instance string `json:"instance,omitempty" doc:"The request's id."`

	retryAfter int
}

// Error returns the code.
func (p *Problem) Error() string { return p.Code }

// GetStatus returns the HTTP status; Huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of RFC 9457; Huma asks for it.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// Faults of the HTTP layer itself.
var (
	// ErrNoSession occurs when a call that needs a session has none.
	ErrNoSession = fault.New(fault.Unauthenticated, "no_session", "Please sign in.")
	// ErrNoPath occurs for a path that the API does not have.
	ErrNoPath = fault.New(fault.NotFound, "no_such_path", "There is no such call. The API is described at /api/openapi.json.")
	// ErrMethod occurs when a path has no such method.
	ErrMethod = fault.New(fault.Malformed, "method_not_allowed", "This call does not exist with this method.")
	// ErrInternal occurs when something failed that is not the caller's doing.
	ErrInternal = fault.New(fault.Internal, "internal", "Something went wrong on our side. Please try again.")
	// ErrBadInput occurs when the HTTP layer refuses a body or parameter; its detail says which.
	ErrBadInput = fault.New(fault.Invalid, "invalid_input", "The request is not valid.")
	// ErrMalformed occurs when a body is not JSON.
	ErrMalformed = fault.New(fault.Malformed, "malformed", "The body is not valid JSON.")
	// ErrBodyTooLarge occurs when a body is over its limit.
	ErrBodyTooLarge = fault.New(fault.TooLarge, "body_too_large", "The body is too large.")
	// ErrContentType occurs when a body is not application/json.
	ErrContentType = fault.New(fault.Unsupported, "content_type", "The body must be application/json.")
)

// statusOf is the one place where a fault becomes a status.
var statusOf = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Malformed:       http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.PaymentRequired: http.StatusPaymentRequired,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unsupported:     http.StatusUnsupportedMediaType,
	fault.Invalid:         http.StatusUnprocessableEntity,
	fault.TooMany:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

func problemOf(f *fault.Error) *Problem {
	status := statusOf[f.Kind]
	return &Problem{
		Type: "urn:homeport:" + f.Code, Title: http.StatusText(status), Status: status,
		Detail: f.Detail, Code: f.Code, retryAfter: f.RetryAfter,
	}
}

// problem turns any error into a Problem; only a fault's own text reaches the user.
func problem(ctx context.Context, logger *slog.Logger, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	f := fault.Of(err)
	if f == nil || f.Kind == fault.Internal {
		if !errors.Is(err, context.Canceled) {
			logger.ErrorContext(ctx, "request failed", "err", err)
		}
		f = ErrInternal
	}
	return problemOf(f)
}

// fromHuma makes a Problem of what Huma refuses by itself: it lifts the first
// message into the detail, because the page shows the detail.
func fromHuma(status int, msg string, errs ...error) huma.StatusError {
	detail := msg
	for _, err := range errs {
		if err == nil {
			continue
		}
		detail = sentence(err)
		break
	}
	f := ErrBadInput
	switch {
	case status == http.StatusRequestEntityTooLarge:
		f, detail = ErrBodyTooLarge, ErrBodyTooLarge.Detail
	case status == http.StatusUnsupportedMediaType:
		f, detail = ErrContentType, ErrContentType.Detail
	case status == http.StatusBadRequest:
		f = ErrMalformed
	case status >= http.StatusInternalServerError:
		f, detail = ErrInternal, ErrInternal.Detail
	}
	return problemOf(f.With("%s", detail))
}

// sentence writes a validation error for people: "gpu_count: expected integer".
func sentence(err error) string {
	var d *huma.ErrorDetail
	if errors.As(err, &d) {
		where := strings.TrimPrefix(strings.TrimPrefix(d.Location, "body."), "query.")
		if where == "" || where == "body" {
			return d.Message
		}
		return where + ": " + d.Message
	}
	return err.Error()
}

// notAllowed is the one refusal whose status no kind of fault has. It names
// the methods that the call does have.
func notAllowed(allow string) *Problem {
	p := problemOf(ErrMethod.With("This call takes %s, not this method.", allow))
	p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
	return p
}

// writeProblem answers outside Huma.
func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client went away
}

// refuse answers before Huma has read the request.
func refuse(ctx huma.Context, p *Problem) {
	ctx.SetHeader("Content-Type", p.ContentType(""))
	ctx.SetHeader("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		ctx.SetHeader("Retry-After", strconv.Itoa(p.retryAfter))
	}
	ctx.SetStatus(p.Status)
	_ = json.NewEncoder(ctx.BodyWriter()).Encode(p) // the client went away
}

// WriteFault answers with a fault, for handlers beside the API.
func WriteFault(w http.ResponseWriter, f *fault.Error) { writeProblem(w, problemOf(f)) }
