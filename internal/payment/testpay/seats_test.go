package testpay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/team"
)

// subscribe pays for a team of 2 and returns the payer's scope.
func (l *till) subscribe(outcome testpay.Outcome) (scope team.Scope, payer team.Person) {
	l.t.Helper()
	session, payer := l.team("2")
	l.act(session, outcome)
	l.deliver()
	l.readSubscriptions()
	info, err := l.teams.UserInfo(l.t.Context(), payer)
	if err != nil || len(info.Teams) != 2 {
		l.t.Fatalf("the payer has %+v, %v", info.Teams, err)
	}
	if scope, err = l.teams.Authorize(l.t.Context(), payer, info.Teams[1].ID, team.Manage); err != nil {
		l.t.Fatal(err)
	}
	return scope, payer
}

// wantBilled checks which invoices were paid, in cents, the smallest first.
func (l *till) wantBilled(want ...int64) {
	l.t.Helper()
	var paid []int64
	for _, raw := range l.events()["invoice.paid"] {
		paid = append(paid, as[stripe.Invoice](l.t, raw).AmountPaid)
	}
	slices.Sort(paid)
	if diff := cmp.Diff(want, paid); diff != "" {
		l.t.Errorf("what was billed in cents (-want +got):\n%s", diff)
	}
}

func TestMoreSeatsAreBilledForTheRestOfTheMonthAtOnce(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := l.clock.Now()
	scope, payer := l.subscribe(testpay.Pay)
	end := begin.Truncate(time.Second).AddDate(0, 1, 0)
	l.moveTo(end.AddDate(0, 0, -10))
	if got, err := l.pay.SetSeats(t.Context(), scope, "5"); err != nil || got.MaxMembers == nil || *got.MaxMembers != 5 {
		t.Fatalf("the team is %+v, %v", got, err)
	}
	l.wantPro(payer, 5)
	if told := l.events()["customer.subscription.updated"]; len(told) != 1 || as[stripe.Subscription](t, told[0]).Items.Data[0].Quantity != 5 {
		t.Errorf("%d events tell of the change", len(told))
	}
	// 10 of the month's days are left: so much of 3 seats, to the nearest cent.
	days := int64(end.Sub(begin.Truncate(time.Second)) / (24 * time.Hour))
	rest := (30000*10*2 + days) / (2 * days)
	l.wantBilled(rest, 20000)
	l.moveTo(end)
	l.renew()
	l.wantBilled(rest, 20000, 50000)
	var booked int64
	moved, err := l.cashier.ListMovements(t.Context(), begin.Add(-time.Hour), end.Add(time.Hour))
	for _, m := range moved {
		booked += int64(m.Amount / money.Cent)
	}
	if want := 20000 + rest + 50000; err != nil || booked != want {
		t.Errorf("the book has %d cents, want %d, %v", booked, want, err)
	}
}

func TestADeclinedCardPaysNoMoreSeats(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	scope, payer := l.subscribe(testpay.PayOnce)
	if _, err := l.pay.SetSeats(t.Context(), scope, "5"); !errors.Is(err, payment.ErrSeatsUnpaid) {
		t.Errorf("seats on a declined card: %v", err)
	}
	l.wantPro(payer, 2)
	if _, err := l.pay.SetSeats(t.Context(), scope, "1"); err != nil {
		t.Error(err)
	}
	l.wantPro(payer, 1)
}

func TestASubscriptionEndsWithItsMonth(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := l.clock.Now()
	scope, _ := l.subscribe(testpay.Pay)
	for range 2 {
		if err := l.pay.EndSubscription(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
	}
	end := begin.Truncate(time.Second).AddDate(0, 1, 0)
	l.wantSubscription("active", 2, end)
	l.moveTo(end.Add(-time.Second))
	l.renew()
	if len(l.events()["customer.subscription.deleted"]) != 0 {
		t.Error("it ended before its month")
	}
	l.moveTo(end.AddDate(0, 3, 0))
	l.renew()
	l.deliver()
	l.readSubscriptions()
	l.wantSubscription("canceled", 2, end)
	if n := len(l.events()["invoice.paid"]); n != 1 {
		t.Errorf("%d months were billed", n)
	}
}

func TestASubscriptionThatGoesOnIsBilledAgain(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := l.clock.Now()
	scope, payer := l.subscribe(testpay.Pay)
	for _, change := range []func(context.Context, team.Scope) error{
		l.pay.EndSubscription, l.pay.ResumeSubscription, l.pay.EndSubscription, l.pay.ResumeSubscription, l.pay.ResumeSubscription,
	} {
		if err := change(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
	}
	l.moveTo(begin.AddDate(0, 1, 1))
	l.renew()
	l.deliver()
	l.readSubscriptions()
	l.wantPro(payer, 2)
	if n := len(l.events()["invoice.paid"]); n != 2 {
		t.Errorf("%d months were billed", n)
	}
}
