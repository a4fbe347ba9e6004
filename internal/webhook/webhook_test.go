package webhook_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/wallet"
	"homeport.dev/homeport/internal/webhook"
)

const secret = "whsec_of_this_test"

// A reader is a processor that only reads events.
type reader struct{ payment.Processor }

func (reader) Source() wallet.Source { return wallet.Test }
func (reader) Minimum() money.USD    { return money.Cent }
func (reader) Verify(body []byte, signature string, wall time.Time) (payment.Event, error) {
	return payment.Open(body, signature, secret, false, wall)
}

func TestAnswersToEvents(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	now := clock.Fixed(time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC))
	logger := slog.New(slog.DiscardHandler)
	payments := payment.New(payment.Deps{Pool: pool, Clock: now.Clock, Logger: logger, Processor: reader{}})
	h := webhook.New(payments, logger)
	event := `{"id":"evt_1","object":"event","api_version":"` + stripe.APIVersion + `","type":"ping","livemode":false,"data":{"object":{"id":"x"}}}`
	sign := func(body string) string {
		return stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{
			Payload: []byte(body), Secret: secret, Timestamp: now.Wall(),
		}).Header
	}
	large := strings.Repeat(" ", payment.MaxEventSize) + event
	live := strings.Replace(event, `"livemode":false`, `"livemode":true`, 1)
	tests := map[string]struct {
		method, body, signature string
		handler                 http.Handler
		status                  int
		code                    string
	}{
		"handled":        {"POST", event, sign(event), h, 200, ""},
		"handled before": {"POST", event, sign(event), h, 200, ""},
		"not signed":     {"POST", event, "", h, 400, "event_signature"},
		"live":           {"POST", live, sign(live), h, 400, "event_mode"},
		"too large":      {"POST", large, sign(large), h, 413, "event_too_large"},
		"read":           {"GET", "", "", h, 405, "method_not_allowed"},
		"not set up":     {"POST", event, sign(event), webhook.New(payment.New(payment.Deps{}), logger), 503, "payments_not_set_up"},
	}
	check := func(name string) {
		test := tests[name]
		r := httptest.NewRequest(test.method, "/webhooks/stripe", strings.NewReader(test.body))
		r.Header.Set("Stripe-Signature", test.signature)
		w := httptest.NewRecorder()
		test.handler.ServeHTTP(w, r)
		var body struct{ Code, Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Errorf("%s: the body is no JSON: %v", name, err)
		}
		if w.Code != test.status || body.Code != test.code || (test.code == "") != (body.Detail == "") {
			t.Errorf("%s: answered %d %s, want %d %s", name, w.Code, w.Body, test.status, test.code)
		}
	}
	for name := range tests {
		check(name)
	}
	pool.Close() // from here on nothing can be handled
	tests["down"] = tests["handled"]
	down := tests["down"]
	down.status, down.code = 500, "internal"
	tests["down"] = down
	check("down")
}
