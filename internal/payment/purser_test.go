package payment_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// A purser is a desk whose team saved a card.
type purser struct {
	*desk
	news []payment.News
}

func newPurser(t *testing.T) *purser {
	t.Helper()
	p := &purser{desk: newDesk(t)}
	p.pay.OnAutoTopUp = func(_ context.Context, _ pgx.Tx, n payment.News) error {
		p.news = append(p.news, n)
		return nil
	}
	p.save("pm_1")
	return p
}

// save has the team save a card.
func (p *purser) save(cardID string) {
	p.t.Helper()
	address, err := p.pay.CheckoutCard(p.t.Context(), p.scope, idem.Request{})
	p.must(err)
	s := p.bank.sessions[path.Base(address)]
	p.bank.cards[s.ID] = payment.Card{ID: cardID, Brand: "visa", Last4: "4242", ExpMonth: 4, ExpYear: 2031}
	p.mustReceive(setUp(s))
	p.work()
}

// setUp is the event of a checkout that saved a card, as Stripe writes it.
func setUp(s payment.Session) notice {
	return notice{
		id: "evt_" + id.New().String(), kind: "checkout.session.completed", version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": s.ID, "object": "checkout.session", "mode": "setup", "payment_status": "no_payment_required", "status": "complete",
			"setup_intent": "seti_1", "metadata": map[string]string{payment.CardOrderKey: s.OrderID.String()},
		},
	}
}

func (p *purser) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// work does the jobs that were made, and says which failed.
func (p *purser) work() (failed []error) {
	p.t.Helper()
	for _, j := range p.jobs.Take() {
		var err error
		switch j := j.(type) {
		case payment.CardJob:
			err = p.pay.FollowCard(p.t.Context(), j)
		case payment.ChargeJob:
			err = p.pay.Charge(p.t.Context(), j)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// agree turns automatic top-ups of 25.00 below 10.00 on.
func (p *purser) agree(monthCap string) {
	p.t.Helper()
	_, err := p.pay.SetAutoTopUp(p.t.Context(), p.scope, payment.AutoChange{Enabled: true, Threshold: "10", Amount: "25", MonthCap: monthCap})
	p.must(err)
}

// look looks at what is due, and does the jobs.
func (p *purser) look() {
	p.t.Helper()
	p.must(p.pay.FollowAutoTopUps(p.t.Context()))
	p.work()
}

// sweep reads what is due at the bank.
func (p *purser) sweep() {
	p.t.Helper()
	p.must(errors.Join(p.pay.ReadOpen(p.t.Context()), p.pay.FollowAutoTopUps(p.t.Context())))
}

func (p *purser) auto() payment.AutoTopUp {
	p.t.Helper()
	a, err := p.pay.FindAutoTopUp(p.t.Context(), p.scope)
	p.must(err)
	return a
}

// is checks what automatic top-ups do, the balance, and how often the bank was
// asked for money.
func (p *purser) is(state payment.AutoState, balance money.USD, asked int) {
	p.t.Helper()
	got, _ := p.balance()
	if a := p.auto(); a.State != state || got != balance || len(p.bank.asked) != asked {
		p.t.Errorf("%s with a balance of %s after %d payments asked for, want %s with %s after %d", a.State, got, len(p.bank.asked), state, balance, asked)
	}
	p.sound()
}

// told checks what the admins were told so far.
func (p *purser) told(want ...payment.NewsKind) {
	p.t.Helper()
	var got []payment.NewsKind
	for _, n := range p.news {
		got = append(got, n.Kind)
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("the admins were told %v, want %v", got, want)
	}
}

// order is the newest automatic order.
func (p *purser) order() (orderID uuid.UUID) {
	p.t.Helper()
	p.must(p.pool.QueryRow(p.t.Context(), `select id from topup where automatic order by created_at desc limit 1`).Scan(&orderID))
	return orderID
}

// intent is an event about a saved card's payment, as Stripe writes it.
func intent(kind, status string, order uuid.UUID, cents int64) notice {
	n := notice{
		id: "evt_" + id.New().String(), kind: "payment_intent." + kind, version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": "pi_" + order.String(), "object": "payment_intent", "amount": cents, "amount_received": cents, "currency": "usd",
			"status": status, "metadata": map[string]string{payment.AutoOrderKey: order.String()},
		},
	}
	if status != "succeeded" {
		n.object["amount_received"] = 0
		n.object["last_payment_error"] = map[string]string{"code": "card_declined", "type": "card_error"}
	}
	return n
}

// burn has the team spend 10 USD an hour.
func (p *purser) burn() {
	p.t.Helper()
	p.must(pg.InTx(p.t.Context(), p.pool, func(tx pgx.Tx) error {
		return p.w.StartTx(p.t.Context(), tx, wallet.Start{
			TeamID: p.scope.TeamID(), ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: 10_000_000, At: p.clock.Now(), Description: "pod",
		})
	}))
}

// fall is what meter does of a wallet, until it has told that it is low.
func (p *purser) fall() error {
	ctx, teamID := context.Background(), p.scope.TeamID()
	for {
		due, ok, err := p.w.NextDue(ctx, teamID, p.clock.Now())
		if err != nil || !ok {
			return err
		}
		err = pg.InTx(ctx, p.pool, func(tx pgx.Tx) (err error) {
			switch due.What {
			case wallet.LowDue:
				if err := p.pay.DueTx(ctx, tx, teamID, due.At); err != nil {
					return err
				}
				_, err = p.w.LowTx(ctx, tx, teamID, due.At)
			case wallet.WarnDue:
				_, _, err = p.w.WarnTx(ctx, tx, teamID, due.At)
			case wallet.SpendDue:
				_, err = p.w.SpendTx(ctx, tx, teamID, due.At)
			case wallet.ExhaustDue:
				_, _, err = p.w.ExhaustTx(ctx, tx, teamID, due.At)
			default:
				err = errors.New("not expected here: " + due.What)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
}
