package payment_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

func TestAPaidEventCreditsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	d.want(0, 0)
	event := paid(s, "pi_1")
	d.mustReceive(event)
	d.want(1234*money.Cent, 1)
	d.mustReceive(event) // sent again
	other := paid(s, "pi_1")
	d.mustReceive(other) // a second event about the same payment
	other.id, other.kind = "evt_async", "checkout.session.async_payment_succeeded"
	d.mustReceive(other)
	d.want(1234*money.Cent, 1)
}

func TestConcurrentEventsCreditOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	same := paid(s, "pi_1")
	var wait sync.WaitGroup
	for i := range 64 {
		n := same
		if i%2 == 0 {
			n = paid(s, "pi_1")
		}
		wait.Go(func() {
			if err := d.receive(n); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	d.want(1234*money.Cent, 1)
}

func TestEventsThatChangeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	change := func(edit func(*notice)) notice {
		n := paid(s, "pi_1")
		edit(&n)
		return n
	}
	tests := map[string]struct {
		event notice
		fault error
	}{
		"unpaid":             {change(func(n *notice) { n.object["payment_status"] = "unpaid" }), nil},
		"free":               {change(func(n *notice) { n.object["payment_status"] = "no_payment_required" }), nil},
		"another amount":     {change(func(n *notice) { n.object["amount_subtotal"] = 999_999 }), nil},
		"another currency":   {change(func(n *notice) { n.object["currency"] = "jpy" }), nil},
		"another mode":       {change(func(n *notice) { n.object["mode"] = "subscription" }), nil},
		"another session":    {change(func(n *notice) { n.object["id"] = "cs_other" }), nil},
		"no payment":         {change(func(n *notice) { delete(n.object, "payment_intent") }), nil},
		"no order":           {change(func(n *notice) { delete(n.object, "metadata") }), nil},
		"an unknown order":   {change(func(n *notice) { n.object["metadata"] = map[string]string{payment.OrderKey: id.New().String()} }), nil},
		"an unknown kind":    {change(func(n *notice) { n.kind = "payment_intent.succeeded" }), nil},
		"another livemode":   {change(func(n *notice) { n.live = false }), payment.ErrMode},
		"no id":              {change(func(n *notice) { n.id = "" }), payment.ErrSignature},
		"an old API version": {change(func(n *notice) { n.version = "2020-08-27" }), payment.ErrSignature},
	}
	for name, test := range tests {
		if err := d.receive(test.event); !errors.Is(err, test.fault) {
			t.Errorf("%s: %v, want %v", name, err, test.fault)
		}
		d.want(0, 0)
	}
	d.mustReceive(paid(s, "pi_1"))
	d.want(1234*money.Cent, 1)
}

func TestForgedAndStaleEventsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	body := paid(d.order("12.34"), "pi_1").body(t)
	wall := d.clock.Wall()
	good := sign(body, secret, wall)
	tests := map[string]struct {
		body      []byte
		signature string
		fault     error
	}{
		"no signature":       {body, "", payment.ErrSignature},
		"nonsense":           {body, "t=soon,v1=xyz", payment.ErrSignature},
		"another secret":     {body, sign(body, "whsec_of_a_thief", wall), payment.ErrSignature},
		"a changed body":     {[]byte(strings.Replace(string(body), "1234", "9999", 1)), good, payment.ErrSignature},
		"signed an hour ago": {body, sign(body, secret, wall.Add(-time.Hour)), payment.ErrSignature},
		"signed tomorrow":    {body, sign(body, secret, wall.Add(24*time.Hour)), payment.ErrSignature},
		"signed an hour ago, and now in front": {
			body, fmt.Sprintf("t=%d,%s", wall.Unix(), sign(body, secret, wall.Add(-time.Hour))), payment.ErrSignature,
		},
		"signed an hour ago, and now behind": {
			body, fmt.Sprintf("%s,t=%d", sign(body, secret, wall.Add(-time.Hour)), wall.Unix()), payment.ErrSignature,
		},
		"no event":  {[]byte(`{"object":"list"}`), sign([]byte(`{"object":"list"}`), secret, wall), payment.ErrSignature},
		"too large": {make([]byte, payment.MaxEventSize+1), good, payment.ErrTooLarge},
	}
	for name, test := range tests {
		if err := d.pay.Receive(t.Context(), test.body, test.signature); !errors.Is(err, test.fault) {
			t.Errorf("%s: %v, want %v", name, err, test.fault)
		}
	}
	d.want(0, 0)
	if err := d.pay.Receive(t.Context(), body, sign(body, secret, wall.Add(-4*time.Minute))); err != nil {
		t.Errorf("within the tolerance: %v", err)
	}
	d.want(1234*money.Cent, 1)
}

func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.order("10"), d.order("20")
	expired := func(s payment.Session) notice {
		n := paid(s, "")
		n.kind, n.object["status"], n.object["payment_status"], n.object["payment_intent"] = "checkout.session.expired", "expired", "unpaid", nil
		return n
	}
	d.mustReceive(paid(first, "pi_1"))
	d.mustReceive(expired(first)) // late and wrong: it is paid
	d.want(10*money.Dollar, 1)
	d.mustReceive(expired(second))
	d.want(10*money.Dollar, 1)
	d.clock.Advance(72 * time.Hour)
	d.mustReceive(paid(second, "pi_2")) // three days late: the money is there
	d.want(30*money.Dollar, 2)
}

func TestAHandlerThatDiesMidwayIsSentAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.order("12.34")
	event := paid(s, "pi_1")
	// The wallet is gone when the event comes: the claim must go with it.
	hide := `alter table wallet rename to wallet_hidden`
	if _, err := d.pool.Exec(t.Context(), hide); err != nil {
		t.Fatal(err)
	}
	if err := d.receive(event); err == nil {
		t.Fatal("an event without effect was taken as handled")
	}
	if _, err := d.pool.Exec(t.Context(), `alter table wallet_hidden rename to wallet`); err != nil {
		t.Fatal(err)
	}
	d.want(0, 0)
	d.mustReceive(event)
	d.want(1234*money.Cent, 1)
}

func TestALostEventIsHealedByReading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, open := d.order("12.34"), d.order("5")
	d.bank.settle(s.ID, "pi_1")
	if err := d.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.want(0, 0) // too early to ask
	d.clock.Advance(3 * time.Minute)
	d.bank.down = true
	if err := d.pay.ReadOpen(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	d.bank.down = false
	d.clock.Advance(2 * time.Hour)
	if err := d.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.want(1234*money.Cent, 1)
	d.mustReceive(paid(s, "pi_1")) // found after all
	d.want(1234*money.Cent, 1)
	d.mustReceive(paid(open, "pi_2"))
	d.want(1734*money.Cent, 2)
}

// The processor answers for all but one of more orders than a sweep lists at
// once: all the others are credited by this sweep.
func TestOneReadingThatFailsKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const orders = 60
	for i := range orders {
		s := d.order("5")
		d.bank.settle(s.ID, fmt.Sprint("pi_", i))
		if i == 0 {
			delete(d.bank.sessions, s.ID)
		}
	}
	d.clock.Advance(3 * time.Minute)
	if err := d.pay.ReadOpen(t.Context()); err == nil {
		t.Error("the reading that failed went unnoticed")
	}
	d.want((orders-1)*5*money.Dollar, orders-1)
}

func TestOnePaymentPaysOneOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.order("10"), d.order("10")
	d.mustReceive(paid(first, "pi_1"))
	if err := d.receive(paid(second, "pi_1")); err == nil {
		t.Error("one payment paid two orders")
	}
	d.want(10*money.Dollar, 1)
}

func TestReceiveWithoutAProcessor(t *testing.T) {
	t.Parallel()
	none := payment.New(payment.Deps{})
	if err := none.Receive(t.Context(), nil, ""); !errors.Is(err, payment.ErrNotSetUp) {
		t.Errorf("%v", err)
	}
	if err := none.ReadOpen(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
}
