package payment_test

import (
	"errors"
	"testing"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
)

func TestAmountsOfATopUp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]money.USD{
		"0.01": money.Cent, "5": 5 * money.Dollar, "10000": 10_000 * money.Dollar, "25.50": 25*money.Dollar + 50*money.Cent,
		"1e2": 100 * money.Dollar,
	} {
		if got, err := payment.ParseAmount(text); err != nil || got != want {
			t.Errorf("%s: %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-5", "0.001", "0.009", "10000.01", "1.234", "ten", "NaN", "Infinity", "1e9", "99999999999999999999"} {
		if got, err := payment.ParseAmount(text); !errors.Is(err, payment.ErrAmount) {
			t.Errorf("%q was taken as %v (%v)", text, got, err)
		}
	}
}

func TestCheckoutRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	checkout := func(amount string) error {
		_, err := d.pay.CheckoutCredit(t.Context(), d.scope, payment.CreditRequest{Amount: amount}, idem.Request{})
		return err
	}
	if err := checkout("0.49"); !errors.Is(err, payment.ErrAmount) || fault.Of(err).Detail != "The minimum payment is $0.50" {
		t.Errorf("below the processor's minimum: %v", err)
	}
	d.bank.down = true
	if err := checkout("5"); !errors.Is(err, payment.ErrUnavailable) {
		t.Errorf("a processor that is down: %v", err)
	}
	d.bank.down = false
	if _, err := d.pool.Exec(t.Context(), `delete from membership`); err != nil {
		t.Fatal(err)
	}
	if err := checkout("5"); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("somebody who left the team meanwhile: %v", err)
	}
	none := payment.New(payment.Deps{Pool: d.pool, Clock: d.clock.Clock})
	if _, err := none.CheckoutCredit(t.Context(), d.scope, payment.CreditRequest{Amount: "5"}, idem.Request{}); !errors.Is(err, payment.ErrNotSetUp) {
		t.Errorf("without a processor: %v", err)
	}
}

func TestARepeatedRequestGetsTheSameCheckout(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	once := idem.Request{Scope: "someone", Key: "key", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	d.bank.down = true
	if _, err := d.pay.CheckoutCredit(t.Context(), d.scope, payment.CreditRequest{Amount: "5"}, once); err == nil {
		t.Fatal("a checkout came from a bank that is down")
	}
	d.bank.down = false
	var urls [2]string
	for i := range urls {
		var err error
		if urls[i], err = d.pay.CheckoutCredit(t.Context(), d.scope, payment.CreditRequest{Amount: "5"}, once); err != nil {
			t.Fatal(err)
		}
	}
	if urls[0] != urls[1] || len(d.bank.sessions) != 1 {
		t.Errorf("two checkouts %v for one key", urls)
	}
}
