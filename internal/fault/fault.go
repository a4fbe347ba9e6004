// Package fault classifies the failures that a caller, or the user, is meant
// to act on. Each domain package declares its faults once, as variables;
// everything that is not a fault is an internal error whose text no user sees.
package fault

import (
	"errors"
	"fmt"
)

// A Kind is a coarse class of failure. The API maps each Kind to one HTTP status.
type Kind uint8

// The kinds, with the HTTP status the API gives them.
const (
	Internal        Kind = iota // 500: not classified, the text stays inside
	Malformed                   // 400: not JSON, not HTTP as we speak it
	Unauthenticated             // 401: no session, or a dead one
	PaymentRequired             // 402: money
	Forbidden                   // 403: plan or role
	NotFound                    // 404: not visible to you, also ids of other teams
	Conflict                    // 409: the state of things refuses it
	TooLarge                    // 413: the body is over its limit
	Unsupported                 // 415: not a content type we read
	Invalid                     // 422: input
	TooMany                     // 429: a limit
	Unavailable                 // 503: something upstream failed, try again
)

// An Error is a classified failure with a sentence fit to show to a user.
type Error struct {
	Kind       Kind
	Code       string // stable machine name, e.g. "volume_in_use"
	Detail     string // sentence shown to the user
	RetryAfter int    // seconds after which trying again makes sense; 0 = not said
	cause      error
}

// New returns a fault. Declare each once, as a package variable whose comment
// says when it occurs.
func New(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// Error returns the code and the cause: for logs, never for users.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.Code
	}
	return fmt.Sprintf("%s: %v", e.Code, e.cause)
}

// Unwrap returns the cause, if one was attached.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a fault of the same code, so that errors.Is
// matches a declared fault with its copies.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Because returns a copy of e that carries its cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// With returns a copy of e whose sentence is made from format and args, for
// faults that name a number or an id.
func (e *Error) With(format string, args ...any) *Error {
	c := *e
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// After returns a copy of e that tells the client to wait so many seconds.
func (e *Error) After(seconds int) *Error {
	c := *e
	c.RetryAfter = seconds
	return &c
}

// Of returns the fault in err's chain, or nil when there is none.
func Of(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
