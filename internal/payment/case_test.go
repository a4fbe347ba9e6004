package payment_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// about is an event about a refund (re_…) or a dispute (dp_…), as Stripe writes
// it; the amount is in cents.
func about(kind, caseID, paymentID, status string, amount int64) notice {
	object := "refund"
	if strings.HasPrefix(caseID, "dp_") {
		object = "dispute"
	}
	return notice{
		id: "evt_" + id.New().String(), kind: kind, version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": caseID, "object": object, "amount": amount, "currency": "usd", "payment_intent": paymentID,
			"charge": "ch_1", "status": status, "created": noon.Unix(),
		},
	}
}

// topUp pays 25.00, with 0.19 of tax.
func (d *desk) topUp(paymentID string) {
	d.t.Helper()
	d.mustReceive(paid(d.order("25"), paymentID))
}

// balance is what the team sees, and whether it may start a pod.
func (d *desk) balance() (amount money.USD, held bool) {
	d.t.Helper()
	b, err := d.w.Balance(d.t.Context(), d.scope, d.clock.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	err = pg.InTx(d.t.Context(), d.pool, func(tx pgx.Tx) error {
		return d.w.RequireTx(d.t.Context(), tx, d.scope.TeamID(), 0, d.clock.Now())
	})
	return b.Balance, errors.Is(err, wallet.ErrHeld)
}

func (d *desk) sound() {
	d.t.Helper()
	if problems, err := d.w.Verify(d.t.Context()); err != nil || len(problems) > 0 {
		d.t.Errorf("the books are not sound: %v, %v", problems, err)
	}
}

const whole = 2519 // cents of a top-up over 25.00 with its tax

func TestRefundsAndDisputesMoveWhatTheySay(t *testing.T) {
	t.Parallel()
	refund := func(id, status string, cents int64) notice { return about("refund.created", id, "pi_1", status, cents) }
	open := about("charge.dispute.created", "dp_1", "pi_1", "needs_response", whole)
	closed := func(status string) notice { return about("charge.dispute.closed", "dp_1", "pi_1", status, whole) }
	for name, one := range map[string]struct {
		events []notice
		want   money.USD
		held   bool
	}{
		"a refund of all, the tax aside":    {[]notice{refund("re_1", "succeeded", whole)}, 0, false},
		"a refund on its way":               {[]notice{refund("re_1", "pending", whole)}, 0, false},
		"a refund of a part, floored":       {[]notice{refund("re_1", "succeeded", 1000)}, 2500*money.Cent - 992*money.Cent, false},
		"two refunds":                       {[]notice{refund("re_1", "succeeded", 1000), refund("re_2", "succeeded", 1000)}, 2500*money.Cent - 2*992*money.Cent, false},
		"a refund that failed":              {[]notice{refund("re_1", "pending", whole), about("refund.failed", "re_1", "pi_1", "failed", whole)}, 25 * money.Dollar, false},
		"a failure heard of first":          {[]notice{about("refund.failed", "re_1", "pi_1", "failed", whole), refund("re_1", "pending", whole)}, 25 * money.Dollar, false},
		"a dispute":                         {[]notice{open}, 0, true},
		"a dispute under review":            {[]notice{open, about("charge.dispute.updated", "dp_1", "pi_1", "under_review", whole)}, 0, true},
		"a dispute won":                     {[]notice{open, closed("won")}, 25 * money.Dollar, false},
		"a dispute won, in reverse":         {[]notice{closed("won"), open}, 25 * money.Dollar, false},
		"a dispute lost":                    {[]notice{open, closed("lost")}, 0, false},
		"a dispute lost, in reverse":        {[]notice{closed("lost"), open}, 0, false},
		"a dispute prevented":               {[]notice{open, closed("prevented")}, 25 * money.Dollar, false},
		"a bank's question":                 {[]notice{about("charge.dispute.created", "dp_1", "pi_1", "warning_needs_response", whole), closed("warning_closed")}, 25 * money.Dollar, false},
		"a question that becomes a dispute": {[]notice{about("charge.dispute.created", "dp_1", "pi_1", "warning_needs_response", whole), about("charge.dispute.funds_withdrawn", "dp_1", "pi_1", "needs_response", whole)}, 0, true},
		"a dispute after a refund":          {[]notice{refund("re_1", "succeeded", whole), open}, -25 * money.Dollar, true},
		"and that one won":                  {[]notice{refund("re_1", "succeeded", whole), open, closed("won")}, 0, false},
		"of a payment that is not ours":     {[]notice{about("refund.created", "re_1", "pi_other", "succeeded", whole)}, 25 * money.Dollar, false},
		"without a payment":                 {[]notice{about("refund.created", "re_1", "", "succeeded", whole)}, 25 * money.Dollar, false},
		"of nothing":                        {[]notice{refund("re_1", "succeeded", 0)}, 25 * money.Dollar, false},
		"a case that changes its amount":    {[]notice{refund("re_1", "pending", 1000), about("refund.updated", "re_1", "pi_1", "failed", whole)}, 2500*money.Cent - 992*money.Cent, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.topUp("pi_1")
			for _, e := range one.events {
				d.mustReceive(e)
				d.mustReceive(e) // sent again
				e.id = "evt_" + id.New().String()
				d.mustReceive(e) // told of twice
			}
			if amount, held := d.balance(); amount != one.want || held != one.held {
				t.Errorf("the balance is %s (held: %t), want %s (%t)", amount, held, one.want, one.held)
			}
			d.sound()
		})
	}
}

func TestACaseOfAnotherCurrencyOrModeChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	euros := about("refund.created", "re_1", "pi_1", "succeeded", whole)
	euros.object["currency"] = "eur"
	d.mustReceive(euros)
	test := about("refund.created", "re_2", "pi_1", "succeeded", whole)
	test.live = false
	if err := d.receive(test); !errors.Is(err, payment.ErrMode) {
		t.Errorf("a test event on a live installation: %v", err)
	}
	forged := about("refund.created", "re_3", "pi_1", "succeeded", whole).body(t)
	if err := d.pay.Receive(t.Context(), forged, sign(forged, "whsec_of_somebody", d.clock.Wall())); !errors.Is(err, payment.ErrSignature) {
		t.Errorf("a forged event: %v", err)
	}
	d.want(25*money.Dollar, 1)
}

// Whatever order the events of one payment come in, three days late or twice,
// the wallet ends the same.
func TestEventsOfAPaymentInEveryOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var want money.USD
	for n, order := range orders(4) {
		payment, n := "pi_"+strconv.Itoa(n), strconv.Itoa(n)
		all := []notice{
			paid(d.order("25"), payment),
			about("refund.created", "re_"+n, payment, "pending", 1000),
			about("charge.dispute.created", "dp_"+n, payment, "needs_response", whole),
			about("charge.dispute.closed", "dp_"+n, payment, "won", whole),
		}
		for _, i := range order {
			d.mustReceive(all[i])
		}
		d.clock.Advance(72 * time.Hour)
		for _, i := range order {
			d.mustReceive(all[i])
		}
		want += 2500*money.Cent - 992*money.Cent
		if amount, held := d.balance(); amount != want || held {
			t.Fatalf("after the order %v the balance is %s (held: %t), want %s", order, amount, held, want)
		}
	}
	d.sound()
}

// orders are all orders of n things.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// A credit and the refund of it at the same instant: neither is lost.
func TestACreditAgainstItsRefund(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 40 {
		payment := "pi_" + strconv.Itoa(n)
		events := []notice{paid(d.order("25"), payment)}
		for range 3 {
			events = append(events, about("refund.created", "re_"+strconv.Itoa(n), payment, "succeeded", whole))
		}
		var wg sync.WaitGroup
		for _, e := range events {
			wg.Go(func() {
				if err := d.receive(e); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if amount, _ := d.balance(); amount != 0 {
			t.Fatalf("after %d rounds the balance is %s", n+1, amount)
		}
	}
	d.sound()
}

func TestARefundThatDiesMidwayIsSentAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	if _, err := d.pool.Exec(t.Context(), `alter table wallet_hold rename to wallet_hold_hidden`); err != nil {
		t.Fatal(err)
	}
	open := about("charge.dispute.created", "dp_1", "pi_1", "needs_response", whole)
	if err := d.receive(open); err == nil {
		t.Error("a dispute without its hold was taken as handled")
	}
	if _, err := d.pool.Exec(t.Context(), `alter table wallet_hold_hidden rename to wallet_hold`); err != nil {
		t.Fatal(err)
	}
	d.want(25*money.Dollar, 1) // the debit went with the rest
	d.mustReceive(open)
	if amount, held := d.balance(); amount != 0 || !held {
		t.Errorf("the balance is %s (held: %t)", amount, held)
	}
}

// A refund of money that is used up is owed, and the next payment pays it.
func TestARefundAboveTheBalanceIsOwed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	d.spend(20 * money.Dollar)
	d.mustReceive(about("refund.created", "re_1", "pi_1", "succeeded", whole))
	if amount, _ := d.balance(); amount != -20*money.Dollar {
		t.Errorf("the balance is %s, want -$20.00", amount)
	}
	d.topUp("pi_2")
	if amount, _ := d.balance(); amount != 5*money.Dollar {
		t.Errorf("the balance is %s, want $5.00", amount)
	}
	d.sound()
}

// spend runs a pod for an hour.
func (d *desk) spend(amount money.USD) {
	d.t.Helper()
	pod := id.New()
	d.do(func(ctx context.Context, tx pgx.Tx) error {
		return d.w.StartTx(ctx, tx, wallet.Start{
			TeamID: d.scope.TeamID(), ResourceID: pod, Kind: wallet.PodRuntime, Rate: money.Rate(amount), At: d.clock.Now(),
		})
	})
	d.clock.Advance(time.Hour)
	d.do(func(ctx context.Context, tx pgx.Tx) error { return d.w.StopTx(ctx, tx, pod, d.clock.Now()) })
}

func (d *desk) do(fn func(ctx context.Context, tx pgx.Tx) error) {
	d.t.Helper()
	if err := pg.InTx(d.t.Context(), d.pool, func(tx pgx.Tx) error { return fn(d.t.Context(), tx) }); err != nil {
		d.t.Fatal(err)
	}
}

// A payment that went home with a deleted team is debited where it is now.
func TestARefundFollowsTheMoneyOfADeletedTeam(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	home := id.New()
	d.do(func(ctx context.Context, tx pgx.Tx) error { return d.w.OpenTx(ctx, tx, home, d.clock.Now()) })
	d.do(func(ctx context.Context, tx pgx.Tx) error {
		return d.w.CloseTx(ctx, tx, wallet.Closing{
			TeamID: d.scope.TeamID(), Name: "Docks", At: d.clock.Now(), Otherwise: home, Taken: d.pay.TakenTx,
			Homes: func(context.Context, pgx.Tx, []string) (map[string]uuid.UUID, error) { return nil, nil },
		})
	})
	d.mustReceive(about("refund.created", "re_1", "pi_1", "succeeded", 1000))
	var left, old money.USD
	const balance = `select balance_usd_micro - receivable_usd_micro from wallet where team_id = $1`
	if err := d.pool.QueryRow(t.Context(), balance, home).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if err := d.pool.QueryRow(t.Context(), balance, d.scope.TeamID()).Scan(&old); err != nil {
		t.Fatal(err)
	}
	if left != 2500*money.Cent-992*money.Cent || old != 0 {
		t.Errorf("the home has %s and the deleted team %s", left, old)
	}
	d.sound()
}

// What was refunded of a payment does not go home a second time.
func TestARefundedPaymentDoesNotGoHome(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_old")
	d.topUp("pi_new")
	d.mustReceive(about("refund.created", "re_1", "pi_new", "succeeded", whole))
	first, second := id.New(), id.New()
	for _, teamID := range []uuid.UUID{first, second} {
		d.do(func(ctx context.Context, tx pgx.Tx) error { return d.w.OpenTx(ctx, tx, teamID, d.clock.Now()) })
	}
	d.do(func(ctx context.Context, tx pgx.Tx) error {
		return d.w.CloseTx(ctx, tx, wallet.Closing{
			TeamID: d.scope.TeamID(), Name: "Docks", At: d.clock.Now(), Otherwise: second, Taken: d.pay.TakenTx,
			Homes: func(context.Context, pgx.Tx, []string) (map[string]uuid.UUID, error) {
				return map[string]uuid.UUID{"pi_old": first, "pi_new": second}, nil
			},
		})
	})
	if got := d.count(`select balance_usd_micro from wallet where team_id = $1`, first); money.USD(got) != 25*money.Dollar {
		t.Errorf("who paid what is left got %d", got)
	}
	if got := d.count(`select balance_usd_micro from wallet where team_id = $1`, second); got != 0 {
		t.Errorf("who was refunded got %d more", got)
	}
}

// A refund and a dispute whose events all got lost are found by reading.
func TestLostEventsOfCasesAreHealedByReading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	d.bank.down = true
	if err := d.pay.ReadCases(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	d.bank.down = false
	refund := payment.Case{ID: "re_1", Kind: payment.Refund, PaymentID: "pi_1", Amount: 1000 * money.Cent, Currency: "usd", State: payment.Taken}
	dispute := payment.Case{ID: "dp_1", Kind: payment.Dispute, PaymentID: "pi_1", Amount: whole * money.Cent, Currency: "usd", State: payment.Taken}
	d.bank.cases = []payment.Case{refund, dispute}
	for range 2 {
		if err := d.pay.ReadCases(t.Context()); err != nil {
			t.Fatal(err)
		}
		if amount, held := d.balance(); amount != -992*money.Cent || !held {
			t.Errorf("the balance is %s (held: %t)", amount, held)
		}
	}
	d.mustReceive(about("refund.created", "re_1", "pi_1", "succeeded", 1000)) // late after all
	d.bank.cases[1].State = payment.Returned
	if err := d.pay.ReadCases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if amount, held := d.balance(); amount != 2500*money.Cent-992*money.Cent || held {
		t.Errorf("the balance is %s (held: %t)", amount, held)
	}
	d.sound()
}
