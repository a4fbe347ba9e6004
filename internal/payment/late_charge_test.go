package payment_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// empty takes all credit out of the wallet.
func (p *purser) empty() {
	p.t.Helper()
	left, _ := p.balance()
	p.must(pg.InTx(p.t.Context(), p.pool, func(tx pgx.Tx) error {
		_, err := p.w.DebitTx(p.t.Context(), tx, wallet.Debit{
			TeamID: p.scope.TeamID(), Amount: left, To: wallet.Stripe, ReferenceID: "re", Key: id.New().String(), At: p.clock.Now(),
		})
		return err
	}))
}

// terms agrees on automatic top-ups.
func (p *purser) terms(threshold, amount, monthCap string) {
	p.t.Helper()
	_, err := p.pay.SetAutoTopUp(p.t.Context(), p.scope, payment.AutoChange{
		Enabled: true, Threshold: threshold, Amount: amount, MonthCap: monthCap,
	})
	p.must(err)
}

// What was wanted when the bank did not answer may not be any more when it
// does: the card pays what is wanted now, or nothing.
func TestALateChargeIsMadeOnlyIfItIsStillWanted(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		meanwhile func(p *purser)
		state     payment.AutoState
		balance   money.USD
		paid      money.USD // by the card after all
	}{
		"nothing happened": {func(*purser) {}, payment.AutoOn, 25 * money.Dollar, 25 * money.Dollar},
		"paid by hand":     {func(p *purser) { p.topUp("pi_0") }, payment.AutoOn, 25 * money.Dollar, 0},
		"a lower threshold": {func(p *purser) {
			p.mustReceive(paid(p.desk.order("10"), "pi_0"))
			p.terms("5", "25", "60")
		}, payment.AutoOn, 10 * money.Dollar, 0},
		"another amount": {func(p *purser) { p.terms("20", "12.50", "60") }, payment.AutoOn, 25 * money.Dollar / 2, 25 * money.Dollar / 2},
		"a lower cap":    {func(p *purser) { p.terms("20", "25", "49.99") }, payment.AutoCapped, 0, 0},
		"off, and on for less": {func(p *purser) {
			_, err := p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Threshold: "20", Amount: "25", MonthCap: "60"})
			p.must(err)
			p.terms("20", "5", "60")
		}, payment.AutoOn, 5 * money.Dollar, 5 * money.Dollar},
	} {
		p := newPurser(t)
		p.terms("20", "25", "60")
		p.look() // half of the cap
		p.empty()
		p.clock.Advance(10 * time.Minute)
		p.must(p.fall())
		p.bank.forgets = true
		p.look()
		late := p.order()
		p.bank.forgets = false
		one.meanwhile(p)
		for range 10 {
			p.clock.Advance(time.Minute)
			p.sweep()
			p.work()
		}
		got, _ := p.balance()
		if a := p.auto(); a.State != one.state || got != one.balance || a.MonthCharged != 25*money.Dollar+one.paid {
			t.Errorf("%s: %s with a balance of %s and %s of the cap, want %s with %s", name, a.State, got, a.MonthCharged, one.state, one.balance)
		}
		if _, made := p.bank.paid[late]; made != (name == "nothing happened") {
			t.Errorf("%s: the late order was paid: %t", name, made)
		}
		p.sound()
	}
}

// Every node was down since the order was made, or the database is of a backup
// whose row does not know that it was asked for: what may have been paid is
// looked for first, and what is too old is not asked for any more.
func TestAnOldOrderIsLookedForBeforeItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{10 * time.Minute, 3 * 24 * time.Hour} {
		for _, known := range []bool{true, false} { // to the bank
			p := newPurser(t)
			p.agree("500")
			p.must(p.pay.FollowAutoTopUps(t.Context()))
			p.jobs.Take() // the node died
			old := p.order()
			if known {
				p.bank.paid[old] = payment.Payment{
					ID: "pi_" + old.String(), OrderID: old, Amount: 25 * money.Dollar, Total: 25 * money.Dollar, Currency: "usd",
					State: payment.PaymentPaid,
				}
			}
			p.clock.Advance(age)
			p.sweep()
			p.work()
			p.sweep()
			p.work()
			asked := 1
			if known {
				asked = 0
			}
			p.is(payment.AutoOn, 25*money.Dollar, asked)
			if _, made := p.bank.paid[old]; len(p.bank.paid) != 1 || made != (known || age < time.Hour) {
				t.Errorf("after %s, known to the bank %t: %d payments, the old order's is one of them: %t", age, known, len(p.bank.paid), made)
			}
		}
	}
}
