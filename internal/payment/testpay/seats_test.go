package testpay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

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

func TestMoreSeatsAreBilledFromTheNextMonthOn(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := l.clock.Now()
	scope, payer := l.subscribe(testpay.Pay)
	if got, err := l.pay.SetSeats(t.Context(), scope, "5"); err != nil || got.MaxMembers == nil || *got.MaxMembers != 5 {
		t.Fatalf("the team is %+v, %v", got, err)
	}
	l.wantPro(payer, 5)
	if told := l.events()["customer.subscription.updated"]; len(told) != 1 || as[stripe.Subscription](t, told[0]).Items.Data[0].Quantity != 5 {
		t.Errorf("%d events tell of the change", len(told))
	}
	l.moveTo(begin.AddDate(0, 1, 1))
	l.renew()
	var total int64
	for _, raw := range l.events()["invoice.paid"] {
		total += as[stripe.Invoice](t, raw).AmountPaid
	}
	if total != 20000+50000 {
		t.Errorf("%d cents were billed for a month of 2 and a month of 5", total)
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
