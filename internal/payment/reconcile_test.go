package payment_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

const day = 24 * time.Hour

func (b *bank) ListMovements(_ context.Context, from, to time.Time) ([]payment.Movement, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errors.New("no answer from the bank")
	}
	var moved []payment.Movement
	for _, m := range b.book {
		if !m.At.Before(from) && m.At.Before(to) {
			moved = append(moved, m)
		}
	}
	return moved, nil
}

// move writes a line in the bank's book, now.
func (d *desk) move(kind payment.MovementKind, paymentID, caseID string, cents int64, order uuid.UUID) {
	d.bank.mu.Lock()
	defer d.bank.mu.Unlock()
	m := payment.Movement{
		ID: "txn_" + strconv.Itoa(len(d.bank.book)+1), Kind: kind, At: d.clock.Wall(), Amount: money.USD(cents) * money.Cent,
		Currency: "usd", PaymentID: paymentID, CaseID: caseID,
	}
	if kind == payment.PaymentMoved {
		m.Fee = 30 * money.Cent
	}
	if order != uuid.Nil {
		m.OrderID = &order
	}
	d.bank.book = append(d.bank.book, m)
}

// buy has somebody pay 25.00 and 0.19 of tax; told says whether we hear of it.
func (d *desk) buy(paymentID string, told bool) payment.Session {
	d.t.Helper()
	s := d.order("25")
	d.move(payment.PaymentMoved, paymentID, "", whole, s.OrderID)
	d.bank.settle(s.ID, paymentID)
	d.bank.mu.Lock()
	paidSession := d.bank.sessions[s.ID]
	paidSession.Mode, paidSession.Total = payment.TopUpMode, whole*money.Cent
	d.bank.sessions[s.ID] = paidSession
	d.bank.mu.Unlock()
	if told {
		d.mustReceive(paid(s, paymentID))
	}
	return s
}

// knownCase is a refund or dispute as the bank lists it.
func (d *desk) knownCase(c payment.Case) {
	d.bank.mu.Lock()
	defer d.bank.mu.Unlock()
	c.Currency = "usd"
	d.bank.cases = append(slices.DeleteFunc(d.bank.cases, func(o payment.Case) bool { return o.ID == c.ID }), c)
}

// reconcile compares the days that are over.
func (d *desk) reconcile() payment.Reconciliation {
	d.t.Helper()
	r, err := d.pay.Reconcile(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// wantProblems asserts what still differs: kind and subject of each.
func (d *desk) wantProblems(r payment.Reconciliation, off money.USD, want ...string) {
	d.t.Helper()
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Kind+" "+p.Subject)
	}
	slices.Sort(got)
	slices.Sort(want)
	if sum, _ := r.Difference(); !slices.Equal(got, want) || sum != off {
		d.t.Errorf("the books differ in %q by %s, want %q by %s", got, sum, want, off)
	}
}

func TestBooksThatAgree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.buy("pi_2", true)
	d.move(payment.RefundMoved, "pi_2", "re_1", -whole, uuid.Nil)
	d.mustReceive(about("refund.created", "re_1", "pi_2", "succeeded", whole))
	d.move(payment.FeeMoved, "", "", -100, uuid.Nil)
	d.move(payment.PayoutMoved, "", "", -2000, uuid.Nil)
	d.clock.Advance(day)
	r := d.reconcile()
	d.wantProblems(r, 0)
	want := payment.BookDay{
		Day: noon.Truncate(day), Movements: 5, Payments: 2 * whole * money.Cent, Refunds: -whole * money.Cent,
		Fees: 160 * money.Cent, Payouts: -2000 * money.Cent,
	}
	if len(r.Days) != 1 || r.Days[0] != want || r.Repaired != 0 {
		t.Errorf("read %+v and repaired %d, want %+v", r.Days, r.Repaired, want)
	}
	if r := d.reconcile(); len(r.Days) != 0 {
		t.Errorf("the same day was read again: %+v", r.Days)
	}
	d.sound()
}

func TestWhatWebhooksLostIsRepaired(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_lost", false)
	d.buy("pi_1", true)
	d.move(payment.RefundMoved, "pi_1", "re_1", -1000, uuid.Nil) // made in the processor's dashboard
	d.knownCase(payment.Case{ID: "re_1", Kind: payment.Refund, PaymentID: "pi_1", Amount: 1000 * money.Cent, State: payment.Taken})
	d.clock.Advance(day)
	r := d.reconcile()
	d.wantProblems(r, 0)
	if r.Repaired != 2 {
		t.Errorf("repaired %d, want the payment and the refund", r.Repaired)
	}
	d.want(5000*money.Cent-992*money.Cent, 3)
	if again, err := d.pay.ReconcileDay(t.Context(), noon); err != nil || again.Repaired != 0 {
		t.Errorf("a second look repaired %d (%v)", again.Repaired, err)
	}
	d.want(5000*money.Cent-992*money.Cent, 3)
	d.sound()
}

func TestADisputeIsOfTwoDays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.move(payment.DisputeMoved, "pi_1", "du_1", -whole, uuid.Nil)
	open := payment.Case{ID: "du_1", Kind: payment.Dispute, PaymentID: "pi_1", Amount: whole * money.Cent, State: payment.Taken}
	d.knownCase(open)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 0)
	if amount, held := d.balance(); amount != 0 || !held {
		t.Errorf("balance %s, held %t after a dispute nobody told of", amount, held)
	}
	d.move(payment.DisputeMoved, "pi_1", "du_1", whole, uuid.Nil)
	open.State = payment.Returned
	d.knownCase(open)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 0)
	if amount, held := d.balance(); amount != 25*money.Dollar || held {
		t.Errorf("balance %s, held %t after it was won", amount, held)
	}
	d.sound()
}

func TestWhatHappenedSinceIsNoDifference(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.move(payment.DisputeMoved, "pi_1", "dp_1", -whole, uuid.Nil)
	d.mustReceive(about("charge.dispute.created", "dp_1", "pi_1", "needs_response", whole))
	d.clock.Advance(13 * time.Hour) // the next day is an hour old
	d.move(payment.DisputeMoved, "pi_1", "dp_1", whole, uuid.Nil)
	d.mustReceive(about("charge.dispute.closed", "dp_1", "pi_1", "won", whole))
	d.buy("pi_2", true)
	d.wantProblems(d.reconcile(), 0)
}

func TestDifferencesAreReportedAndNeverAdjusted(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		make func(d *desk)
		off  money.USD
		want []string
	}{
		"a foreign charge": {func(d *desk) {
			d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
		}, 7 * money.Dollar, []string{"foreign pi_theirs"}},
		"an order that nobody made": {func(d *desk) {
			d.move(payment.PaymentMoved, "pi_theirs", "", 700, id.New())
		}, 7 * money.Dollar, []string{"foreign pi_theirs"}},
		"a foreign charge that went back": {func(d *desk) {
			d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
			d.move(payment.RefundMoved, "pi_theirs", "re_theirs", -700, uuid.Nil)
		}, 0, nil},
		"a charge taken twice": {func(d *desk) {
			s := d.buy("pi_1", true)
			d.move(payment.PaymentMoved, "pi_1", "", whole, s.OrderID)
		}, whole * money.Cent, []string{"amount_differs pi_1"}},
		"one order paid twice": {func(d *desk) {
			s := d.buy("pi_1", true)
			d.move(payment.PaymentMoved, "pi_2", "", whole, s.OrderID)
		}, whole * money.Cent, []string{"credit_missing pi_2"}},
		"another amount": {func(d *desk) {
			s := d.order("25")
			d.mustReceive(paid(s, "pi_1"))
			d.move(payment.PaymentMoved, "pi_1", "", 1519, s.OrderID)
		}, 10 * money.Dollar, []string{"amount_differs pi_1"}},
		"a credit that nobody paid": {func(d *desk) {
			d.buy("pi_0", true)
			d.mustReceive(paid(d.order("25"), "pi_forged"))
		}, 25 * money.Dollar, []string{"unpaid_credit pi_forged"}},
		"a credit that names no payment": {func(d *desk) {
			d.buy("pi_0", true)
			d.credit("by:hand", "ticket 7")
		}, 3 * money.Dollar, []string{"strange_posting by:hand"}},
		"a credit without an order": {func(d *desk) {
			d.buy("pi_0", true)
			d.credit("stripe:pi:pi_hand", "pi_hand")
			d.move(payment.PaymentMoved, "pi_hand", "", 300, uuid.Nil)
		}, 3 * money.Dollar, []string{"strange_posting pi_hand"}},
		"a refund that the bank does not tell of": {func(d *desk) {
			d.buy("pi_1", true)
			d.move(payment.RefundMoved, "pi_1", "re_1", -1000, uuid.Nil)
		}, 992 * money.Cent, []string{"case_differs re_1"}},
		"a refund that never left": {func(d *desk) {
			d.buy("pi_1", true)
			d.mustReceive(about("refund.created", "re_1", "pi_1", "succeeded", 1000))
		}, 992 * money.Cent, []string{"case_differs re_1"}},
		"a line of no kind": {func(d *desk) {
			d.buy("pi_0", true)
			d.move(payment.OtherMoved, "", "", -55, uuid.Nil)
		}, 55 * money.Cent, []string{"unknown_line txn_2"}},
		"another currency": {func(d *desk) {
			d.move(payment.PaymentMoved, "pi_eur", "", 900, uuid.Nil)
			d.bank.book[0].Currency = "eur"
		}, 0, []string{"other_currency txn_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.order("1") // the book begins with it
			one.make(d)
			before, _ := d.balance()
			d.clock.Advance(day)
			d.wantProblems(d.reconcile(), one.off, one.want...)
			if _, err := d.pay.ReconcileDay(t.Context(), noon); err != nil {
				t.Fatal(err)
			}
			d.wantProblems(d.reconcile(), one.off, one.want...)
			if after, _ := d.balance(); after != before {
				t.Errorf("the balance moved from %s to %s", before, after)
			}
			d.sound()
		})
	}
}

// credit posts 3.00 as nobody of this package does.
func (d *desk) credit(key, reference string) {
	d.t.Helper()
	err := pg.InTx(d.t.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := d.w.CreditTx(d.t.Context(), tx, wallet.Credit{
			TeamID: d.scope.TeamID(), Amount: 3 * money.Dollar, Source: wallet.Stripe, Key: key, ReferenceID: reference, At: d.clock.Now(),
		})
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestPlansAreNoCredit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.found("3")
	d.bank.subscribe(f.session, active("sub_1", 3))
	d.mustReceive(subscribed(f.session, "sub_1"))
	d.move(payment.PaymentMoved, "pi_plan", "", 30000, uuid.Nil)
	d.bank.book[0].SubscriptionID = "sub_1"
	d.move(payment.PaymentMoved, "pi_theirs", "", 500, uuid.Nil)
	d.bank.book[1].SubscriptionID = "sub_theirs"
	d.move(payment.RefundMoved, "pi_plan", "re_plan", -10000, uuid.Nil)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 5*money.Dollar, "foreign pi_theirs")
}

func TestAProblemEndsWhenTheBooksAgree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.order("1")
	d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 7*money.Dollar, "foreign pi_theirs")
	d.move(payment.RefundMoved, "pi_theirs", "re_theirs", -700, uuid.Nil)
	d.clock.Advance(day)
	d.wantProblems(d.reconcile(), 0)
	if n := d.count(`select count(*) from clearing_problem where ended_at is not null`); n != 1 {
		t.Errorf("%d problems are kept as ended, want 1", n)
	}
}

func TestMissedDaysAreCaughtUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 3 {
		d.buy("pi_"+strconv.Itoa(n), n != 1)
		d.clock.Advance(3 * day)
	}
	if _, err := d.pay.ReconcileDay(t.Context(), noon.Add(6*day)); err != nil { // by hand, and out of turn
		t.Fatal(err)
	}
	d.bank.down = true
	if _, err := d.pay.Reconcile(t.Context()); err == nil {
		t.Error("a bank that is away was read")
	}
	d.bank.down = false
	if err := d.pay.FollowBook(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked := d.jobs.Take(); !slices.Contains(asked, job.Args(payment.ReconcileJob{})) {
		t.Errorf("no comparison was asked for: %v", asked)
	}
	r := d.reconcile()
	if len(r.Days) != 8 {
		t.Errorf("%d days were read, want the 8 that were missing", len(r.Days))
	}
	d.wantProblems(r, 0)
	d.want(75*money.Dollar, 3)
	if err := d.pay.FollowBook(t.Context()); err != nil || len(d.jobs.Take()) != 0 {
		t.Errorf("another comparison was asked for (%v)", err)
	}
}

func TestAnInterruptedComparisonGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_lost", false)
	d.clock.Advance(day)
	d.reconcile()
	d.clock.Advance(day)
	d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
	d.clock.Advance(day)
	d.reconcile()
	// As if it had died after reading the day, before comparing it.
	if _, err := d.pool.Exec(t.Context(), `update clearing_day set compared_at = null; delete from clearing_problem`); err != nil {
		t.Fatal(err)
	}
	r := d.reconcile()
	d.wantProblems(r, 7*money.Dollar, "foreign pi_theirs")
	if len(r.Days) != 0 {
		t.Errorf("%d days were read again", len(r.Days))
	}
}

func TestADayIsReadAnHourAfterItsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buy("pi_1", true)
	d.clock.Advance(12*time.Hour + 59*time.Minute)
	if r := d.reconcile(); len(r.Days) != 0 {
		t.Errorf("read %+v before the day had rested", r.Days)
	}
	if r, err := d.pay.ReconcileDay(t.Context(), noon); err != nil || len(r.Days) != 1 || r.Days[0].Movements != 1 {
		t.Errorf("by hand: %+v (%v)", r, err)
	}
	d.clock.Advance(time.Minute)
	if r := d.reconcile(); len(r.Days) != 1 {
		t.Errorf("read %+v once it had", r.Days)
	}
}

func TestManyComparisonsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 8 {
		d.buy("pi_"+strconv.Itoa(n), n%2 == 0)
	}
	d.move(payment.PaymentMoved, "pi_theirs", "", 700, uuid.Nil)
	d.clock.Advance(day)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := d.pay.Reconcile(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	d.wantProblems(d.reconcile(), 7*money.Dollar, "foreign pi_theirs")
	d.want(200*money.Dollar, 8)
	d.sound()
}
