package payment_test

import (
	"errors"
	"path"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// aCard is what a checkout keeps.
var aCard = payment.Card{ID: "pm_9", Brand: "mastercard", Last4: "4444", ExpMonth: 9, ExpYear: 2032}

// topUpAndSave opens a checkout over 25.00 whose card is kept.
func (p *purser) topUpAndSave() payment.Session {
	p.t.Helper()
	address, err := p.pay.CheckoutCredit(p.t.Context(), p.scope, payment.CreditRequest{Amount: "25", SaveCard: true}, idem.Request{})
	p.must(err)
	return p.bank.sessions[path.Base(address)]
}

// wantCard checks which card the team has; empty: none.
func (p *purser) wantCard(when string, want payment.Card) {
	p.t.Helper()
	card, err := p.pay.FindCard(p.t.Context(), p.scope)
	if want.ID == "" && errors.Is(err, payment.ErrNoCard) {
		return
	}
	if err != nil || card.Card != want {
		p.t.Errorf("%s the team's card is %+v, %v, want %+v", when, card.Card, err, want)
	}
}

// bare is a team without a card.
func bare(t *testing.T) *purser {
	p := newPurser(t)
	p.must(p.pay.RemoveCard(t.Context(), p.scope))
	p.work()
	return p
}

// A top-up credits once and keeps its card once, whether its event comes twice
// or never, and turns nothing on by itself.
func TestATopUpKeepsItsCard(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*purser, payment.Session){
		"by its event": func(p *purser, s payment.Session) {
			told := paid(s, "pi_1")
			p.mustReceive(told)
			p.wantCard("before it was read", payment.Card{})
			p.mustReceive(told)
			told.id = "evt_again"
			p.mustReceive(told)
			p.work()
		},
		"by reading": func(p *purser, _ payment.Session) {
			p.clock.Advance(3 * time.Minute)
			p.sweep()
			p.work()
		},
	} {
		p := bare(t)
		s := p.topUpAndSave()
		p.bank.cards[s.ID] = aCard
		p.bank.settle(s.ID, "pi_1")
		tell(p, s)
		p.wantCard(name, aCard)
		p.want(25*money.Dollar, 1)
		if a := p.auto(); a.State != payment.AutoOff || len(p.bank.asked) != 0 {
			t.Errorf("%s: automatic top-ups are %s after %d charges", name, a.State, len(p.bank.asked))
		}
	}
}

// A card that is saved again, from a checkout that was open beside another or
// was filled in by the processor, stays the team's and goes on paying.
func TestTheCardThatTheTeamHasIsSavedAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*purser, payment.Card){
		"with a top-up": func(p *purser, card payment.Card) {
			s := p.topUpAndSave()
			p.bank.cards[s.ID] = card
			p.bank.settle(s.ID, "pi_1")
			p.mustReceive(paid(s, "pi_1"))
			p.work()
			p.want(25*money.Dollar, 1)
		},
		"without one": func(p *purser, card payment.Card) { p.save(card.ID) },
	} {
		p := newPurser(t)
		card := p.bank.cardOf("pm_1")
		p.agree("500")
		again(p, card)
		p.clock.Advance(25 * time.Hour)
		p.sweep()
		p.work()
		p.wantCard(name, card)
		if a := p.auto(); a.State == payment.AutoOff || a.Card == nil || p.bank.detached["pm_1"] {
			t.Errorf("%s: automatic top-ups are %s, the processor forgot the card: %t", name, a.State, p.bank.detached["pm_1"])
		}
	}
}

// A card that was removed while its checkout was open stays removed, and takes
// the place of no other one.
func TestARemovedCardDoesNotComeBack(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	s := p.topUpAndSave()
	p.bank.cards[s.ID] = p.bank.cardOf("pm_1")
	p.save("pm_2")
	p.bank.settle(s.ID, "pi_1")
	p.mustReceive(paid(s, "pi_1"))
	p.work()
	p.sweep()
	p.work()
	p.want(25*money.Dollar, 1)
	p.wantCard("afterwards", p.bank.cardOf("pm_2"))
	if !p.bank.detached["pm_1"] || p.bank.detached["pm_2"] {
		t.Errorf("the processor forgot %v", p.bank.detached)
	}
	var status string
	var saves int
	p.must(p.pool.QueryRow(t.Context(), `select status from card_setup where id = $1`, s.OrderID).Scan(&status))
	p.must(p.pool.QueryRow(t.Context(), `select count(*) from audit_log where action = 'team.card_save'`).Scan(&saves))
	if status != "failed" || saves != 2 {
		t.Errorf("its order is %s, %d cards were said to be saved", status, saves)
	}
}

// What is paid with something that is no card is credited all the same; what is
// not paid keeps no card.
func TestATopUpWithoutACard(t *testing.T) {
	t.Parallel()
	p := bare(t)
	s := p.topUpAndSave()
	p.bank.settle(s.ID, "pi_1")
	p.mustReceive(paid(s, "pi_1"))
	p.work()
	p.want(25*money.Dollar, 1)
	left := p.topUpAndSave()
	p.bank.mu.Lock()
	left.Closed = true
	p.bank.sessions[left.ID] = left
	p.bank.mu.Unlock()
	p.clock.Advance(3 * time.Minute)
	p.sweep()
	p.wantCard("after both", payment.Card{})
	var open int
	p.must(p.pool.QueryRow(t.Context(), `select count(*) from card_setup where status = 'open'`).Scan(&open))
	if open != 0 {
		t.Errorf("%d orders of a card are read for ever", open)
	}
}

// Whoever may add funds may not let the team's wallet keep a card.
func TestOnlyAdminsSaveACardWithATopUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	member := teamtest.Join(t, d.pool, d.scope.TeamID(), team.Member)
	_, err := d.pay.CheckoutCredit(t.Context(), member, payment.CreditRequest{Amount: "25", SaveCard: true}, idem.Request{})
	if !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a member who saves a card: %v", err)
	}
	if len(d.bank.sessions) != 0 {
		t.Error("a checkout was opened")
	}
	if _, err := d.pay.CheckoutCredit(t.Context(), member, payment.CreditRequest{Amount: "25"}, idem.Request{}); err != nil {
		t.Errorf("a member who pays: %v", err)
	}
}

// issue has the bank issue the team's card anew.
func (p *purser) issue(card payment.Card) {
	p.bank.mu.Lock()
	defer p.bank.mu.Unlock()
	for session, old := range p.bank.cards {
		if old.ID == card.ID {
			p.bank.cards[session] = card
		}
	}
}

// A card that its bank issued anew is shown as it is, by the processor's word or
// by reading it daily; what an event says of it is not believed.
func TestACardIssuedAnewIsShown(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("100")
	anew := payment.Card{ID: "pm_1", Brand: "visa", Last4: "5556", ExpMonth: 5, ExpYear: 2035}
	p.issue(anew)
	for i, kind := range []string{"payment_method.automatically_updated", "payment_method.updated"} {
		p.mustReceive(notice{
			id: kind, kind: kind, version: stripe.APIVersion, live: true,
			object: map[string]any{
				"id": "pm_1", "object": "payment_method", "type": "card", "card": map[string]any{"brand": "visa", "last4": "0000", "exp_month": 1, "exp_year": 2020},
			},
		})
		p.work()
		p.wantCard(kind, anew)
		anew.ExpYear += 1 + i
		p.issue(anew)
	}
	p.clock.Advance(25 * time.Hour)
	p.sweep()
	p.wantCard("a day later", anew)
	if a := p.auto(); a.State == payment.AutoOff {
		t.Error("a new expiry turned automatic top-ups off")
	}
	p.mustReceive(notice{
		id: "evt_other", kind: "payment_method.updated", version: stripe.APIVersion, live: true,
		object: map[string]any{"id": "pm_other", "object": "payment_method"},
	})
	if failed := p.work(); len(failed) != 0 {
		t.Error(failed)
	}
}

// A card that the processor keeps no more is found by reading, and a processor
// that is down forgets none.
func TestACardGoneAtTheProcessorIsFound(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("100")
	card := p.auto().Card.Card
	p.clock.Advance(25 * time.Hour)
	p.bank.down = true
	if err := p.pay.ReadOpen(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	p.wantCard("while the bank is down", card)
	p.bank.down = false
	p.must(p.bank.DetachCard(t.Context(), "pm_1"))
	p.clock.Advance(25 * time.Hour)
	p.sweep()
	p.wantCard("once it is gone", payment.Card{})
	if a := p.auto(); a.State != payment.AutoOff || a.OffReason != payment.OffCardRemoved {
		t.Errorf("automatic top-ups are %s for %q", a.State, a.OffReason)
	}
}

// A card that was replaced between intent and call is not charged any more: the
// new one is.
func TestACardThatWasReplacedIsNotCharged(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("500")
	p.must(p.pay.FollowAutoTopUps(t.Context()))
	begun := p.jobs.Take()
	p.save("pm_2")
	for _, j := range begun {
		if charge, ok := j.(payment.ChargeJob); ok {
			p.must(p.pay.Charge(t.Context(), charge))
		}
	}
	p.look()
	p.clock.Advance(10 * time.Minute)
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 1)
	if asked := p.bank.asked[0]; asked.CardID != "pm_2" {
		t.Errorf("card %s was charged", asked.CardID)
	}
}

// A processor that would not know its key any more is not asked again: the order
// ends, and another one takes its place.
func TestAPaymentIsNotAskedForOnceItsKeyIsForgotten(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("500")
	p.bank.forgets = true
	p.must(p.pay.FollowAutoTopUps(t.Context()))
	p.work()
	p.bank.forgets = false
	p.clock.Advance(21 * time.Hour)
	p.sweep()
	if len(p.bank.asked) != 1 {
		t.Errorf("asked %d times under a key of yesterday", len(p.bank.asked))
	}
	p.look()
	p.is(payment.AutoOn, 25*money.Dollar, 2)
	if p.bank.asked[0].ID == p.bank.asked[1].ID {
		t.Error("the second payment had the first one's key")
	}
}
