package payment_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team/teamtest"
)

// A forgetful bank lost customers: somebody deleted them there.
type forgetful struct {
	*bank
	gone map[string]bool
	lost []string // that were said to be when another one was made
}

func (f *forgetful) check(customer string) error {
	if f.gone[customer] {
		return payment.ErrNoCustomer
	}
	return nil
}

func (f *forgetful) CreateCustomer(ctx context.Context, c payment.Customer) (string, error) {
	f.lost = append(f.lost, c.Lost)
	return f.bank.CreateCustomer(ctx, c)
}

func (f *forgetful) PortalURL(ctx context.Context, customer, back string) (string, error) {
	if err := f.check(customer); err != nil {
		return "", err
	}
	return f.bank.PortalURL(ctx, customer, back)
}

func (f *forgetful) CreateTopUp(ctx context.Context, o payment.Order) (payment.Session, error) {
	if err := f.check(o.CustomerID); err != nil {
		return payment.Session{}, err
	}
	return f.bank.CreateTopUp(ctx, o)
}

func (f *forgetful) CreateCardSetup(ctx context.Context, o payment.CardOrder) (payment.Session, error) {
	if err := f.check(o.CustomerID); err != nil {
		return payment.Session{}, err
	}
	return f.bank.CreateCardSetup(ctx, o)
}

func (f *forgetful) CreateSubscription(ctx context.Context, o payment.TeamOrder) (payment.Session, error) {
	if err := f.check(o.CustomerID); err != nil {
		return payment.Session{}, err
	}
	return f.bank.CreateSubscription(ctx, o)
}

func (f *forgetful) Charge(ctx context.Context, c payment.Charge) (payment.Payment, error) {
	if err := f.check(c.CustomerID); err != nil {
		return payment.Payment{}, err
	}
	return f.bank.Charge(ctx, c)
}

// forget has the bank lose the team's customer.
func (p *purser) forget() *forgetful {
	p.t.Helper()
	f := &forgetful{bank: p.bank, gone: map[string]bool{p.customer(): true}}
	p.pay.Processor = f
	return f
}

func (p *purser) customer() (known string) {
	p.t.Helper()
	p.must(p.pool.QueryRow(p.t.Context(), `select coalesce((select customer_id from payment_customer where team_id = $1), '')`, p.scope.TeamID()).Scan(&known))
	return known
}

// A team whose customer is gone pays again, as another one. Its card went with
// the customer.
func TestATeamWhoseCustomerIsGoneGetsAnother(t *testing.T) {
	t.Parallel()
	for name, buy := range map[string]func(p *purser) error{
		"credit": func(p *purser) error {
			p.mustReceive(paid(p.desk.order("25"), "pi_1"))
			return nil
		},
		"a card": func(p *purser) error {
			_, err := p.pay.CheckoutCard(t.Context(), p.scope, idem.Request{})
			return err
		},
	} {
		p := newPurser(t)
		p.agree("500")
		before, f := p.customer(), p.forget()
		if _, err := p.pay.Portal(t.Context(), p.scope); !errors.Is(err, payment.ErrNoPortal) {
			t.Errorf("%s: the portal of a lost customer: %v", name, err)
		}
		if err := buy(p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if now := p.customer(); now == before || now == "" || len(f.lost) != 1 || f.lost[0] != before {
			t.Errorf("%s: the customer is %q after %q, said to be lost were %q", name, now, before, f.lost)
		}
		if _, err := p.pay.Portal(t.Context(), p.scope); err != nil {
			t.Errorf("%s: the portal of the new customer: %v", name, err)
		}
		if a := p.auto(); a.State != payment.AutoOff || a.OffReason != payment.OffCardRemoved || a.Card != nil {
			t.Errorf("%s: automatic top-ups are %+v", name, a)
		}
		p.told(payment.NewsCardRemoved)
	}
}

// A request that is repeated after its customer was lost leads to no checkout
// whose payment would be refused: to none at all. Whoever was sent to one pays.
func TestARepeatAfterALostCustomerLeadsToNoOtherCheckout(t *testing.T) {
	t.Parallel()
	credit := func(save bool) func(*purser, idem.Request) (string, error) {
		return func(p *purser, once idem.Request) (string, error) {
			return p.pay.CheckoutCredit(t.Context(), p.scope, payment.CreditRequest{Amount: "25", SaveCard: save}, once)
		}
	}
	for name, buy := range map[string]func(*purser, idem.Request) (string, error){
		"credit":            credit(false),
		"credit and a card": credit(true),
		"a card": func(p *purser, once idem.Request) (string, error) {
			return p.pay.CheckoutCard(t.Context(), p.scope, once)
		},
	} {
		p := newPurser(t)
		one := idem.Request{Scope: "someone", Key: "one", BodyHash: []byte("hash"), Wall: p.clock.Wall()}
		first, err := buy(p, one)
		p.must(err)
		p.forget()
		second, err := buy(p, idem.Request{})
		p.must(err)
		if again, err := buy(p, one); !errors.Is(err, payment.ErrOutdated) {
			t.Errorf("%s: repeated: %q, %v", name, again, err)
		}
		if len(p.bank.opened) != 4 { // with that of the card it had: the repeat made one
			t.Errorf("%s: %d checkouts were opened: this tests nothing", name, len(p.bank.opened))
		}
		if name == "a card" {
			continue
		}
		for _, address := range []string{first, second} {
			p.mustReceive(paid(p.bank.sessions[path.Base(address)], "pi_"+path.Base(address)))
		}
		p.want(50*money.Dollar, 2)
	}
}

// The same for the plan of a new team.
func TestARepeatAfterANewTeamsCustomerIsLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	who := teamtest.Person()
	one := idem.Request{Scope: "someone", Key: "one", BodyHash: []byte("hash"), Wall: d.clock.Wall()}
	buy := func() (string, error) {
		return d.pay.CheckoutTeam(t.Context(), who, payment.TeamRequest{Name: "Docks", Members: "2"}, one)
	}
	first, err := buy()
	if err != nil {
		t.Fatal(err)
	}
	var customer string
	if err := d.pool.QueryRow(t.Context(), `select customer_id from payment_customer`).Scan(&customer); err != nil {
		t.Fatal(err)
	}
	d.pay.Processor = &forgetful{bank: d.bank, gone: map[string]bool{customer: true}}
	if again, err := buy(); !errors.Is(err, payment.ErrOutdated) {
		t.Errorf("repeated: %q, %v", again, err)
	}
	d.bank.subs["sub_1"] = payment.Subscription{ID: "sub_1", CustomerID: customer, Status: "active", Seats: 2}
	d.mustReceive(subscribed(d.bank.sessions[path.Base(first)], "sub_1"))
	info, err := d.teams.UserInfo(t.Context(), who)
	if err != nil || len(info.Teams) != 2 {
		t.Errorf("who was sent to the first one has %d teams, %v", len(info.Teams), err)
	}
}

// A customer that is lost every time keeps nobody waiting in a circle.
func TestACustomerIsMadeAnewOnce(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	f := p.forget()
	f.gone["cus_2_"+p.scope.TeamID().String()] = true
	_, err := p.pay.CheckoutCard(t.Context(), p.scope, idem.Request{})
	if !errors.Is(err, payment.ErrUnavailable) || len(f.lost) != 1 {
		t.Errorf("%v after %d more customers", err, len(f.lost))
	}
	if _, err := p.pay.CheckoutCard(t.Context(), p.scope, idem.Request{}); err != nil {
		t.Errorf("tried again: %v", err)
	}
}

// An order of a customer who is gone ends: paid, if it was, else not at all.
func TestAnOrderOfALostCustomerEnds(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} { // before the customer was lost
		for _, wasPaid := range []bool{false, true} {
			if wasPaid && !asked {
				continue
			}
			p := newPurser(t)
			p.agree("500")
			p.must(p.pay.FollowAutoTopUps(t.Context()))
			p.bank.lost, p.bank.forgets = wasPaid, asked && !wasPaid
			if asked {
				p.work()
			}
			p.bank.lost, p.bank.forgets = false, false
			p.forget()
			p.work()
			for range 20 {
				p.clock.Advance(3 * time.Minute)
				p.sweep()
			}
			want := 0 * money.Dollar
			if wasPaid {
				want = 25 * money.Dollar
			}
			var open int
			p.must(p.pool.QueryRow(t.Context(), `select count(*) from topup where status = 'open'`).Scan(&open))
			got, _ := p.balance()
			if a := p.auto(); open != 0 || got != want || a.MonthCharged != want || (a.State == payment.AutoOff) == wasPaid {
				t.Errorf("asked %t, paid %t: %d open orders, balance %s, %s of the cap, %s", asked, wasPaid, open, got, a.MonthCharged, a.State)
			}
			p.sound()
		}
	}
}
