package payment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// again compares all days anew and checks how much of the difference counts.
func (d *desk) again(when string, off money.USD, places, listed int) payment.ClearingProblem {
	d.t.Helper()
	d.clock.Advance(day)
	r := d.reconcile()
	if sum, n := r.Difference(); sum != off || n != places || len(r.Problems) != listed {
		d.t.Errorf("%s %s in %d of %d places counts, want %s in %d of %d", when, sum, n, len(r.Problems), off, places, listed)
	}
	if len(r.Problems) == 0 {
		return payment.ClearingProblem{}
	}
	return r.Problems[0]
}

// What an operator acknowledged stays listed with who said what, and counts no
// more until it changes, or comes back after it ended.
func TestAnAcknowledgedDifferenceCountsNoMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.order("1")
	d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
	d.again("at first", 7*money.Dollar, 1, 1)
	for _, bad := range []struct {
		subject, note, by string
		want              error
	}{
		{"pi_other", "known", "ada", payment.ErrNoProblem},
		{"pi_theirs", " ", "ada", payment.ErrNote},
		{"pi_theirs", "known", "", payment.ErrNote},
		{"pi_theirs", strings.Repeat("x", 501), "ada", payment.ErrNote},
	} {
		if err := d.pay.Acknowledge(t.Context(), bad.subject, bad.note, bad.by); !errors.Is(err, bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	d.again("after refusals", 7*money.Dollar, 1, 1)
	at := d.clock.Now()
	for _, note := range []string{" the shop's own account ", "something else"} {
		if err := d.pay.Acknowledge(t.Context(), "pi_theirs", note, "ada"); err != nil {
			t.Fatal(err)
		}
	}
	p := d.again("once acknowledged", 0, 0, 1)
	if p.AckedAt == nil || !p.AckedAt.Equal(at) || p.AckedBy != "ada" || p.Note != "the shop's own account" {
		t.Errorf("it is listed as %+v", p)
	}
	d.move(payment.PaymentMoved, "pi_new", "", 300, uuid.Nil)
	d.again("beside another", 3*money.Dollar, 1, 2)
	d.move(payment.RefundMoved, "pi_new", "re_new", -300, uuid.Nil)
	d.move(payment.RefundMoved, "pi_theirs", "re_1", -200, uuid.Nil)
	d.again("after it changed", 5*money.Dollar, 1, 1)
	if err := d.pay.Acknowledge(t.Context(), "pi_theirs", "partly refunded", "ada"); err != nil {
		t.Fatal(err)
	}
	d.again("acknowledged again", 0, 0, 1)
	d.move(payment.RefundMoved, "pi_theirs", "re_2", -500, uuid.Nil)
	d.again("once it ended", 0, 0, 0)
	d.move(payment.RefundMoved, "pi_theirs", "re_2", 500, uuid.Nil)
	d.again("when it is back", 5*money.Dollar, 1, 1)
}
