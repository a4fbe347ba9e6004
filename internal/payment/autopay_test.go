package payment_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

func TestALowBalanceIsToppedUpOnce(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.is(payment.AutoOff, 0, 0)
	p.agree("500")
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	asked := p.bank.asked[0]
	if asked.CardID != "pm_1" || asked.Amount != 25*money.Dollar || asked.CustomerID == "" || asked.TeamID != p.scope.TeamID() {
		t.Errorf("the bank was asked for %+v", asked)
	}
	p.look()
	p.mustReceive(intent("succeeded", "succeeded", p.order(), 2500)) // the event of what is credited already
	p.clock.Advance(time.Hour)
	p.look()
	p.sweep()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	if a := p.auto(); a.MonthCharged != 25*money.Dollar {
		t.Errorf("%s of the month's cap are used", a.MonthCharged)
	}
	p.told()
}

// Every node sees the balance fall, and every node does what it sees.
func TestAThresholdThatManyNodesSeeChargesOnce(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.topUp("pi_0")
	p.agree("500")
	p.look()
	p.burn()
	p.clock.Advance(90*time.Minute + time.Second) // 25.00 became less than 10.00
	for range 3 {
		var wait sync.WaitGroup
		for range 64 {
			wait.Go(func() {
				if err := errors.Join(p.fall(), p.pay.FollowAutoTopUps(t.Context())); err != nil {
					t.Error(err)
				}
				for _, j := range p.jobs.Take() {
					for range 3 {
						if err := p.pay.Charge(t.Context(), j.(payment.ChargeJob)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wait.Wait()
	}
	if got := len(p.bank.paid); got != 1 {
		t.Errorf("%d payments of one fall", got)
	}
	if b, _ := p.balance(); b != 50*money.Dollar-money.Cost(10_000_000, 0, (90*time.Minute+time.Second).Microseconds()) {
		t.Errorf("the balance is %s", b)
	}
	p.sound()
}

func TestDeclinesAreTriedTwiceMoreAndThenNotAgain(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.bank.answer = payment.PaymentDeclined
	p.agree("500")
	p.look()
	p.is(payment.AutoRetrying, 0, 1)
	p.clock.Advance(59 * time.Minute)
	p.look()
	p.is(payment.AutoRetrying, 0, 1)
	p.clock.Advance(time.Minute)
	p.look()
	p.is(payment.AutoRetrying, 0, 2)
	p.clock.Advance(6 * time.Hour)
	p.look()
	p.is(payment.AutoOff, 0, 3)
	if a := p.auto(); a.OffReason != payment.OffDeclined || a.NextAt != nil {
		t.Errorf("they are off for %q, next at %v", a.OffReason, a.NextAt)
	}
	p.told(payment.NewsDeclined, payment.NewsDeclined, payment.NewsOff)
	p.clock.Advance(72 * time.Hour)
	p.look()
	p.sweep()
	p.is(payment.AutoOff, 0, 3)
	p.bank.answer = ""
	p.save("pm_2")
	p.agree("500")
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 4)
}

// What was paid by hand meanwhile makes the retry needless.
func TestARetryLooksAtTheBalanceFirst(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.bank.answer = payment.PaymentDeclined
	p.agree("500")
	p.look()
	p.topUp("pi_0")
	p.clock.Advance(time.Hour)
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	if key, err := p.pay.NewsKey(t.Context(), p.scope.TeamID()); err != nil || key != "" {
		t.Errorf("the notice %q is still shown (%v)", key, err)
	}
}

func TestABankThatWantsToSeeThePayerTurnsThemOff(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.bank.answer = payment.PaymentNeedsPerson
	p.agree("500")
	p.look()
	p.is(payment.AutoOff, 0, 1)
	p.told(payment.NewsAuthentication)
	if a := p.auto(); a.OffReason != payment.OffAuthentication || a.Card == nil {
		t.Errorf("they are %+v", a)
	}
}

func TestTheMonthsCapHolds(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("60")
	for range 2 {
		p.look()
		p.must(pg.InTx(t.Context(), p.pool, func(tx pgx.Tx) error {
			_, err := p.w.DebitTx(t.Context(), tx, wallet.Debit{
				TeamID: p.scope.TeamID(), Amount: 25 * money.Dollar, To: wallet.Stripe, ReferenceID: "re", Key: id.New().String(), At: p.clock.Now(),
			})
			return err
		}))
		p.clock.Advance(10 * time.Minute)
		p.must(p.fall())
	}
	p.look() // 50.00 are charged: a third would make it 75.00
	p.is(payment.AutoCapped, 0, 2)
	p.told(payment.NewsCapped)
	if a := p.auto(); a.NextAt == nil || !a.NextAt.Equal(time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the next is possible at %v", a.NextAt)
	}
	p.clock.Advance(18 * 24 * time.Hour)
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 3)
}

// One payment at a time, ten minutes apart, however low the balance is.
func TestTopUpsAreTenMinutesApart(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	_, err := p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: "100", Amount: "25", MonthCap: "500"})
	p.must(err)
	p.bank.pending = true
	p.look()
	p.is(payment.AutoCharging, 0, 1)
	p.clock.Advance(time.Hour)
	p.look()
	p.is(payment.AutoCharging, 0, 1)
	_, err = p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: "100", Amount: "25", MonthCap: "500"})
	p.must(err) // agreeing again has the balance looked at: one is under way
	p.look()
	p.is(payment.AutoCharging, 0, 1)
	p.mustReceive(intent("succeeded", "succeeded", p.order(), 2500))
	p.bank.pending = false
	p.look()
	p.is(payment.AutoOn, 50*money.Dollar, 2)
	p.look()
	p.clock.Advance(9 * time.Minute)
	p.look()
	p.is(payment.AutoOn, 50*money.Dollar, 2)
	p.clock.Advance(time.Minute)
	p.look()
	p.is(payment.AutoOn, 75*money.Dollar, 3)
}

// Agreeing anew has the balance looked at, but does not shorten the pause.
func TestAgreeingAgainKeepsThePause(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.terms("100", "25", "500")
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	p.clock.Advance(9 * time.Minute)
	p.terms("100", "25", "500")
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	p.clock.Advance(time.Minute)
	p.look()
	p.is(payment.AutoOn, 50*money.Dollar, 2)
}

func TestWhoMayNotBeChargedIsNot(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		do    func(p *purser)
		state payment.AutoState
	}{
		"opted out": {func(p *purser) {
			_, err := p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Threshold: "10", Amount: "25", MonthCap: "500"})
			p.must(err)
		}, payment.AutoOff},
		"the card removed": {func(p *purser) { p.must(p.pay.RemoveCard(t.Context(), p.scope)) }, payment.AutoOff},
		"the card removed at the bank": {func(p *purser) {
			p.mustReceive(notice{
				id: "evt_d", kind: "payment_method.detached", version: stripe.APIVersion, live: true,
				object: map[string]any{"id": "pm_1", "object": "payment_method"},
			})
		}, payment.AutoOff},
		"a payment disputed": {func(p *purser) {
			p.must(pg.InTx(t.Context(), p.pool, func(tx pgx.Tx) error {
				return p.w.HoldTx(t.Context(), tx, wallet.Hold{TeamID: p.scope.TeamID(), ReferenceID: "dp_1"}, p.clock.Now())
			}))
		}, payment.AutoHeld},
		"the team deleted": {func(p *purser) {
			p.must(pg.InTx(t.Context(), p.pool, func(tx pgx.Tx) error { return p.pay.EndTeamTx(t.Context(), tx, p.scope.TeamID()) }))
		}, payment.AutoOff},
	} {
		for _, begun := range []bool{false, true} { // before the intent, and between intent and call
			p := newPurser(t)
			p.agree("500")
			if begun {
				p.must(p.pay.FollowAutoTopUps(t.Context()))
			}
			one.do(p)
			p.work()
			p.look()
			p.clock.Advance(time.Hour - time.Minute)
			p.sweep()
			p.look()
			got, _ := p.balance()
			if a := p.auto(); a.State != one.state || got != 0 || len(p.bank.asked) != 0 || a.MonthCharged != 0 {
				t.Errorf("%s, begun %t: %s with %s after %d payments asked for, %s of the cap", name, begun, a.State, got, len(p.bank.asked), a.MonthCharged)
			}
		}
	}
}

// The card paid, and the answer got lost: the payment is found by reading, also
// for a team that agrees no more, and nobody pays twice.
func TestALostAnswerIsFound(t *testing.T) {
	t.Parallel()
	for _, still := range []bool{true, false} {
		p := newPurser(t)
		p.agree("500")
		p.bank.lost = true
		p.must(p.pay.FollowAutoTopUps(t.Context()))
		if failed := p.work(); len(failed) != 1 {
			t.Fatalf("a lost answer went unnoticed: %v", failed)
		}
		p.is(payment.AutoCharging, 0, 1)
		state := payment.AutoOn
		if !still {
			state = payment.AutoOff
			p.must(p.pay.RemoveCard(t.Context(), p.scope))
		}
		p.clock.Advance(3 * time.Minute)
		p.sweep()
		p.is(state, 25*money.Dollar, 1)
	}
}

// The call never arrived: it is made again under the same key while the team
// agrees, and the order ends when it does not.
func TestACallThatNeverArrivedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, still := range []bool{true, false} {
		p := newPurser(t)
		p.agree("500")
		p.bank.forgets = true
		p.must(p.pay.FollowAutoTopUps(t.Context()))
		p.work()
		p.bank.forgets = false
		if !still {
			p.must(p.pay.RemoveCard(t.Context(), p.scope))
		}
		p.clock.Advance(3 * time.Minute)
		p.sweep()
		if still {
			p.is(payment.AutoOn, 25*money.Dollar, 2)
			if p.bank.asked[0].ID != p.bank.asked[1].ID {
				t.Error("the second call had another key")
			}
			continue
		}
		if a := p.auto(); a.MonthCharged != 25*money.Dollar {
			t.Errorf("the cap forgot a payment that may still come: %s", a.MonthCharged)
		}
		p.clock.Advance(time.Hour)
		p.sweep()
		p.is(payment.AutoOff, 0, 1)
		if a := p.auto(); a.MonthCharged != 0 {
			t.Errorf("the cap counts a payment that will not come: %s", a.MonthCharged)
		}
	}
}

func TestTermsOfAutomaticTopUps(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	for _, one := range []struct {
		threshold, amount, monthCap string
		fault                       *fault.Error
		detail                      string
	}{
		{"0.99", "25", "500", payment.ErrThreshold, "Please enter a threshold from $1.00 to $10,000."},
		{"10000.01", "25", "500", payment.ErrThreshold, ""},
		{"5.001", "25", "500", payment.ErrThreshold, ""},
		{"much", "25", "500", payment.ErrThreshold, ""},
		{"5", "0.49", "500", payment.ErrAmount, "The minimum payment is $0.50"},
		{"5", "10000.01", "20000", payment.ErrAmount, "Please enter an amount from $0.01 to $10,000."},
		{"5", "25", "24.99", payment.ErrMonthCap, "The monthly cap must be at least the amount of one top-up."},
		{"5", "25", "100000.01", payment.ErrMonthCap, "Please enter a monthly cap of at most $100,000."},
		{"5", "25", "", payment.ErrMonthCap, ""},
	} {
		_, err := p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: one.threshold, Amount: one.amount, MonthCap: one.monthCap})
		if !errors.Is(err, one.fault) || one.detail != "" && fault.Of(err).Detail != one.detail {
			t.Errorf("%+v: %v", one, err)
		}
	}
	p.is(payment.AutoOff, 0, 0)
	if a := p.auto(); a.Threshold != 5*money.Dollar || a.Amount != 25*money.Dollar || a.MonthCap != 500*money.Dollar {
		t.Errorf("proposed are %+v", a)
	}
	p.topUp("pi_0")
	p.burn()
	if a := p.auto(); a.Threshold != 240*money.Dollar {
		t.Errorf("of 10 USD an hour a threshold of %s is proposed, not a day's", a.Threshold)
	}
	mate := teamtest.Join(t, p.pool, p.scope.TeamID(), team.Member)
	if _, err := p.pay.SetAutoTopUp(t.Context(), mate, payment.AutoChange{}); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a member agreed for the team: %v", err)
	}
	if _, err := p.pay.CheckoutCard(t.Context(), mate, idem.Request{}); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a member saved a card for the team: %v", err)
	}
	p.must(p.pay.RemoveCard(t.Context(), p.scope))
	if _, err := p.pay.SetAutoTopUp(t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: "5", Amount: "25", MonthCap: "500"}); !errors.Is(err, payment.ErrCardNeeded) {
		t.Errorf("without a card: %v", err)
	}
}
