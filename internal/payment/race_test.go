package payment_test

import (
	"path"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team/teamtest"
)

// race runs fn 64 times at once.
func race(fn func(i int)) {
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range 64 {
		wait.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wait.Wait()
}

// A button that is pressed 64 times at once opens one checkout of one customer;
// that checkout, paid, is credited once, while its events and our own readings
// of the processor race each other.
func TestADoubleCheckoutIsPaidOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	once := idem.Request{Scope: "someone", Key: "key", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	urls := make([]string, 64)
	race(func(i int) {
		var err error
		if urls[i], err = d.pay.CheckoutCredit(t.Context(), d.scope, payment.CreditRequest{Amount: "10"}, once); err != nil {
			t.Error(err)
		}
	})
	for _, url := range urls {
		if url != urls[0] {
			t.Fatalf("two checkouts, %s and %s", urls[0], url)
		}
	}
	if len(d.bank.sessions) != 1 || d.count(`select count(*) from topup`) != 1 {
		t.Errorf("%d checkouts at the bank, %d orders", len(d.bank.sessions), d.count(`select count(*) from topup`))
	}
	session := d.bank.sessions[path.Base(urls[0])]
	d.bank.settle(session.ID, "pi_1")
	d.clock.Advance(3 * time.Minute)
	race(func(i int) {
		var err error
		if i%2 == 0 {
			err = d.pay.ReadOpen(t.Context())
		} else {
			err = d.receive(paid(session, "pi_1"))
		}
		if err != nil {
			t.Error(err)
		}
	})
	d.want(10*money.Dollar, 1)
}

// The order of a new team that is sent 64 times at once is one checkout, and
// its event, sent as often, makes one team.
func TestADoubleTeamCheckoutMakesOneTeam(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := &found{desk: d, payer: teamtest.Person()}
	once := idem.Request{Scope: "someone", Key: "key", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	urls := make([]string, 64)
	race(func(i int) {
		var err error
		order := payment.TeamRequest{Name: " Docks ", Description: "North\nquay", Members: "3"}
		if urls[i], err = d.pay.CheckoutTeam(t.Context(), f.payer, order, once); err != nil {
			t.Error(err)
		}
	})
	for _, url := range urls {
		if url != urls[0] {
			t.Fatalf("two checkouts, %s and %s", urls[0], url)
		}
	}
	if n := d.count(`select count(*) from team_checkout`); n != 1 || len(d.bank.sessions) != 1 {
		t.Fatalf("%d orders, %d checkouts at the bank", n, len(d.bank.sessions))
	}
	f.session = d.bank.sessions[path.Base(urls[0])]
	if err := d.pool.QueryRow(t.Context(), `select team_id from team_checkout`).Scan(&f.team); err != nil {
		t.Fatal(err)
	}
	race(func(int) {
		if err := f.receive(subscribed(f.session, "sub_1")); err != nil {
			t.Error(err)
		}
	})
	f.wantTeam(3)
}
