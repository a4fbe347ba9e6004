package testpay_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
)

// agree compares the books and wants no difference.
func (l *till) agree(repaired int) payment.Reconciliation {
	l.t.Helper()
	r, err := l.pay.Reconcile(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if len(r.Problems) != 0 || r.Repaired != repaired {
		l.t.Errorf("the books differ in %+v, %d were repaired, want %d", r.Problems, r.Repaired, repaired)
	}
	return r
}

// Every way in which the test checkout moves money is in its own book, and ours
// agrees: also where no event was delivered.
func TestTheTestCheckoutsBookAgrees(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	first := l.topUp("25")
	if _, err := l.cashier.Refund(t.Context(), first, "10.00"); err != nil {
		t.Fatal(err)
	}
	failing, err := l.cashier.Refund(t.Context(), first, "5.00")
	if err != nil {
		t.Fatal(err)
	}
	l.deliver()
	l.act(l.order("40"), testpay.Pay)
	l.jobs.Take() // the event is lost
	l.begin(l.clock.Now(), testpay.Pay)
	l.clock.Advance(26 * time.Hour)
	r := l.agree(1)
	if len(r.Days) == 0 || r.Days[0].Payments != 265*money.Dollar || r.Days[0].Refunds != -15*money.Dollar {
		t.Errorf("the days are %+v", r.Days)
	}
	l.want(50 * money.Dollar)

	if _, err := l.cashier.Settle(t.Context(), failing.ID, "failed"); err != nil {
		t.Fatal(err)
	}
	dispute, err := l.cashier.Dispute(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	l.jobs.Take() // lost, too
	l.clock.Advance(26 * time.Hour)
	l.agree(2)
	l.want(30 * money.Dollar)
	if _, err := l.cashier.Settle(t.Context(), dispute.ID, "won"); err != nil {
		t.Fatal(err)
	}
	l.deliver()
	l.clock.Advance(40 * 24 * time.Hour)
	l.renew()
	l.agree(0)
	l.want(55 * money.Dollar)
}

func TestTheReceiptTellsWhatBecameOfThePayment(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	open := l.order("40")
	paid := l.topUp("25")
	if _, err := l.cashier.Refund(t.Context(), paid, "10.00"); err != nil {
		t.Fatal(err)
	}
	receipts, err := l.pay.Receipts(t.Context(), []string{paid})
	if err != nil {
		t.Fatal(err)
	}
	session := strings.TrimSuffix(strings.TrimPrefix(receipts[paid], origin+"/test-checkout/"), "/receipt")
	page := httptest.NewRecorder()
	if err := l.cashier.Receipt(t.Context(), page, session); err != nil {
		t.Fatalf("%v of %v", err, receipts)
	}
	for _, want := range []string{"Test receipt: no real money", "$25.00", "Paid by test card", "Refunded", "-$10.00", paid} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("%q is not on the receipt:\n%s", want, page.Body)
		}
	}
	for _, none := range []string{open, "cs_test_none"} {
		if err := l.cashier.Receipt(t.Context(), httptest.NewRecorder(), none); !errors.Is(err, testpay.ErrNotFound) {
			t.Errorf("a receipt of %s: %v", none, err)
		}
	}
}
