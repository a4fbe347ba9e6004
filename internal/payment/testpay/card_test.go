package testpay_test

import (
	"errors"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
)

// settle runs all jobs that were queued, until there are no more.
func (l *till) settle() {
	l.t.Helper()
	for {
		jobs := l.jobs.Take()
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			var err error
			switch j := j.(type) {
			case testpay.DeliverJob:
				err = l.cashier.Deliver(l.t.Context(), j)
			case payment.CardJob:
				err = l.pay.FollowCard(l.t.Context(), j)
			case payment.ChargeJob:
				err = l.pay.Charge(l.t.Context(), j)
			}
			l.must(err)
		}
	}
}

func (l *till) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// save saves a card as a payer does, and agrees on 25.00 below 10.00.
func (l *till) save(outcome testpay.Outcome) {
	l.t.Helper()
	address, err := l.pay.CheckoutCard(l.t.Context(), l.scope, idem.Request{})
	l.must(err)
	if next := l.act(path.Base(address), outcome); next != origin+"/billing?team_id="+l.scope.TeamID().String()+"&card=saved" {
		l.t.Errorf("who saved a card goes on to %s", next)
	}
	l.settle()
	_, err = l.pay.SetAutoTopUp(l.t.Context(), l.scope, payment.AutoChange{Enabled: true, Threshold: "10", Amount: "25", MonthCap: "500"})
	l.must(err)
	l.must(l.pay.FollowAutoTopUps(l.t.Context()))
	l.settle()
}

func (l *till) auto() payment.AutoTopUp {
	l.t.Helper()
	a, err := l.pay.FindAutoTopUp(l.t.Context(), l.scope)
	l.must(err)
	return a
}

// What each card does when it pays without its owner.
func TestNaturesOfSavedCards(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[testpay.Outcome]struct {
		state  payment.AutoState
		credit money.USD
		last4  string
	}{
		testpay.Pay:          {payment.AutoOn, 25 * money.Dollar, "4242"},
		testpay.SaveDeclined: {payment.AutoRetrying, 0, "0341"},
		testpay.SaveAsks:     {payment.AutoOff, 0, "3184"},
	} {
		for _, chaos := range []testpay.Chaos{{}, {Duplicate: true, Reorder: true, DelaySeconds: 2}} {
			l := newTill(t)
			l.must(l.cashier.SetChaos(t.Context(), chaos))
			if chaos.Reorder {
				l.cardLater(outcome)
			} else {
				l.save(outcome)
			}
			for range 5 {
				l.clock.Advance(time.Second)
				l.must(l.cashier.DeliverDue(t.Context()))
				l.settle()
			}
			a := l.auto()
			if a.State != want.state || a.Card == nil || a.Card.Last4 != want.last4 {
				t.Errorf("%s: %+v", outcome, a)
			}
			l.want(want.credit)
		}
	}
}

// A top-up that saves its card credits what was paid, and keeps the card that was
// chosen; its bank may issue it anew.
func TestATopUpSavesItsCard(t *testing.T) {
	t.Parallel()
	for outcome, last4 := range map[testpay.Outcome]string{testpay.Pay: "4242", testpay.SaveDeclined: "0341", testpay.SaveAsks: "3184"} {
		for _, chaos := range []testpay.Chaos{{}, {Duplicate: true, Reorder: true, DelaySeconds: 2}} {
			l := newTill(t)
			l.must(l.cashier.SetChaos(t.Context(), chaos))
			address, err := l.pay.CheckoutCredit(t.Context(), l.scope, payment.CreditRequest{Amount: "12.50", SaveCard: true}, idem.Request{})
			l.must(err)
			for range 2 {
				l.act(path.Base(address), outcome)
			}
			for range 5 {
				l.settle()
				l.clock.Advance(time.Second)
				l.must(l.cashier.DeliverDue(t.Context()))
			}
			l.settle()
			l.want(12*money.Dollar + 50*money.Cent)
			a := l.auto()
			if a.State != payment.AutoOff || a.Card == nil || a.Card.Last4 != last4 {
				t.Errorf("%s: %+v", outcome, a)
				continue
			}
			if outcome != testpay.Pay || chaos.Reorder {
				continue
			}
			anew, err := l.cashier.Reissue(t.Context(), a.Card.ID)
			l.must(err)
			l.settle()
			if now := l.auto().Card; now.Last4 == last4 || now.Last4 != anew.Last4 || now.ExpYear <= a.Card.ExpYear {
				t.Errorf("the card issued anew is %+v", now)
			}
		}
	}
}

// The page of a top-up offers cards only where one is saved.
func TestCardsOfATopUpAreOfferedWhereOneIsSaved(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	if _, err := l.cashier.Act(t.Context(), l.order("5"), testpay.SaveDeclined); !errors.Is(err, testpay.ErrOutcome) {
		t.Errorf("a card at a plain top-up: %v", err)
	}
	for save, want := range map[bool]int{false: 0, true: 2} {
		address, err := l.pay.CheckoutCredit(t.Context(), l.scope, payment.CreditRequest{Amount: "5", SaveCard: save}, idem.Request{})
		l.must(err)
		s, err := l.cashier.Find(t.Context(), path.Base(address))
		l.must(err)
		page := httptest.NewRecorder()
		l.must(l.cashier.Page(page, s, false))
		if got := strings.Count(page.Body.String(), `value="save_`); got != want || strings.Contains(page.Body.String(), "The card is saved for") != save {
			t.Errorf("the page of a top-up (saves: %t) offers %d cards", save, got)
		}
	}
}

// cardLater saves a card whose event is late.
func (l *till) cardLater(outcome testpay.Outcome) {
	l.t.Helper()
	address, err := l.pay.CheckoutCard(l.t.Context(), l.scope, idem.Request{})
	l.must(err)
	l.act(path.Base(address), outcome)
	for range 5 {
		l.clock.Advance(time.Second)
		l.must(l.cashier.DeliverDue(l.t.Context()))
		l.settle()
	}
	_, err = l.pay.SetAutoTopUp(l.t.Context(), l.scope, payment.AutoChange{Enabled: true, Threshold: "10", Amount: "25", MonthCap: "500"})
	l.must(err)
	l.must(l.pay.FollowAutoTopUps(l.t.Context()))
	l.settle()
}

// A charge under the same order is one payment, and one event.
func TestAChargeIsMadeOnce(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.save(testpay.Pay)
	posts := l.posts.Load()
	ledger, err := l.cashier.Ledger(t.Context())
	l.must(err)
	if len(ledger.Payments) != 1 || ledger.Payments[0].Cents != 2500 {
		t.Fatalf("the ledger is %+v", ledger)
	}
	found, ok, err := l.cashier.FindPayment(t.Context(), payment.Charge{ID: l.orderID()})
	if err != nil || !ok || found.State != payment.PaymentPaid {
		t.Errorf("the payment is %+v, %t, %v", found, ok, err)
	}
	again, err := l.cashier.Charge(t.Context(), payment.Charge{
		ID: l.orderID(), TeamID: l.scope.TeamID(), CardID: l.auto().Card.ID, Amount: 25 * money.Dollar,
	})
	if err != nil || again != found {
		t.Errorf("charged again it is %+v, %v", again, err)
	}
	l.settle()
	l.want(25 * money.Dollar)
	if l.posts.Load() != posts {
		t.Error("a second event was sent")
	}
	if _, err := l.cashier.Dispute(t.Context(), found.ID); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.want(0)
	if !l.held() {
		t.Error("a disputed automatic top-up holds nothing")
	}
}

// The test checkout's book has what saved cards paid, and ours agrees: also
// where a payment was made and nobody heard of it.
func TestTheBookHasWhatSavedCardsPaid(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.save(testpay.Pay)
	l.clock.Advance(26 * time.Hour)
	if r := l.agree(0); len(r.Days) == 0 || r.Days[0].Payments != 25*money.Dollar {
		t.Errorf("the days are %+v", r.Days)
	}
	_, err := l.pay.SetAutoTopUp(t.Context(), l.scope, payment.AutoChange{Enabled: true, Threshold: "30", Amount: "25", MonthCap: "500"})
	l.must(err)
	l.must(l.pay.FollowAutoTopUps(t.Context()))
	l.jobs.Take() // who was to ask died after asking
	_, err = l.cashier.Charge(t.Context(), payment.Charge{
		ID: l.orderID(), TeamID: l.scope.TeamID(), CardID: l.auto().Card.ID, Amount: 25 * money.Dollar,
	})
	l.must(err)
	l.jobs.Take()                                  // and its event is lost
	l.must(l.pay.RemoveCard(t.Context(), l.scope)) // nobody asks again
	l.must(l.pay.Charge(t.Context(), payment.ChargeJob{OrderID: l.orderID()}))
	l.clock.Advance(26 * time.Hour)
	l.agree(1)
	l.want(50 * money.Dollar)
}

// A removed card pays no more, and its removal is told.
func TestADetachedTestCardPaysNoMore(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.save(testpay.Pay)
	card := l.auto().Card.ID
	l.must(l.cashier.DetachCard(t.Context(), card))
	l.must(l.cashier.DetachCard(t.Context(), card))
	l.settle()
	if a := l.auto(); a.State != payment.AutoOff || a.OffReason != payment.OffCardRemoved || a.Card != nil {
		t.Errorf("after the card was removed at the bank: %+v", a)
	}
}

// The page names a payment by eight characters: they are not the same for all.
func TestTestPaymentsDifferInWhatIsShown(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	var shown []string
	for range 6 {
		paid := l.topUp("5")
		back, err := l.cashier.Refund(t.Context(), paid, "1")
		l.must(err)
		l.settle()
		shown = append(shown, paid[:8], back.ID[:8])
		l.clock.Advance(time.Second)
	}
	slices.Sort(shown)
	if got := len(slices.Compact(shown)); got != 12 {
		t.Errorf("12 payments and refunds are shown by %d references: %v", got, shown)
	}
}

func TestThePageOfACardChargesNothing(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	address, err := l.pay.CheckoutCard(t.Context(), l.scope, idem.Request{})
	l.must(err)
	s, err := l.cashier.Find(t.Context(), path.Base(address))
	l.must(err)
	w := httptest.NewRecorder()
	l.must(l.cashier.Page(w, s, false))
	for _, want := range []string{"Save a card", "Nothing is charged now.", `value="save_declined"`, `value="save_asks"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(w.Body.String(), "$0.00") {
		t.Error("the page names an amount")
	}
	if _, err := l.cashier.Act(t.Context(), l.order("5"), testpay.SaveAsks); err == nil {
		t.Error("a top-up saved a card")
	}
}

// orderID is the newest automatic order.
func (l *till) orderID() (order uuid.UUID) {
	l.t.Helper()
	l.must(l.pool.QueryRow(l.t.Context(), `select id from topup where automatic order by created_at desc limit 1`).Scan(&order))
	return order
}
