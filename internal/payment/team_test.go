package payment_test

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// found is a team that a person is about to pay for.
type found struct {
	*desk
	payer   team.Person
	team    uuid.UUID
	session payment.Session
}

// found opens the checkout of a new team.
func (d *desk) found(members string) *found {
	d.t.Helper()
	f := &found{desk: d, payer: teamtest.Person()}
	address, err := d.pay.CheckoutTeam(d.t.Context(), f.payer,
		payment.TeamRequest{Name: " Docks ", Description: "North\nquay", Members: members}, idem.Request{})
	if err != nil {
		d.t.Fatal(err)
	}
	f.session = d.bank.sessions[path.Base(address)]
	if err := d.pool.QueryRow(d.t.Context(), `select team_id from team_checkout where id = $1`, f.session.OrderID).Scan(&f.team); err != nil {
		d.t.Fatal(err)
	}
	return f
}

// subscribed is the event of a paid team checkout, as Stripe writes it.
func subscribed(s payment.Session, subscriptionID string) notice {
	n := paid(s, "")
	n.object["mode"], n.object["payment_intent"], n.object["subscription"] = "subscription", nil, subscriptionID
	n.object["customer"], n.object["amount_total"] = "cus_1", n.object["amount_subtotal"]
	n.object["metadata"] = map[string]string{payment.TeamOrderKey: s.OrderID.String()}
	return n
}

// subscription is an event about a subscription; what it says is old.
func subscription(kind, subscriptionID string) notice {
	n := notice{id: "evt_" + id.New().String(), kind: kind, version: stripe.APIVersion, live: true}
	switch {
	case strings.HasPrefix(kind, "invoice."):
		n.object = map[string]any{"id": "in_1", "object": "invoice", "parent": map[string]any{
			"type": "subscription_details", "subscription_details": map[string]any{"subscription": subscriptionID},
		}}
	default:
		n.object = map[string]any{"id": subscriptionID, "object": "subscription", "status": "incomplete", "customer": "cus_1"}
	}
	return n
}

// teams are the payer's teams but for the personal one.
func (f *found) teams() []team.Team {
	f.t.Helper()
	info, err := f.desk.teams.UserInfo(f.t.Context(), f.payer)
	if err != nil {
		f.t.Fatal(err)
	}
	return info.Teams[1:]
}

// wantTeam checks that the team was made once and is the payer's.
func (f *found) wantTeam(seats int) {
	f.t.Helper()
	teams := f.teams()
	if len(teams) != 1 {
		f.t.Fatalf("the payer has %d teams, want 1", len(teams))
	}
	got := teams[0]
	if got.ID != f.team || got.Name != "Docks" || got.Description != "North\nquay" || got.Plan != team.Pro || got.Role != team.Admin ||
		got.MaxMembers == nil || *got.MaxMembers != seats || got.IsPersonal {
		f.t.Errorf("the team is %+v", got)
	}
	scope, err := f.desk.teams.Authorize(f.t.Context(), f.payer, f.team, team.Manage)
	if err != nil {
		f.t.Fatal(err)
	}
	if b, err := f.w.Balance(f.t.Context(), scope, f.clock.Now()); err != nil || b.Balance != 0 {
		f.t.Errorf("the new wallet has %s (%v)", b.Balance, err)
	}
	if n := f.count(`select count(*) from membership where team_id = $1`, f.team); n != 1 {
		f.t.Errorf("%d members, want 1", n)
	}
	if n := f.count(`select count(*) from subscription where team_id = $1`, f.team); n != 1 {
		f.t.Errorf("%d subscriptions, want 1", n)
	}
}

// wantNone checks that the payer has no team and cannot reach this one.
func (f *found) wantNone() {
	f.t.Helper()
	if teams := f.teams(); len(teams) != 0 {
		f.t.Errorf("the payer has %+v", teams)
	}
	if _, err := f.desk.teams.Authorize(f.t.Context(), f.payer, f.team, team.Read); !errors.Is(err, team.ErrNotFound) {
		f.t.Errorf("an unpaid team is reached: %v", err)
	}
}

func (d *desk) count(sql string, args ...any) (n int) {
	d.t.Helper()
	if err := d.pool.QueryRow(d.t.Context(), sql, args...).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (b *bank) subscribe(s payment.Session, sub payment.Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Paid, s.SubscriptionID = true, sub.ID
	b.sessions[s.ID], b.subs[sub.ID] = s, sub
}

// active is a subscription in its first month.
func active(subscriptionID string, seats int) payment.Subscription {
	return payment.Subscription{
		ID: subscriptionID, CustomerID: "cus_1", Status: "active", Seats: seats,
		AnchorAt: noon, PeriodStartAt: noon, PeriodEndAt: noon.AddDate(0, 1, 0),
	}
}

func TestAPaidEventMakesTheTeamOnce(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("3")
	f.wantNone()
	if f.session.Amount != 300*money.Dollar {
		t.Errorf("3 seats cost %s", f.session.Amount)
	}
	event := subscribed(f.session, "sub_1")
	f.mustReceive(event)
	f.wantTeam(3)
	f.mustReceive(event)
	f.mustReceive(subscribed(f.session, "sub_1"))
	late := subscribed(f.session, "sub_1")
	late.kind, late.object["status"], late.object["payment_status"] = "checkout.session.expired", "expired", "unpaid"
	f.mustReceive(late)
	f.wantTeam(3)
	f.want(0, 0) // no money went into any wallet
}

func TestThePayersWayBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var order payment.TeamOrder
	d.bank.seen = func(o payment.TeamOrder) { order = o }
	f := d.found("1")
	if want := "https://homeport.test/billing?team_id=" + f.team.String() + "&subscribe=success"; order.SuccessURL != want {
		t.Errorf("after paying the payer goes to %s, want %s", order.SuccessURL, want)
	}
	if order.CancelURL != "https://homeport.test/create-team" || order.Email != f.payer.Email || order.TeamName != "Docks" {
		t.Errorf("the order is %+v", order)
	}
	if _, err := url.Parse(order.SuccessURL); err != nil {
		t.Error(err)
	}
}

func TestManyEventsAtOnceMakeOneTeam(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("5")
	f.bank.subscribe(f.session, active("sub_1", 5))
	f.clock.Advance(time.Minute)
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			switch i % 4 {
			case 0:
				f.pay.Returned(t.Context(), f.payer.ID)
			case 1:
				if err := f.pay.ReadOpen(t.Context()); err != nil {
					t.Error(err)
				}
			default:
				if err := f.receive(subscribed(f.session, "sub_1")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	f.wantTeam(5)
}

// The payer is back before the event: what they see comes from a reading.
func TestReturningReadsTheCheckout(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	f.pay.Returned(t.Context(), f.payer.ID)
	f.wantNone()
	f.bank.subscribe(f.session, active("sub_1", 2))
	f.clock.Advance(3 * time.Second)
	f.pay.Returned(t.Context(), id.New()) // somebody else
	f.wantNone()
	f.pay.Returned(t.Context(), f.payer.ID)
	f.wantTeam(2)
	f.mustReceive(subscribed(f.session, "sub_1")) // and then the event
	f.wantTeam(2)
}

func TestReturningWithoutPaymentMakesNothing(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	f.bank.down = true
	f.clock.Advance(3 * time.Second)
	f.pay.Returned(t.Context(), f.payer.ID) // the processor is away
	f.bank.down = false
	for range 3 {
		f.clock.Advance(time.Minute)
		f.pay.Returned(t.Context(), f.payer.ID)
	}
	f.wantNone()
}

func TestALostTeamEventIsHealedByReading(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	f.bank.subscribe(f.session, active("sub_1", 2))
	f.clock.Advance(3 * time.Minute)
	if err := f.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantTeam(2)
}

func TestTeamEventsThatChangeNothing(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("3")
	change := func(edit func(*notice)) notice {
		n := subscribed(f.session, "sub_1")
		edit(&n)
		return n
	}
	tests := map[string]struct {
		event notice
		fault error
	}{
		"unpaid":           {change(func(n *notice) { n.object["payment_status"] = "unpaid" }), nil},
		"free":             {change(func(n *notice) { n.object["payment_status"] = "no_payment_required" }), nil},
		"fewer seats":      {change(func(n *notice) { n.object["amount_subtotal"] = 10000 }), nil},
		"another currency": {change(func(n *notice) { n.object["currency"] = "jpy" }), nil},
		"another mode":     {change(func(n *notice) { n.object["mode"] = "payment" }), nil},
		"another session":  {change(func(n *notice) { n.object["id"] = "cs_other" }), nil},
		"no subscription":  {change(func(n *notice) { n.object["subscription"] = nil }), nil},
		"a top-up's name": {change(func(n *notice) {
			n.object["metadata"] = map[string]string{payment.OrderKey: f.session.OrderID.String()}
		}), nil},
		"no order":         {change(func(n *notice) { delete(n.object, "metadata") }), nil},
		"an unknown order": {change(func(n *notice) { n.object["metadata"] = map[string]string{payment.TeamOrderKey: id.New().String()} }), nil},
		"another livemode": {change(func(n *notice) { n.live = false }), payment.ErrMode},
		"an early invoice": {subscription("invoice.paid", "sub_1"), nil},
		"an early start":   {subscription("customer.subscription.created", "sub_1"), nil},
	}
	for name, test := range tests {
		if err := f.receive(test.event); !errors.Is(err, test.fault) {
			t.Errorf("%s: %v, want %v", name, err, test.fault)
		}
		f.wantNone()
	}
	forged := subscribed(f.session, "sub_1").body(t)
	if err := f.pay.Receive(t.Context(), forged, sign(forged, "whsec_of_a_thief", f.clock.Wall())); !errors.Is(err, payment.ErrSignature) {
		t.Errorf("forged: %v", err)
	}
	f.wantNone()
	f.mustReceive(subscribed(f.session, "sub_1"))
	f.wantTeam(3)
}

func TestOneSubscriptionPaysOneTeam(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.found("1"), d.found("1")
	d.mustReceive(subscribed(first.session, "sub_1"))
	if err := d.receive(subscribed(second.session, "sub_1")); err == nil {
		t.Error("one subscription paid two teams")
	}
	first.wantTeam(1)
	second.wantNone()
}

func TestUnpaidTeamsExpire(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	expire := func() {
		t.Helper()
		if err := f.pay.ExpireTeams(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	plots := func() int { return f.count(`select count(*) from team where id = $1`, f.team) }
	f.clock.SetOffset(payment.TeamLifetime - time.Second)
	expire()
	if plots() != 1 {
		t.Fatal("the team was given up before its day was over")
	}
	f.clock.SetOffset(payment.TeamLifetime) // business time alone
	f.bank.down = true
	if err := f.pay.ExpireTeams(t.Context()); err == nil || plots() != 1 {
		t.Errorf("a team was given up without asking the processor: %v", err)
	}
	f.bank.down = false
	expire()
	expire()
	if plots() != 0 || f.count(`select count(*) from team_checkout where status = 'open'`) != 0 {
		t.Error("an unpaid team left something")
	}
	f.wantNone()
}

func TestAProcessorThatIsGoneForGoodKeepsNoTeamForEver(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	f.bank.down = true
	f.clock.SetOffset(payment.TeamLifetime + 72*time.Hour)
	if err := f.pay.ExpireTeams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.count(`select count(*) from team where id = $1`, f.team) != 0 {
		t.Error("the team waits for ever")
	}
}

// Money paid always gives a team, however late we hear of it.
func TestAnExpiredTeamThatIsPaidIsMadeAllTheSame(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("4")
	f.clock.SetOffset(48 * time.Hour)
	if err := f.pay.ExpireTeams(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantNone()
	f.mustReceive(subscribed(f.session, "sub_1"))
	f.wantTeam(4)
}

func TestAPaidTeamIsNotExpired(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("4")
	f.bank.subscribe(f.session, active("sub_1", 4)) // its event is lost
	f.clock.SetOffset(48 * time.Hour)
	if err := f.pay.ExpireTeams(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantTeam(4)
}

func TestActivationAgainstExpiry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var all []*found
	for range 8 {
		all = append(all, d.found("2"))
	}
	d.clock.SetOffset(25 * time.Hour)
	var wait sync.WaitGroup
	for _, f := range all {
		wait.Go(func() {
			if err := f.receive(subscribed(f.session, "sub_"+f.team.String())); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			if err := d.pay.ExpireTeams(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, f := range all {
		f.wantTeam(2)
	}
}

func TestAClosedCheckoutGivesTheTeamUp(t *testing.T) {
	t.Parallel()
	f := newDesk(t).found("2")
	n := subscribed(f.session, "")
	n.kind, n.object["status"], n.object["payment_status"], n.object["subscription"] = "checkout.session.expired", "expired", "unpaid", nil
	f.mustReceive(n)
	if f.count(`select count(*) from team where id = $1`, f.team) != 0 {
		t.Error("the team of a checkout that expired is kept")
	}
	f.mustReceive(subscribed(f.session, "sub_1")) // wrong of them, but the money is there
	f.wantTeam(2)
}

func TestATeamCheckoutIsRefusedInWords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ask := func(r payment.TeamRequest) error {
		_, err := d.pay.CheckoutTeam(t.Context(), teamtest.Person(), r, idem.Request{})
		return err
	}
	for _, test := range []struct {
		name, description, members string
		detail                     string
	}{
		{" \n ", "", "1", "Team name is required"},
		{strings.Repeat("é", 81), "", "1", "The team name must have 1 to 80 characters."},
		{"Docks", strings.Repeat("é", 1001), "1", "The description must have at most 1000 characters."},
		{"Docks", "", "", "Number of members is required"},
		{"Docks", "", "many", "Please enter a valid number"},
		{"Docks", "", "2.5", "Please enter a valid number"},
		{"Docks", "", "NaN", "Please enter a valid number"},
		{"Docks", "", "0", "At least 1 member is required"},
		{"Docks", "", "-3", "At least 1 member is required"},
		{"Docks", "", "101", "Maximum 100 members allowed"},
		{"Docks", "", "1e30", "Maximum 100 members allowed"},
	} {
		err := ask(payment.TeamRequest{Name: test.name, Description: test.description, Members: test.members})
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Detail != test.detail {
			t.Errorf("%q %q: %v, want %q", test.name, test.members, err, test.detail)
		}
	}
	if err := ask(payment.TeamRequest{Name: strings.Repeat("é", 80), Description: "a\x00b" + strings.Repeat("é", 998), Members: "100"}); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	d.bank.down = true
	if err := ask(payment.TeamRequest{Name: "Docks", Members: "1"}); !errors.Is(err, payment.ErrUnavailable) {
		t.Errorf("a processor that is down: %v", err)
	}
	none := payment.New(payment.Deps{Pool: d.pool, Clock: d.clock.Clock})
	if _, err := none.CheckoutTeam(t.Context(), teamtest.Person(), payment.TeamRequest{Name: "Docks", Members: "1"}, idem.Request{}); !errors.Is(err, payment.ErrNotSetUp) {
		t.Errorf("without a processor: %v", err)
	}
}

func TestARepeatedTeamRequestIsOneTeam(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := teamtest.Person()
	once := idem.Request{Scope: "someone", Key: "key", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	ask := func() (string, error) {
		return d.pay.CheckoutTeam(t.Context(), p, payment.TeamRequest{Name: "Docks", Members: "2"}, once)
	}
	d.bank.down = true
	if _, err := ask(); err == nil {
		t.Fatal("a checkout came from a bank that is down")
	}
	d.bank.down = false
	var mu sync.Mutex
	var urls []string
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			address, err := ask()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			urls = append(urls, address)
		})
	}
	wait.Wait()
	slices.Sort(urls)
	if len(slices.Compact(urls)) != 1 || len(d.bank.sessions) != 1 || d.count(`select count(*) from team where state = 'inactive'`) != 1 {
		t.Errorf("checkouts %v, %d at the bank", urls, len(d.bank.sessions))
	}
}
