package cloudapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/provider"
)

// A Failure is an answer with a status that is no success.
type Failure struct {
	Cloud  string
	Call   string // method and path
	Status int
	Body   []byte // as it came; may hold what must not be shown: never put into an error
	text   string // the body's beginning, without secrets
}

// Error says what came back, in few words and without secrets.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s: status %d: %s", f.Cloud, f.Call, f.Status, f.text)
}

// Says reports whether the body holds one of the words, whatever their case.
func (f *Failure) Says(words ...string) bool {
	body := strings.ToLower(string(f.Body))
	for _, w := range words {
		if strings.Contains(body, strings.ToLower(w)) {
			return true
		}
	}
	return false
}

// ByStatus is what a status alone says of a call: 402 is ErrFunds, one that
// refuses the request for good is ErrRefused, and anything else, 409 too, is
// no fault: something may have been made.
func (f *Failure) ByStatus() error {
	switch f.Status {
	case http.StatusPaymentRequired:
		return provider.ErrFunds
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return provider.ErrRefused
	}
	return nil
}

// maxShown bounds the part of an answer that is kept for the log.
const maxShown = 300

// failed makes the error of an answer that is no success.
func (c *Client) failed(ctx context.Context, call Call, res *http.Response, body []byte) error {
	f := &Failure{Cloud: c.Name, Call: call.Method + " " + call.Path, Status: res.StatusCode, Body: body}
	f.text = c.shown(call, body)
	if res.StatusCode == http.StatusTooManyRequests {
		return c.limited(ctx, call, res, f)
	}
	if res.StatusCode < 400 || res.StatusCode >= 500 {
		return f
	}
	verdict := f.ByStatus()
	if c.Refused != nil {
		verdict = c.Refused(f)
	}
	if of := fault.Of(verdict); of != nil {
		return of.Because(f)
	}
	return f
}

// shown is the beginning of a cloud's text, fit for a log.
func (c *Client) shown(call Call, body []byte) string {
	text := strings.ToValidUTF8(c.redact(call, string(body)), "")
	text = strings.Join(strings.Fields(text), " ")
	for len(text) > maxShown {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// limited makes ErrRateLimited of a 429 and has every node hold back for as
// long as the cloud asks.
func (c *Client) limited(ctx context.Context, call Call, res *http.Response, f *Failure) error {
	wait := retryAfter(res.Header)
	if rate, ok := c.rate(call.Class); ok {
		hold := wait
		if hold == 0 {
			hold = max(rate.Every, time.Second)
		}
		if err := c.Limiter.Hold(ctx, Bucket{c.account, call.Class}, rate, hold); err != nil {
			c.Logger.WarnContext(ctx, "a cloud's limit could not be shared", "cloud", c.account, "err", err)
		}
	}
	return provider.ErrRateLimited.After(seconds(wait)).Because(f)
}

// retryAfter reads how long the cloud wants to be left alone; 0 = not said. A
// date is left aside: its clock is not ours.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, 10*time.Minute)
}

// seconds is a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
