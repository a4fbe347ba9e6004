package payment_test

import (
	"errors"
	"path"
	"testing"
	"time"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/payment"
)

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
