package payment_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

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
