package payment_test

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// What the card pays in a month counts for that month, also where it was
// ordered in the one before.
func TestTheCapCountsTheMonthOfThePayment(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	april := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	p.clock.Advance(april.Add(-time.Minute).Sub(p.clock.Now()))
	p.agree("25")
	p.bank.lost = true
	p.look()
	p.is(payment.AutoCharging, 0, 1)
	p.bank.lost = false
	p.clock.Advance(3 * time.Minute)
	p.sweep()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	if a := p.auto(); a.MonthCharged != 25*money.Dollar {
		t.Errorf("%s of April's cap are used", a.MonthCharged)
	}
	p.empty()
	p.clock.Advance(10 * time.Minute)
	p.must(p.fall())
	p.look()
	p.is(payment.AutoCapped, 0, 1)
	if a := p.auto(); a.NextAt == nil || !a.NextAt.Equal(april.AddDate(0, 1, 0)) {
		t.Errorf("the next is possible at %v", a.NextAt)
	}
}
