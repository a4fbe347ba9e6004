// Package webhook speaks HTTP with payment processors: it takes what they post
// to /webhooks/stripe to package payment and answers so that they send again
// exactly what was not handled. It decides nothing.
package webhook

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/payment"
)

// New returns the handler of POST /webhooks/stripe. It answers 200 to events
// that are handled, now or before, 4xx to what is no event of ours, and 500 or
// 503 to what should be sent again.
func New(payments *payment.Service, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		err := receive(w, req, payments)
		if err == nil {
			answer(w, http.StatusOK, map[string]any{"received": true})
			return
		}
		f := fault.Of(err)
		if f == nil {
			logger.ErrorContext(req.Context(), "a payment event failed", slog.Any("err", err))
			f = errFailed
		} else {
			logger.WarnContext(req.Context(), "a payment event was refused", slog.Any("err", err))
		}
		refuse(w, f)
	})
}

// errMethod occurs for anything but a POST.
var errMethod = fault.New(fault.Unsupported, "method_not_allowed", "Post events here.")

// errBody occurs when the body breaks off.
var errBody = fault.New(fault.Malformed, "event_unreadable", "The event could not be read.")

// errFailed occurs when the handling of an event fails inside.
var errFailed = fault.New(fault.Internal, "internal", "The event could not be handled. Please send it again.")

func receive(w http.ResponseWriter, req *http.Request, payments *payment.Service) error {
	if req.Method != http.MethodPost {
		return errMethod
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, payment.MaxEventSize))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return payment.ErrTooLarge
	}
	if err != nil {
		return errBody.Because(err)
	}
	return payments.Receive(req.Context(), body, req.Header.Get("Stripe-Signature"))
}

// refuse writes a fault as RFC 9457 JSON. It is not the API's, whose callers
// are users: a processor only reads the status.
func refuse(w http.ResponseWriter, f *fault.Error) {
	var status int
	switch f.Kind {
	case fault.Malformed:
		status = http.StatusBadRequest
	case fault.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case fault.Unsupported:
		status = http.StatusMethodNotAllowed
		w.Header().Set("Allow", http.MethodPost)
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
	default:
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/problem+json")
	answer(w, status, map[string]any{
		"type": "urn:homeport:" + f.Code, "title": http.StatusText(status), "status": status, "detail": f.Detail, "code": f.Code,
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
