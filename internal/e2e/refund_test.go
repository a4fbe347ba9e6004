package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/apiclient"
)

// bank plays the payer's bank and returns what it answers.
func (s *server) bank(method, deed string) (status int, answer map[string]any) {
	s.t.Helper()
	var body io.Reader
	if deed != "" {
		body = strings.NewReader(deed)
	}
	res, text := fetch(s.t, method, s.url+"/dev/payments", body, "application/json")
	if err := json.Unmarshal(text, &answer); err != nil {
		s.t.Fatalf("/dev/payments answers %s", text)
	}
	return res.StatusCode, answer
}

// TestDisputedMoneyIsDebited pays, and lets the card's owner have it back: by a
// refund and by a dispute that is won in the end, with events that come twice
// and in any order.
func TestDisputedMoneyIsDebited(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	if status, _ := s.bank(http.MethodPost, `{"chaos":{"duplicate":true,"reorder":true}}`); status != http.StatusOK {
		t.Fatalf("chaos is answered with %d", status)
	}
	u.pay("25.00")
	_, ledger := s.bank(http.MethodGet, "")
	paid := ledger["payments"].([]any)[0].(map[string]any)["id"].(string)
	if status, _ := s.bank(http.MethodPost, `{"refund":"`+paid+`","amount":"5.00"}`); status != http.StatusOK {
		t.Fatalf("a refund is answered with %d", status)
	}
	_, dispute := s.bank(http.MethodPost, `{"dispute":"`+paid+`"}`)
	u.wantBalance("-5")
	u.addKey()
	volume, err := u.CreateVolume(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.createOnce(u.order(u.offer("H100_80GB"), volume.ID), "disputed")
	var refusal *apiclient.Refusal
	if !errors.As(err, &refusal) || refusal.Status != http.StatusPaymentRequired || !strings.Contains(refusal.Detail, "disputed") {
		t.Errorf("a pod of a team whose payment is disputed: %v", err)
	}
	if status, _ := s.bank(http.MethodPost, `{"win":"`+dispute["id"].(string)+`"}`); status != http.StatusOK {
		t.Fatalf("a dispute won is answered with %d", status)
	}
	u.wantBalance("20")
	rows, err := u.Transactions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, row := range rows {
		kinds[row.TransactionType]++
		if row.TransactionType == "debit" && !strings.HasPrefix(string(row.Amount), "-") {
			t.Errorf("a debit of %s", row.Amount)
		}
	}
	if kinds["credit"] != 2 || kinds["debit"] != 2 || len(rows) != 4 {
		t.Errorf("the history is %+v", rows)
	}
}

func (u *user) wantBalance(want string) {
	u.t.Helper()
	untilFor(u.t, 15*time.Second, "a balance of "+want, func() bool {
		b, err := u.Balance(u.t.Context())
		return err == nil && strings.TrimRight(strings.TrimRight(string(b.Balance), "0"), ".") == strings.TrimRight(want, "0")
	})
}

// TestNoTestMoneyBesideStripe starts with a key: the test checkout is not there.
func TestNoTestMoneyBesideStripe(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start("HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1", "HOMEPORT_STRIPE_API_BASE=http://127.0.0.1:9")
	for _, path := range []string{"/dev/payments", "/test-checkout/cs_test_1"} {
		if res, _ := fetch(t, http.MethodGet, s.url+path, nil, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d beside a Stripe key", path, res.StatusCode)
		}
	}
	u := s.signIn()
	for amount, want := range map[string]string{"0.49": "The minimum payment is $0.50", "5": "The payment provider cannot be reached"} {
		_, err := u.CheckoutCredit(t.Context(), amount)
		var refusal *apiclient.Refusal
		if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Detail, want) {
			t.Errorf("%s dollars: %v, want %q", amount, err, want)
		}
	}
}
