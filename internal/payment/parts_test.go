package payment_test

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// A payment with tax that goes back in parts leaves nothing behind: no cent is
// lost between the parts, in whatever order they come, nor where one came back.
func TestPartsAddUpToWhatWasCredited(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]int64{
		{1000, 1000, 519}, {519, 1000, 1000}, {1, 1, 1, 2516}, {2518, 1}, {839, 840, 840}, {whole},
	} {
		for _, failed := range []bool{false, true} { // the first part does, and is refunded anew
			d := newDesk(t)
			d.buy("pi_1", true)
			back := func(refund string, cents int64) {
				d.move(payment.RefundMoved, "pi_1", refund, -cents, uuid.Nil)
				d.mustReceive(about("refund.created", refund, "pi_1", "succeeded", cents))
			}
			for i, cents := range parts {
				back("re_"+strconv.Itoa(i), cents)
			}
			if failed {
				d.move(payment.RefundMoved, "pi_1", "re_0", parts[0], uuid.Nil)
				d.mustReceive(about("refund.failed", "re_0", "pi_1", "failed", parts[0]))
				back("re_new", parts[0])
			}
			d.mustReceive(about("refund.updated", "re_"+strconv.Itoa(len(parts)-1), "pi_1", "succeeded", parts[len(parts)-1])) // heard again
			if amount, _ := d.balance(); amount != 0 {
				t.Errorf("%v, the first failed %t: %s of the credit are left", parts, failed, amount)
			}
			d.clock.Advance(day)
			d.wantProblems(d.reconcile(), 0)
			d.sound()
		}
	}
}

// A cent that is missing from the parts together is found by the books.
func TestACentMissingFromThePartsIsADifference(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.loseACent("pi_1")
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), money.Cent, "case_differs pi_1:cases")
}

// What is wrong with a payment hides nothing of what is wrong with its refunds
// together: both are listed and counted, and each is acknowledged by itself.
func TestAPaymentAndItsPartsMayBothDiffer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.buy("pi_1", true)
	d.loseACent("pi_1")
	d.move(payment.PaymentMoved, "pi_1", "", 100, s.OrderID)
	d.clock.Advance(day)
	both := []string{"amount_differs pi_1", "case_differs pi_1:cases"}
	d.wantProblems(d.reconcile(), money.Dollar+money.Cent, both...)
	if err := d.pay.Acknowledge(t.Context(), "pi_1:cases", "a cent of rounding", "ops"); err != nil {
		t.Fatal(err)
	}
	r, err := d.pay.ReconcileDay(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	d.wantProblems(r, money.Dollar, both...)
}

// loseACent refunds all of a payment in three parts, of which the last one left
// the wallet with a cent too little.
func (d *desk) loseACent(paymentID string) {
	d.t.Helper()
	for i, cents := range []int64{1000, 1000, 519} {
		d.move(payment.RefundMoved, paymentID, "re_"+strconv.Itoa(i), -cents, uuid.Nil)
		if i < 2 {
			d.mustReceive(about("refund.created", "re_"+strconv.Itoa(i), paymentID, "succeeded", cents))
		}
	}
	d.debit("stripe:re:re_2", "re_2", 515*money.Cent)
}

// debit takes money from the wallet as nobody of this package does.
func (d *desk) debit(key, reference string, amount money.USD) {
	d.t.Helper()
	err := pg.InTx(d.t.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := d.w.DebitTx(d.t.Context(), tx, wallet.Debit{
			TeamID: d.scope.TeamID(), Amount: amount, To: wallet.Stripe, Key: key, ReferenceID: reference, At: d.clock.Now(),
		})
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}
