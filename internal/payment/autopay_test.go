package payment_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
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

// A purser is a desk whose team saved a card.
type purser struct {
	*desk
	news []payment.News
}

func newPurser(t *testing.T) *purser {
	t.Helper()
	p := &purser{desk: newDesk(t)}
	p.pay.OnAutoTopUp = func(_ context.Context, _ pgx.Tx, n payment.News) error {
		p.news = append(p.news, n)
		return nil
	}
	p.save("pm_1")
	return p
}

// save has the team save a card.
func (p *purser) save(cardID string) {
	p.t.Helper()
	address, err := p.pay.CheckoutCard(p.t.Context(), p.scope, idem.Request{})
	p.must(err)
	s := p.bank.sessions[path.Base(address)]
	p.bank.cards[s.ID] = payment.Card{ID: cardID, Brand: "visa", Last4: "4242", ExpMonth: 4, ExpYear: 2031}
	p.mustReceive(setUp(s))
	p.work()
}

// setUp is the event of a checkout that saved a card, as Stripe writes it.
func setUp(s payment.Session) notice {
	return notice{
		id: "evt_" + id.New().String(), kind: "checkout.session.completed", version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": s.ID, "object": "checkout.session", "mode": "setup", "payment_status": "no_payment_required", "status": "complete",
			"setup_intent": "seti_1", "metadata": map[string]string{payment.CardOrderKey: s.OrderID.String()},
		},
	}
}

func (p *purser) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// work does the jobs that were made, and says which failed.
func (p *purser) work() (failed []error) {
	p.t.Helper()
	for _, j := range p.jobs.Take() {
		var err error
		switch j := j.(type) {
		case payment.CardJob:
			err = p.pay.FollowCard(p.t.Context(), j)
		case payment.ChargeJob:
			err = p.pay.Charge(p.t.Context(), j)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// agree turns automatic top-ups of 25.00 below 10.00 on.
func (p *purser) agree(monthCap string) {
	p.t.Helper()
	_, err := p.pay.SetAutoTopUp(p.t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: "10", Amount: "25", MonthCap: monthCap})
	p.must(err)
}

// look looks at what is due, and does the jobs.
func (p *purser) look() {
	p.t.Helper()
	p.must(p.pay.FollowAutoTopUps(p.t.Context()))
	p.work()
}

// sweep reads what is due at the bank.
func (p *purser) sweep() {
	p.t.Helper()
	p.must(errors.Join(p.pay.ReadOpen(p.t.Context()), p.pay.FollowAutoTopUps(p.t.Context())))
}

func (p *purser) auto() payment.AutoTopUp {
	p.t.Helper()
	a, err := p.pay.FindAutoTopUp(p.t.Context(), p.scope)
	p.must(err)
	return a
}

// is checks what automatic top-ups do, the balance, and how often the bank was
// asked for money.
func (p *purser) is(state payment.AutoState, balance money.USD, asked int) {
	p.t.Helper()
	got, _ := p.balance()
	if a := p.auto(); a.State != state || got != balance || len(p.bank.asked) != asked {
		p.t.Errorf("%s with a balance of %s after %d payments asked for, want %s with %s after %d", a.State, got, len(p.bank.asked), state, balance, asked)
	}
	p.sound()
}

// told checks what the admins were told so far.
func (p *purser) told(want ...payment.NewsKind) {
	p.t.Helper()
	var got []payment.NewsKind
	for _, n := range p.news {
		got = append(got, n.Kind)
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("the admins were told %v, want %v", got, want)
	}
}

// order is the newest automatic order.
func (p *purser) order() (orderID uuid.UUID) {
	p.t.Helper()
	p.must(p.pool.QueryRow(p.t.Context(), `select id from topup where automatic order by created_at desc limit 1`).Scan(&orderID))
	return orderID
}

// intent is an event about a saved card's payment, as Stripe writes it.
func intent(kind, status string, order uuid.UUID, cents int64) notice {
	n := notice{
		id: "evt_" + id.New().String(), kind: "payment_intent." + kind, version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": "pi_" + order.String(), "object": "payment_intent", "amount": cents, "amount_received": cents, "currency": "usd",
			"status": status, "metadata": map[string]string{payment.AutoOrderKey: order.String()},
		},
	}
	if status != "succeeded" {
		n.object["amount_received"] = 0
		n.object["last_payment_error"] = map[string]string{"code": "card_declined", "type": "card_error"}
	}
	return n
}

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

// burn has the team spend 10 USD an hour.
func (p *purser) burn() {
	p.t.Helper()
	p.must(pg.InTx(p.t.Context(), p.pool, func(tx pgx.Tx) error {
		return p.w.StartTx(p.t.Context(), tx, wallet.Start{
			TeamID: p.scope.TeamID(), ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: 10_000_000, At: p.clock.Now(), Description: "pod",
		})
	}))
}

// fall is what meter does of a wallet, until it has told that it is low.
func (p *purser) fall() error {
	ctx, teamID := context.Background(), p.scope.TeamID()
	for {
		due, ok, err := p.w.NextDue(ctx, teamID, p.clock.Now())
		if err != nil || !ok {
			return err
		}
		err = pg.InTx(ctx, p.pool, func(tx pgx.Tx) (err error) {
			switch due.What {
			case wallet.LowDue:
				if err := p.pay.DueTx(ctx, tx, teamID, due.At); err != nil {
					return err
				}
				_, err = p.w.LowTx(ctx, tx, teamID, due.At)
			case wallet.WarnDue:
				_, _, err = p.w.WarnTx(ctx, tx, teamID, due.At)
			case wallet.SpendDue:
				_, err = p.w.SpendTx(ctx, tx, teamID, due.At)
			case wallet.ExhaustDue:
				_, _, err = p.w.ExhaustTx(ctx, tx, teamID, due.At)
			default:
				err = errors.New("not expected here: " + due.What)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
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

// The corpus of events about automatic top-ups, each with its outcome.
func TestEventsOfAutomaticTopUps(t *testing.T) {
	t.Parallel()
	change := func(edit func(n *notice)) func(order uuid.UUID) []notice {
		return func(order uuid.UUID) []notice {
			n := intent("succeeded", "succeeded", order, 2500)
			edit(&n)
			return []notice{n}
		}
	}
	paid := func(order uuid.UUID) notice { return intent("succeeded", "succeeded", order, 2500) }
	failed := func(order uuid.UUID) notice { return intent("payment_failed", "requires_payment_method", order, 2500) }
	for name, one := range map[string]struct {
		events func(order uuid.UUID) []notice
		want   money.USD
		state  payment.AutoState
	}{
		"paid":                             {func(o uuid.UUID) []notice { return []notice{paid(o)} }, 25 * money.Dollar, payment.AutoOn},
		"paid twice":                       {func(o uuid.UUID) []notice { n := paid(o); return []notice{n, n, paid(o)} }, 25 * money.Dollar, payment.AutoOn},
		"declined":                         {func(o uuid.UUID) []notice { return []notice{failed(o), failed(o)} }, 0, payment.AutoRetrying},
		"a late decline after it was paid": {func(o uuid.UUID) []notice { return []notice{paid(o), failed(o)} }, 25 * money.Dollar, payment.AutoOn},
		"paid after all":                   {func(o uuid.UUID) []notice { return []notice{failed(o), paid(o)} }, 25 * money.Dollar, payment.AutoOn},
		"canceled":                         {func(o uuid.UUID) []notice { return []notice{intent("canceled", "canceled", o, 2500)} }, 0, payment.AutoRetrying},
		"under way":                        {change(func(n *notice) { n.object["status"] = "processing" }), 0, payment.AutoCharging},
		"paid in part":                     {change(func(n *notice) { n.object["amount_received"] = 1 }), 0, payment.AutoCharging},
		"with its tax": {change(func(n *notice) {
			n.object["amount"], n.object["amount_received"] = 2519, 2519
			n.object["metadata"].(map[string]string)[payment.TaxKey] = "19"
		}), 25 * money.Dollar, payment.AutoOn},
		"another amount":     {change(func(n *notice) { n.object["amount"], n.object["amount_received"] = 9900, 9900 }), 0, payment.AutoCharging},
		"less, as if by tax": {change(func(n *notice) { n.object["metadata"].(map[string]string)[payment.TaxKey] = "-1" }), 0, payment.AutoCharging},
		"another currency":   {change(func(n *notice) { n.object["currency"] = "jpy" }), 0, payment.AutoCharging},
		"forged metadata":    {change(func(n *notice) { n.object["metadata"] = map[string]string{payment.AutoOrderKey: id.New().String()} }), 0, payment.AutoCharging},
		"no metadata":        {change(func(n *notice) { delete(n.object, "metadata") }), 0, payment.AutoCharging},
		"of a checkout":      {change(func(n *notice) { n.object["metadata"] = map[string]string{payment.OrderKey: id.New().String()} }), 0, payment.AutoCharging},
	} {
		p := newPurser(t)
		p.agree("500")
		p.bank.pending = true
		p.look()
		for _, n := range one.events(p.order()) {
			p.mustReceive(n)
		}
		p.is(one.state, one.want, 1)
		p.clock.Advance(72 * time.Hour) // three days late, and twice
		p.mustReceive(paid(p.order()))
		p.mustReceive(paid(p.order()))
		if got, _ := p.balance(); got != 25*money.Dollar {
			t.Errorf("%s: the balance is %s after the payment", name, got)
		}
	}
}

// A checkout's event that names an automatic order is not about it.
func TestACheckoutPaysNoAutomaticOrder(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("500")
	p.bank.pending = true
	p.look()
	p.mustReceive(paid(payment.Session{ID: "cs_forged", OrderID: p.order(), Amount: 25 * money.Dollar}, "pi_forged"))
	p.is(payment.AutoCharging, 0, 1)
}

func TestRefundsAndDisputesOfAutomaticTopUps(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("25")
	p.look()
	paymentID := "pi_" + p.order().String()
	p.mustReceive(about("refund.created", "re_1", paymentID, "succeeded", 1000))
	p.is(payment.AutoOn, 15*money.Dollar, 1)
	p.mustReceive(about("charge.dispute.created", "dp_1", paymentID, "needs_response", 1500))
	if b, held := p.balance(); b != 0 || !held {
		t.Errorf("a disputed top-up left %s, held %t", b, held)
	}
	p.clock.Advance(time.Hour)
	p.must(p.fall())
	p.look()
	p.is(payment.AutoHeld, 0, 1)
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

func TestCardsAreKeptAndForgotten(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.save("pm_2") // takes the place of the first
	if c, err := p.pay.FindCard(t.Context(), p.scope); err != nil || c.ID != "pm_2" || c.Label() != "Visa ending in 4242" {
		t.Errorf("the card is %+v, %v", c, err)
	}
	p.sweep()
	if !p.bank.detached["pm_1"] || p.bank.detached["pm_2"] {
		t.Errorf("forgotten are %v", p.bank.detached)
	}
	p.agree("500")
	p.bank.down = true
	p.must(p.pay.RemoveCard(t.Context(), p.scope))
	if failed := p.work(); len(failed) != 1 {
		t.Errorf("a bank that is down went unnoticed: %v", failed)
	}
	p.is(payment.AutoOff, 0, 0)
	if err := p.pay.RemoveCard(t.Context(), p.scope); !errors.Is(err, payment.ErrNoCard) {
		t.Errorf("removed twice: %v", err)
	}
	p.bank.down = false
	p.clock.Advance(5 * time.Minute)
	p.sweep()
	if !p.bank.detached["pm_2"] {
		t.Error("a removed card stays at the bank")
	}
}

// The event of a card got lost, or comes before the bank tells the card.
func TestALostCardIsFoundByReading(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.must(p.pay.RemoveCard(t.Context(), p.scope))
	address, err := p.pay.CheckoutCard(t.Context(), p.scope, idem.Request{})
	p.must(err)
	s := p.bank.sessions[path.Base(address)]
	p.mustReceive(setUp(s))
	p.work()
	if _, err := p.pay.FindCard(t.Context(), p.scope); !errors.Is(err, payment.ErrNoCard) {
		t.Errorf("a card that the bank does not tell: %v", err)
	}
	p.bank.cards[s.ID] = payment.Card{ID: "pm_3", Brand: "visa", Last4: "4242", ExpMonth: 4, ExpYear: 2031}
	p.clock.Advance(5 * time.Minute)
	p.sweep()
	if c, err := p.pay.FindCard(t.Context(), p.scope); err != nil || c.ID != "pm_3" {
		t.Errorf("the card is %+v, %v", c, err)
	}
}
