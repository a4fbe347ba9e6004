// Package devdoor serves the development doors: the local mailbox, the test
// checkout and its bank, the clock and the sandbox's script. They exist only where the
// server is reached on this machine alone, and each only while its production
// setting is empty; package app decides that. The guard here is the second
// wall: to anybody who is not on this machine, the doors are not there.
package devdoor

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// Faults of the doors.
var (
	// ErrBody occurs when a door's body is not what it reads.
	ErrBody = fault.New(fault.Invalid, "door_body", "The body is not what this door reads.")
	// ErrClosed occurs when a door is not there.
	ErrClosed = fault.New(fault.NotFound, "door_closed", "There is no such call.")
)

// Deps is what the doors open to. A nil one is closed.
type Deps struct {
	Mailbox  *mailbox.Mailbox
	Checkout *testpay.Processor
	Sandbox  *sandbox.Sandbox
	// Advance moves business time forward and returns once every sweep that
	// came due has run; its answer is how far business time now runs ahead.
	Advance func(ctx context.Context, by time.Duration) (time.Duration, error)
	// Now reads business time and how far it runs ahead.
	Now       func() (time.Time, time.Duration)
	PublicURL string
	Logger    *slog.Logger
	// Fault writes a refusal as the API does.
	Fault func(w http.ResponseWriter, f *fault.Error)
}

type doors struct{ Deps }

// New returns the handler of /dev/ and /test-checkout/.
func New(d Deps) http.Handler {
	o := &doors{Deps: d}
	mux := http.NewServeMux()
	if d.Mailbox != nil {
		mux.HandleFunc("GET /dev/mailbox", o.mailboxPage)
		mux.HandleFunc("GET /dev/mailbox.json", o.mailboxList)
	}
	if d.Checkout != nil {
		mux.HandleFunc("GET /test-checkout/{id}", o.checkoutPage)
		mux.HandleFunc("POST /test-checkout/{id}", o.checkoutAct)
		mux.HandleFunc("GET /test-checkout/{id}/receipt", o.checkoutReceipt)
		mux.HandleFunc("GET /dev/payments", o.readPayments)
		mux.HandleFunc("POST /dev/payments", o.actPayment)
	}
	if d.Sandbox != nil {
		mux.HandleFunc("GET /dev/sandbox", o.readScript)
		mux.HandleFunc("POST /dev/sandbox", o.setScript)
		mux.HandleFunc("DELETE /dev/sandbox", o.clearScript)
	}
	mux.HandleFunc("GET /dev/clock", o.readClock)
	mux.HandleFunc("POST /dev/clock", o.moveClock)
	mux.HandleFunc("GET /dev/style.css", style)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { d.Fault(w, ErrClosed) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.local(r) {
			d.Fault(w, ErrClosed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// local reports whether a request was made on this machine, by no proxy and no
// foreign page.
func (o *doors) local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !loopback(host) {
		return false
	}
	name := r.Host
	if h, _, err := net.SplitHostPort(r.Host); err == nil {
		name = h
	}
	if !loopback(strings.Trim(name, "[]")) {
		return false
	}
	for header := range r.Header {
		if header == "Forwarded" || strings.HasPrefix(header, "X-Forwarded-") {
			return false
		}
	}
	origin := r.Header.Get("Origin")
	return r.Method == http.MethodGet || origin == "" || origin == o.PublicURL || sameHost(origin, r.Host)
}

func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host == host
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (o *doors) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		o.Logger.Debug("client went away", "err", err)
	}
}

// refuse answers with a fault, or with a plain 500 for everything else.
func (o *doors) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if f := fault.Of(err); f != nil {
		o.Fault(w, f)
		return
	}
	o.Logger.ErrorContext(r.Context(), "development door failed", "path", r.URL.Path, "err", err)
	http.Error(w, "The development door failed; see the log.", http.StatusInternalServerError)
}

func decode(w http.ResponseWriter, r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(into); err != nil {
		return ErrBody.Because(err)
	}
	return nil
}
