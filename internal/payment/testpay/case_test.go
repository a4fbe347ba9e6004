package testpay_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// topUp pays an amount and returns the payment's id.
func (l *till) topUp(amount string) string {
	l.t.Helper()
	l.act(l.order(amount), testpay.Pay)
	l.deliver()
	ledger, err := l.cashier.Ledger(l.t.Context())
	if err != nil || len(ledger.Payments) == 0 {
		l.t.Fatalf("the ledger is %+v, %v", ledger, err)
	}
	return ledger.Payments[0].ID
}

// held reports whether the team may not start pods.
func (l *till) held() bool {
	l.t.Helper()
	err := pg.InTx(l.t.Context(), l.pool, func(tx pgx.Tx) error {
		return l.w.RequireTx(l.t.Context(), tx, l.scope.TeamID(), 0, l.clock.Now())
	})
	return errors.Is(err, wallet.ErrHeld)
}

func TestRefundsOfATestPayment(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	paid := l.topUp("25")
	first, err := l.cashier.Refund(t.Context(), paid, "10.00")
	if err != nil {
		t.Fatal(err)
	}
	l.deliver()
	l.want(15 * money.Dollar)
	if _, err := l.cashier.Refund(t.Context(), paid, "15.01"); !errors.Is(err, testpay.ErrCase) {
		t.Errorf("more than was paid: %v", err)
	}
	if _, err := l.cashier.Refund(t.Context(), paid, "0.001"); !errors.Is(err, payment.ErrAmount) {
		t.Errorf("less than a cent: %v", err)
	}
	if _, err := l.cashier.Refund(t.Context(), paid, ""); err != nil {
		t.Fatal(err)
	}
	l.deliver()
	l.want(0)
	for range 2 {
		if _, err := l.cashier.Settle(t.Context(), first.ID, "failed"); err != nil {
			t.Fatal(err)
		}
	}
	l.deliver()
	l.want(10 * money.Dollar)
	if _, err := l.cashier.Refund(t.Context(), "pi_test_none", ""); !errors.Is(err, testpay.ErrNoPayment) {
		t.Errorf("of no payment: %v", err)
	}
	told := as[stripe.Refund](t, l.events()["refund.created"][0])
	if told.PaymentIntent == nil || told.PaymentIntent.ID != paid || told.Charge == nil || told.Currency != "usd" {
		t.Errorf("the event says %+v", told)
	}
}

func TestDisputesOfATestPayment(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]money.USD{"won": 25 * money.Dollar, "lost": 0} {
		l := newTill(t)
		paid := l.topUp("25")
		dispute, err := l.cashier.Dispute(t.Context(), paid)
		if err != nil {
			t.Fatal(err)
		}
		l.deliver()
		l.want(0)
		if !l.held() {
			t.Error("a team whose payment is disputed may start pods")
		}
		if _, err := l.cashier.Dispute(t.Context(), paid); !errors.Is(err, testpay.ErrCase) {
			t.Errorf("a second dispute: %v", err)
		}
		if _, err := l.cashier.Settle(t.Context(), dispute.ID, "failed"); !errors.Is(err, testpay.ErrCase) {
			t.Errorf("a dispute that fails: %v", err)
		}
		if _, err := l.cashier.Settle(t.Context(), dispute.ID, end); err != nil {
			t.Fatal(err)
		}
		l.deliver()
		l.want(want)
		if l.held() {
			t.Errorf("a dispute that is %s holds the team", end)
		}
		other := map[string]string{"won": "lost", "lost": "won"}[end]
		if _, err := l.cashier.Settle(t.Context(), dispute.ID, other); !errors.Is(err, testpay.ErrCase) {
			t.Errorf("a dispute that was %s is %s: %v", end, other, err)
		}
	}
}

// Events that come twice, late and in any order lead to the same wallet.
func TestChaosChangesNoMoney(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	if err := l.cashier.SetChaos(t.Context(), testpay.Chaos{DelaySeconds: 301}); !errors.Is(err, testpay.ErrChaos) {
		t.Errorf("a delay of more than 5 minutes: %v", err)
	}
	if err := l.cashier.SetChaos(t.Context(), testpay.Chaos{Duplicate: true, Reorder: true, DelaySeconds: 30}); err != nil {
		t.Fatal(err)
	}
	var want money.USD
	for range 12 {
		l.act(l.order("25"), testpay.Pay)
		ledger, err := l.cashier.Ledger(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paid := ledger.Payments[0].ID
		if len(ledger.Payments[0].Cases) > 0 {
			t.Fatal("the newest payment has a case already")
		}
		if _, err := l.cashier.Refund(t.Context(), paid, "5"); err != nil {
			t.Fatal(err)
		}
		dispute, err := l.cashier.Dispute(t.Context(), paid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.cashier.Settle(t.Context(), dispute.ID, "won"); err != nil {
			t.Fatal(err)
		}
		want += 20 * money.Dollar
		l.clock.Advance(time.Second)
	}
	events := l.posts.Load()
	for range 45 {
		l.clock.Advance(time.Second)
		for range 4 { // a batch is 20
			if err := l.cashier.DeliverDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.want(want)
	if l.held() {
		t.Error("a dispute that was won holds the team")
	}
	if n := l.posts.Load() - events; n != 12*6*2 {
		t.Errorf("%d deliveries of %d events, want each twice", n, 12*6)
	}
}

// What Stripe would answer of a case is what its events say.
func TestCasesAreListedAsTheyStand(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	paid := l.topUp("25")
	since := l.clock.Now()
	refund, err := l.cashier.Refund(t.Context(), paid, "5")
	if err != nil {
		t.Fatal(err)
	}
	dispute, err := l.cashier.Dispute(t.Context(), paid)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.pay.ReadCases(t.Context()); err != nil { // no event was delivered
		t.Fatal(err)
	}
	l.want(-5 * money.Dollar)
	cases, err := l.cashier.ListCases(t.Context(), since)
	if err != nil || len(cases) != 2 {
		t.Fatalf("%+v, %v", cases, err)
	}
	for _, c := range cases {
		if c.ID != refund.ID && c.ID != dispute.ID || c.State != payment.Taken || c.PaymentID != paid {
			t.Errorf("listed %+v", c)
		}
	}
}
