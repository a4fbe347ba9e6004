package payment_test

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// A payment was under way when the team saved another card: that the old one is
// declined afterwards, or its bank asks for its owner, is not the new one's fault.
func TestADeclineOfTheOldCardDoesNotHoldUpTheNewOne(t *testing.T) {
	t.Parallel()
	for _, needsPerson := range []bool{false, true} {
		p := newPurser(t)
		p.agree("500")
		p.bank.pending = true
		p.look()
		old := p.order()
		p.save("pm_2")
		p.bank.pending = false
		n := intent("payment_failed", "requires_payment_method", old, 2500)
		if needsPerson {
			n.object["last_payment_error"] = map[string]string{"code": "authentication_required", "type": "card_error"}
		}
		p.mustReceive(n)
		p.is(payment.AutoOn, 0, 1)
		p.clock.Advance(10 * time.Minute) // since the old one was asked
		p.look()
		p.look()
		p.is(payment.AutoOn, 25*money.Dollar, 2)
		if got := p.bank.asked[1].CardID; got != "pm_2" {
			t.Errorf("the second payment was asked of %s", got)
		}
		p.told()
	}
}
