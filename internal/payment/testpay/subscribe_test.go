package testpay_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// team opens the checkout of a new team and returns its session and payer.
func (l *till) team(members string) (string, team.Person) {
	l.t.Helper()
	p := teamtest.Person()
	address, err := l.pay.CheckoutTeam(l.t.Context(), p, payment.TeamRequest{Name: "Docks", Members: members}, idem.Request{})
	if err != nil {
		l.t.Fatal(err)
	}
	if !strings.HasPrefix(address, origin+"/test-checkout/cs_test_") {
		l.t.Errorf("the payer goes to %s", address)
	}
	return path.Base(address), p
}

// wantPro checks that a person has one team with so many seats, or none for 0.
func (l *till) wantPro(p team.Person, seats int) {
	l.t.Helper()
	info, err := l.teams.UserInfo(l.t.Context(), p)
	if err != nil {
		l.t.Fatal(err)
	}
	teams := info.Teams[1:]
	if seats == 0 && len(teams) == 0 {
		return
	}
	if len(teams) != 1 || teams[0].Plan != team.Pro || teams[0].Role != team.Admin || teams[0].MaxMembers == nil || *teams[0].MaxMembers != seats {
		l.t.Errorf("the payer has %+v, want one Pro team of %d", teams, seats)
	}
}

// events are the kinds of the events that were made, with what they are about.
func (l *till) events() map[string][]json.RawMessage {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), `select payload from testpay_event order by created_at, id`)
	if err != nil {
		l.t.Fatal(err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string][]json.RawMessage{}
	for _, raw := range payloads {
		var e stripe.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			l.t.Fatal(err)
		}
		out[string(e.Type)] = append(out[string(e.Type)], e.Data.Raw)
	}
	return out
}

// as reads an object with Stripe's own client.
func as[T any](t *testing.T, raw json.RawMessage) *T {
	t.Helper()
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestAPaidTeamCheckoutMakesTheTeam(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session, p := l.team("3")
	l.wantPro(p, 0)
	next := l.act(session, testpay.Decline)
	if next != origin+"/test-checkout/"+session+"?declined=1" {
		t.Errorf("after a declined card the payer goes to %s", next)
	}
	if next := l.act(session, testpay.Cancel); next != origin+"/create-team" {
		t.Errorf("after a cancelled payment the payer goes to %s", next)
	}
	l.deliver()
	if l.posts.Load() != 0 {
		t.Error("an event was sent for a payment that did not happen")
	}
	next = l.act(session, testpay.Pay)
	if !strings.HasPrefix(next, origin+"/billing?team_id=") || !strings.HasSuffix(next, "&subscribe=success") {
		t.Errorf("a payer goes on to %s", next)
	}
	l.wantPro(p, 0) // the way back makes nothing
	l.deliver()
	l.wantPro(p, 3)
	l.act(session, testpay.Pay) // the form is posted again
	l.deliver()
	l.wantPro(p, 3)
	if n := l.posts.Load(); n != 4 {
		t.Errorf("%d events were posted, want 4", n)
	}
	l.want(0)
}

// What we send is what Stripe's own client reads, with the same meaning.
func TestTheEventsHaveStripesShapes(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session, p := l.team("3")
	l.act(session, testpay.Pay)
	events := l.events()
	for _, kind := range []string{"customer.created", "customer.subscription.created", "invoice.paid", "checkout.session.completed"} {
		if len(events[kind]) != 1 {
			t.Fatalf("%d events %s, want 1", len(events[kind]), kind)
		}
	}
	customer := as[stripe.Customer](t, events["customer.created"][0])
	cs := as[stripe.CheckoutSession](t, events["checkout.session.completed"][0])
	sub := as[stripe.Subscription](t, events["customer.subscription.created"][0])
	invoice := as[stripe.Invoice](t, events["invoice.paid"][0])
	begin := l.clock.Now().Unix()
	end := time.Date(2027, 4, 14, 12, 0, 0, 0, time.UTC).Unix()
	type facts struct {
		Mode, Paid, Customer, Subscription, Invoice, Email string
		Amount, Quantity, Price, Begin, End, Anchor        int64
	}
	got := facts{
		Mode: string(cs.Mode), Paid: string(cs.PaymentStatus), Customer: cs.Customer.ID, Subscription: cs.Subscription.ID,
		Invoice: cs.Invoice.ID, Email: customer.Email, Amount: invoice.AmountPaid, Quantity: sub.Items.Data[0].Quantity,
		Price: sub.Items.Data[0].Price.UnitAmount, Begin: sub.Items.Data[0].CurrentPeriodStart,
		End: sub.Items.Data[0].CurrentPeriodEnd, Anchor: sub.BillingCycleAnchor,
	}
	want := facts{
		Mode: "subscription", Paid: "paid", Customer: customer.ID, Subscription: sub.ID, Invoice: invoice.ID, Email: p.Email,
		Amount: 30000, Quantity: 3, Price: 10000, Begin: begin, End: end, Anchor: begin,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if cs.PaymentIntent != nil || cs.AmountSubtotal != 30000 || invoice.Status != stripe.InvoiceStatusPaid ||
		invoice.Parent.SubscriptionDetails.Subscription.ID != sub.ID || sub.LatestInvoice.ID != invoice.ID ||
		sub.Status != stripe.SubscriptionStatusActive || sub.Customer.ID != customer.ID {
		t.Error("the objects do not name each other")
	}
}

func TestTeamEventsInAnyOrder(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session, p := l.team("2")
	l.act(session, testpay.Pay)
	jobs := l.jobs.Take()
	slices.Reverse(jobs)
	for range 2 {
		for _, j := range jobs {
			if err := l.cashier.Deliver(t.Context(), j.(testpay.DeliverJob)); err != nil {
				t.Error(err)
			}
		}
	}
	l.wantPro(p, 2)
	l.readSubscriptions()
	l.wantSubscription("active", 2, time.Date(2027, 4, 14, 12, 0, 0, 0, time.UTC))
}

// readSubscriptions runs the readings that were queued.
func (l *till) readSubscriptions() {
	l.t.Helper()
	for _, j := range l.jobs.Take() {
		if j, ok := j.(payment.SubscriptionJob); ok {
			if err := l.pay.ReadSubscription(l.t.Context(), j); err != nil {
				l.t.Error(err)
			}
		}
	}
}

// wantSubscription checks what is stored of the only subscription.
func (l *till) wantSubscription(status string, seats int, until time.Time) {
	l.t.Helper()
	var got struct {
		status, customer string
		seats            int
		until            time.Time
	}
	err := l.pool.QueryRow(l.t.Context(), `select status, seats, customer_id, period_end_at from subscription`).
		Scan(&got.status, &got.seats, &got.customer, &got.until)
	if err != nil || got.status != status || got.seats != seats || !got.until.Equal(until) || !strings.HasPrefix(got.customer, "cus_test_") {
		l.t.Errorf("the subscription is %+v (%v), want %s of %d until %s", got, err, status, seats, until)
	}
}

func TestTeamFormsPostedAtOnceMakeOneTeam(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session, p := l.team("5")
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if _, err := l.cashier.Act(t.Context(), session, testpay.Pay); err != nil {
				t.Error(err)
			}
			if err := l.cashier.DeliverDue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	l.wantPro(p, 5)
	if n := l.posts.Load(); n != 4 {
		t.Errorf("%d events were posted, want 4", n)
	}
}

// A team's checkout lives by business time, as its subscription does.
func TestAnExpiredTeamCheckoutCannotBePaid(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session, p := l.team("2")
	l.clock.SetOffset(payment.TeamLifetime)
	if _, err := l.cashier.Act(t.Context(), session, testpay.Pay); !errors.Is(err, testpay.ErrExpired) {
		t.Errorf("paid after its end: %v", err)
	}
	if err := l.pay.ExpireTeams(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantPro(p, 0)
	var left int
	if err := l.pool.QueryRow(t.Context(), `select count(*) from team where state = 'inactive'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d reserved teams are left (%v)", left, err)
	}
}

func TestThePageTellsTheMonthlyPrice(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	page := func(id string) string {
		s, err := l.cashier.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := l.cashier.Page(w, s, false); err != nil {
			t.Fatal(err)
		}
		return w.Body.String()
	}
	three, _ := l.team("3")
	for _, want := range []string{
		"Test checkout: no real money", "<h1>Homeport Pro</h1>", "Docks", "$300.00", "per month", "3 seats at $100.00,",
		`name="outcome" value="pay"`, `name="outcome" value="decline"`, `name="outcome" value="cancel"`,
	} {
		if !strings.Contains(page(three), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	all, _ := l.team("100")
	if !strings.Contains(page(all), "$10,000.00") {
		t.Error("a large price is hard to read")
	}
	one, _ := l.team("1")
	if !strings.Contains(page(one), "1 seat at $100.00,") {
		t.Error("one seat is not told of")
	}
	l.act(one, testpay.Pay)
	if paid := page(one); strings.Contains(paid, "<form") || !strings.Contains(paid, "This checkout is paid.") {
		t.Error("a paid checkout can be paid again")
	}
}
