package gotrue

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"

	"homeport.dev/homeport/internal/fault"
)

// Faults of the protocol itself.
var (
	// errNotFound occurs for a path that is not part of the protocol.
	errNotFound = fault.New(fault.NotFound, "not_found", "There is no such auth endpoint.")
	// errMethod occurs when a path does not take the method.
	errMethod = fault.New(fault.Malformed, "method_not_allowed", "This endpoint does not take that method.")
	// errContentType occurs when a body is neither JSON nor, for a link's form, a form.
	errContentType = fault.New(fault.Unsupported, "unsupported_media_type", "Send the request's body as JSON.")
	// errBody occurs when a body is not the JSON object that the endpoint reads.
	errBody = fault.New(fault.Malformed, "bad_json", "Could not read the request's body as JSON")
	// errTooLarge occurs when a body is longer than 64 KiB.
	errTooLarge = fault.New(fault.TooLarge, "request_too_large", "The request's body is too large.")
	// errCrossOrigin occurs when a page of another site made the browser ask.
	errCrossOrigin = fault.New(fault.Forbidden, "cross_origin", "This request came from another site.")
	// errInternal stands for whatever is not a fault. It is 503 and not 500: the
	// auth client ends the session of a user whose refresh gets a plain 500.
	errInternal = fault.New(fault.Unavailable, "unexpected_failure", "Something went wrong. Please try again.")
	// errNoToken occurs when a call that needs a session has no bearer token.
	errNoToken = fault.New(fault.Unauthenticated, "no_authorization", "This endpoint requires a valid Bearer token")
	// errPhone occurs when a sign-in by phone is asked for.
	errPhone = fault.New(fault.Malformed, "phone_provider_disabled", "Unsupported phone provider")
	// errChallenge occurs when a PKCE challenge is half there, or malformed.
	errChallenge = fault.New(fault.Malformed, "validation_failed", "PKCE flow requires code_challenge_method and code_challenge of 43 to 128 characters")
	// errVerifyType occurs when a link is redeemed as something it is not.
	errVerifyType = fault.New(fault.Malformed, "validation_failed", "Verify requires a verification type")
	// errVerifyToken occurs when a link is redeemed without its token.
	errVerifyToken = fault.New(fault.Malformed, "validation_failed", "Verify requires a token hash")
	// errVerifyOnly occurs when a token comes with an address or a phone number.
	errVerifyOnly = fault.New(fault.Malformed, "validation_failed", "Only the token_hash and type should be provided")
	// errRefreshMissing occurs when a refresh has no token.
	errRefreshMissing = fault.New(fault.Malformed, "validation_failed", "refresh_token required")
	// errGrant occurs when a token is asked for in a way that is not offered.
	errGrant = fault.New(fault.Malformed, "invalid_credentials", "unsupported_grant_type")
	// errPKCEFields occurs when a PKCE exchange lacks one of its two parts.
	errPKCEFields = fault.New(fault.Malformed, "validation_failed", "invalid request: both auth code and code verifier should be non-empty")
	// errFlow occurs for every PKCE exchange: links never carry a code.
	errFlow = fault.New(fault.NotFound, "flow_state_not_found", "invalid flow state, no valid flow state found")
)

// statuses are the HTTP statuses of the kinds of fault.
var statuses = map[fault.Kind]int{
	fault.Internal: http.StatusInternalServerError, fault.Malformed: http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized, fault.PaymentRequired: http.StatusPaymentRequired,
	fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound,
	fault.Conflict: http.StatusConflict, fault.TooLarge: http.StatusRequestEntityTooLarge,
	fault.Unsupported: http.StatusUnsupportedMediaType, fault.Invalid: http.StatusUnprocessableEntity,
	fault.TooMany: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable,
}

// A problem is an error in every shape at once: RFC 9457, and both that the
// auth client reads, of 2024-01-01 and before.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	ErrorCode string `json:"error_code"`
	Msg       string `json:"msg"`
}

// fail answers with err. What is not a fault is logged, and told as such.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.Of(err)
	if f == nil || f.Kind == fault.Internal {
		if r.Context().Err() == nil {
			h.Logger.ErrorContext(r.Context(), "auth request failed", "path", r.URL.Path, "error", err)
		}
		f = errInternal
	}
	status := statuses[f.Kind]
	if f.Code == errMethod.Code {
		status = http.StatusMethodNotAllowed
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("X-Sb-Error-Code", f.Code)
	if f.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	body := problem{
		Type: "urn:homeport:" + f.Code, Title: http.StatusText(status), Status: status, Detail: f.Detail,
		Code: f.Code, Message: f.Detail, ErrorCode: f.Code, Msg: f.Detail,
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.Logger.DebugContext(r.Context(), "auth answer not delivered", "error", err)
	}
}

const versionHeader = "X-Supabase-Api-Version"

var versionForm = regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

// echoVersion tells a client of the newer protocol that it is understood.
func echoVersion(header http.Header, r *http.Request) {
	header.Add("Vary", versionHeader)
	if asked := r.Header.Get(versionHeader); versionForm.MatchString(asked) && asked >= "2024-01-01" {
		header.Set(versionHeader, asked)
	}
}
