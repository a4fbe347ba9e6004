package payment_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// Somebody looks at today's book by hand while yesterday's is not read yet, or
// an older day is missing: what is not known is no difference.
func TestADayThatWasNotReadIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, missed := range []time.Duration{0, 3 * day} {
		d := newDesk(t)
		d.buy("pi_1", true)
		d.clock.Advance(missed + 12*time.Hour + 30*time.Minute) // half an hour after midnight
		d.move(payment.RefundMoved, "pi_1", "re_1", -1000, uuid.Nil)
		d.mustReceive(about("refund.created", "re_1", "pi_1", "succeeded", 1000))
		d.clock.Advance(10 * time.Minute)
		r, err := d.pay.ReconcileDay(t.Context(), d.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		d.wantProblems(r, 0)
		d.mustReceive(paid(d.order("25"), "pi_forged"))
		d.clock.Advance(2 * day)
		d.wantProblems(d.reconcile(), 25*money.Dollar, "unpaid_credit pi_forged")
	}
}

// A dispute took money from a wallet on a day on which the processor's book says
// nothing of its payment.
func TestADisputeOfOurBooksAloneIsADifference(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 0)
	d.mustReceive(about("charge.dispute.created", "dp_1", "pi_1", "needs_response", whole))
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 25*money.Dollar, "case_differs dp_1")
	if amount, held := d.balance(); amount != 0 || !held {
		t.Errorf("balance %s, held %t: a difference adjusts nothing", amount, held)
	}
}
