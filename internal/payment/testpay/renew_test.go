package testpay_test

import (
	"cmp"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment/testpay"
)

// begin moves business time to an instant and pays for a team there.
func (l *till) begin(at time.Time, outcome testpay.Outcome) {
	l.t.Helper()
	l.moveTo(at)
	session, _ := l.team("2")
	l.act(session, outcome)
	l.deliver()
	l.readSubscriptions()
}

func (l *till) moveTo(at time.Time) {
	l.t.Helper()
	l.clock.SetOffset(at.Sub(l.clock.Wall()))
	if !l.clock.Now().Equal(at) {
		l.t.Fatalf("business time is %s, want %s", l.clock.Now(), at)
	}
}

func (l *till) renew() {
	l.t.Helper()
	if err := l.cashier.RenewDue(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

// months are the starts and ends of the invoices of a kind, in order.
func (l *till) months(kind string) (days []string) {
	l.t.Helper()
	var invoices []*stripe.Invoice
	for _, raw := range l.events()[kind] {
		invoices = append(invoices, as[stripe.Invoice](l.t, raw))
	}
	slices.SortFunc(invoices, func(a, b *stripe.Invoice) int { return cmp.Compare(a.PeriodStart, b.PeriodStart) })
	for _, i := range invoices {
		day := func(unix int64) string { return time.Unix(unix, 0).UTC().Format("01-02") }
		days = append(days, day(i.PeriodStart)+".."+day(i.PeriodEnd))
	}
	return days
}

// The same day each month; where a month lacks it, the last, and then again
// the same day.
func TestRenewalsAreAnchoredToTheDay(t *testing.T) {
	t.Parallel()
	for begin, want := range map[string]string{
		"2028-01-31 23:59:59": "01-31..02-29 02-29..03-31 03-31..04-30 04-30..05-31 05-31..06-30",
		"2029-01-31 00:00:00": "01-31..02-28 02-28..03-31 03-31..04-30 04-30..05-31 05-31..06-30",
		"2029-01-30 12:00:00": "01-30..02-28 02-28..03-30 03-30..04-30 04-30..05-30 05-30..06-30",
		"2029-01-29 12:00:00": "01-29..02-28 02-28..03-29 03-29..04-29 04-29..05-29 05-29..06-29",
		"2028-02-29 12:00:00": "02-29..03-29 03-29..04-29 04-29..05-29 05-29..06-29 06-29..07-29",
		"2028-10-15 12:00:00": "10-15..11-15 11-15..12-15 12-15..01-15 01-15..02-15 02-15..03-15",
	} {
		t.Run(begin, func(t *testing.T) {
			t.Parallel()
			l := newTill(t)
			at, err := time.Parse(time.DateTime, begin)
			if err != nil {
				t.Fatal(err)
			}
			l.begin(at, testpay.Pay)
			l.moveTo(at.AddDate(0, 4, 10)) // four months at one stroke
			l.renew()
			if got := strings.Join(l.months("invoice.paid"), " "); got != want {
				t.Errorf("billed %s\n  want %s", got, want)
			}
			if n := len(l.events()["customer.subscription.updated"]); n != 4 {
				t.Errorf("%d updates, want 4", n)
			}
		})
	}
}

func TestARenewalIsBilledOnceAtItsInstant(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := time.Date(2028, 5, 20, 9, 30, 0, 0, time.UTC)
	l.begin(begin, testpay.Pay)
	june := begin.AddDate(0, 1, 0)
	l.moveTo(june.Add(-time.Second))
	l.renew()
	if got := l.months("invoice.paid"); len(got) != 1 {
		t.Errorf("billed %v before the month was over", got)
	}
	l.moveTo(june)
	other := l.open("http://nowhere.invalid") // a second node
	var wait sync.WaitGroup
	for i := range 16 {
		node := []*testpay.Processor{l.cashier, other}[i%2]
		wait.Go(func() {
			if err := node.RenewDue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := l.months("invoice.paid"); len(got) != 2 {
		t.Errorf("billed %v, want two months", got)
	}
	l.deliver()
	l.readSubscriptions()
	l.wantSubscription("active", 2, begin.AddDate(0, 2, 0))
	l.want(0) // no wallet is touched
}

func TestADeclinedRenewalIsPastDue(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := time.Date(2028, 5, 20, 9, 30, 0, 0, time.UTC)
	l.begin(begin, testpay.PayOnce)
	l.wantSubscription("active", 2, begin.AddDate(0, 1, 0))
	l.moveTo(begin.AddDate(0, 2, 1))
	l.renew()
	if got := l.months("invoice.payment_failed"); len(got) != 2 {
		t.Errorf("declined %v, want two months", got)
	}
	failed := as[stripe.Invoice](t, l.events()["invoice.payment_failed"][0])
	if failed.Status != stripe.InvoiceStatusOpen || failed.AmountPaid != 0 || failed.AmountRemaining != 20000 || failed.AttemptCount != 1 ||
		failed.BillingReason != stripe.InvoiceBillingReasonSubscriptionCycle {
		t.Errorf("the declined invoice is %+v", failed)
	}
	l.deliver()
	l.readSubscriptions()
	l.wantSubscription("past_due", 2, begin.AddDate(0, 3, 0))
}

func TestACancelledSubscriptionIsBilledNoMore(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	begin := time.Date(2028, 5, 20, 9, 30, 0, 0, time.UTC)
	l.begin(begin, testpay.Pay)
	sub := as[stripe.Subscription](t, l.events()["customer.subscription.created"][0])
	for range 2 {
		if err := l.cashier.CancelSubscription(t.Context(), sub.ID); err != nil {
			t.Fatal(err)
		}
	}
	ended := l.events()["customer.subscription.deleted"]
	if len(ended) != 1 || as[stripe.Subscription](t, ended[0]).Status != stripe.SubscriptionStatusCanceled {
		t.Errorf("%d events of the end", len(ended))
	}
	l.moveTo(begin.AddDate(1, 0, 0))
	l.renew()
	if got := l.months("invoice.paid"); len(got) != 1 {
		t.Errorf("billed %v", got)
	}
	l.deliver()
	l.readSubscriptions()
	l.wantSubscription("canceled", 2, begin.AddDate(0, 1, 0))
	if err := l.cashier.CancelSubscription(t.Context(), "sub_test_none"); !errors.Is(err, testpay.ErrNotFound) {
		t.Errorf("an unknown subscription: %v", err)
	}
}

func TestOnlyASubscriptionCanBePaidOnce(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	if _, err := l.cashier.Act(t.Context(), l.order("5"), testpay.PayOnce); !errors.Is(err, testpay.ErrOutcome) {
		t.Errorf("a top-up was paid once: %v", err)
	}
	team, _ := l.team("1")
	for id, want := range map[string]bool{l.order("5"): false, team: true} {
		s, err := l.cashier.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := l.cashier.Page(w, s, false); err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(w.Body); strings.Contains(string(body), `value="pay_once"`) != want {
			t.Errorf("the page of a %s checkout offers it: %t", s.Mode, !want)
		}
	}
}
