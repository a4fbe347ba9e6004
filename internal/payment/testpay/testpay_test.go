package testpay_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

const origin = "https://homeport.test"

// A till is the test checkout wired to a webhook over HTTP.
type till struct {
	t       *testing.T
	pool    *pgxpool.Pool
	jobs    *job.Recorder
	clock   *clock.Manual
	cashier *testpay.Processor
	pay     *payment.Service
	w       *wallet.Service
	teams   *team.Service
	scope   team.Scope
	refuse  atomic.Bool // the webhook answers 500
	posts   atomic.Int32
}

func newTill(t *testing.T) *till {
	t.Helper()
	l := &till{t: t, pool: pgtest.New(t), jobs: &job.Recorder{}, clock: clock.Fixed(time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC))}
	logger := slog.New(slog.DiscardHandler)
	server := httptest.NewServer(http.HandlerFunc(l.webhook))
	t.Cleanup(server.Close)
	l.cashier = l.open(server.URL)
	l.w = wallet.New(wallet.Deps{Pool: l.pool, Clock: l.clock.Clock, Logger: logger})
	l.teams = team.New(team.Deps{Pool: l.pool, Clock: l.clock.Clock, Hooks: team.Hooks{OpenWallet: l.w.OpenTx}})
	l.pay = payment.New(payment.Deps{
		Pool: l.pool, Clock: l.clock.Clock, Logger: logger, Wallet: l.w, Teams: l.teams, Jobs: l.jobs, Processor: l.cashier, PublicURL: origin,
	})
	l.scope = teamtest.Admin(t, l.pool, team.Hobby)
	err := pg.InTx(t.Context(), l.pool, func(tx pgx.Tx) error {
		return l.w.OpenTx(t.Context(), tx, l.scope.TeamID(), l.clock.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// open starts the processor, as each start of the server does.
func (l *till) open(webhookURL string) *testpay.Processor {
	l.t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := testpay.New(l.t.Context(), testpay.Deps{
		Pool: l.pool, Clock: l.clock.Clock, Jobs: l.jobs, Box: box, Logger: slog.New(slog.DiscardHandler),
		PublicURL: origin, WebhookURL: webhookURL,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *till) webhook(w http.ResponseWriter, r *http.Request) {
	l.posts.Add(1)
	if l.refuse.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Error(err)
	}
	if err := l.pay.Receive(r.Context(), body, r.Header.Get("Stripe-Signature")); err != nil {
		l.t.Error(err)
		w.WriteHeader(http.StatusBadRequest)
	}
}

// order opens a checkout and returns its id.
func (l *till) order(amount string) string {
	l.t.Helper()
	url, err := l.pay.CheckoutCredit(l.t.Context(), l.scope, payment.CreditRequest{Amount: amount}, idem.Request{})
	if err != nil {
		l.t.Fatal(err)
	}
	if !strings.HasPrefix(url, origin+"/test-checkout/cs_test_") {
		l.t.Errorf("the payer goes to %s", url)
	}
	return path.Base(url)
}

func (l *till) act(session string, outcome testpay.Outcome) string {
	l.t.Helper()
	next, err := l.cashier.Act(l.t.Context(), session, outcome)
	if err != nil {
		l.t.Fatal(err)
	}
	return next
}

// deliver runs the jobs that were queued.
func (l *till) deliver() {
	l.t.Helper()
	for _, j := range l.jobs.Take() {
		if j, ok := j.(testpay.DeliverJob); ok {
			if err := l.cashier.Deliver(l.t.Context(), j); err != nil {
				l.t.Log(err)
			}
		}
	}
}

func (l *till) want(amount money.USD) {
	l.t.Helper()
	b, err := l.w.Balance(l.t.Context(), l.scope, l.clock.Now())
	if err != nil || b.Balance != amount {
		l.t.Errorf("balance %s (%v), want %s", b.Balance, err, amount)
	}
}

func TestAPaidTestCheckoutCreditsTheWallet(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session := l.order("0.01")
	if next := l.act(session, testpay.Pay); next != origin+"/billing?checkout=success" {
		t.Errorf("a payer goes on to %s", next)
	}
	l.want(0) // the way back credits nothing
	l.deliver()
	l.want(money.Cent)
	l.act(session, testpay.Pay) // the form is posted again
	l.act(session, testpay.Decline)
	l.deliver()
	if err := l.cashier.DeliverDue(t.Context()); err != nil {
		t.Error(err)
	}
	l.want(money.Cent)
	if n := l.posts.Load(); n != 1 {
		t.Errorf("%d events were posted, want 1", n)
	}
}

func TestDeclineAndCancelCreditNothing(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session := l.order("5")
	if next := l.act(session, testpay.Decline); next != origin+"/test-checkout/"+session+"?declined=1" {
		t.Errorf("after a declined card the payer goes to %s", next)
	}
	if next := l.act(session, testpay.Cancel); next != origin+"/billing?checkout=cancel" {
		t.Errorf("after a cancelled payment the payer goes to %s", next)
	}
	l.deliver()
	if l.posts.Load() != 0 {
		t.Error("an event was sent for a payment that did not happen")
	}
	l.want(0)
	l.act(session, testpay.Pay) // another card works
	l.deliver()
	l.want(5 * money.Dollar)
}

func TestFormsPostedAtOnceSendOneEvent(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session := l.order("5")
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
	l.deliver()
	l.want(5 * money.Dollar)
	if n := l.posts.Load(); n != 1 {
		t.Errorf("%d events were posted, want 1", n)
	}
}

func TestEventsAreSentUntilTheWebhookTakesThem(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.refuse.Store(true)
	l.act(l.order("5"), testpay.Pay)
	l.deliver()
	for range 3 {
		l.clock.Advance(time.Minute)
		if err := l.cashier.DeliverDue(t.Context()); err == nil {
			t.Error("a refused event went unnoticed")
		}
	}
	l.want(0)
	l.refuse.Store(false)
	l.clock.Advance(24 * time.Hour) // the signature is made for each try
	if err := l.cashier.DeliverDue(t.Context()); err != nil {
		t.Error(err)
	}
	l.want(5 * money.Dollar)
}

func TestALostTestEventIsHealed(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.act(l.order("5"), testpay.Pay)
	l.clock.Advance(5 * time.Minute)
	if err := l.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.want(5 * money.Dollar)
	l.deliver()
	l.want(5 * money.Dollar)
}

func TestAnExpiredCheckoutCannotBePaid(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	session := l.order("5")
	l.clock.Advance(25 * time.Hour)
	if _, err := l.cashier.Act(t.Context(), session, testpay.Pay); !errors.Is(err, testpay.ErrExpired) {
		t.Errorf("paid after its end: %v", err)
	}
	if err := l.pay.ReadOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	var status string
	if err := l.pool.QueryRow(t.Context(), `select status from topup`).Scan(&status); err != nil || status != "expired" {
		t.Errorf("the order is %s (%v), want expired", status, err)
	}
}

func TestUnknownCheckoutsAndOutcomes(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	if _, err := l.cashier.Act(t.Context(), "cs_test_none", testpay.Pay); !errors.Is(err, testpay.ErrNotFound) {
		t.Errorf("unknown checkout: %v", err)
	}
	if _, err := l.cashier.Find(t.Context(), "cs_test_none"); !errors.Is(err, testpay.ErrNotFound) {
		t.Errorf("unknown checkout: %v", err)
	}
	if _, err := l.cashier.Act(t.Context(), l.order("5"), "steal"); !errors.Is(err, testpay.ErrOutcome) {
		t.Errorf("unknown outcome: %v", err)
	}
}

func TestTheSecretOutlivesARestart(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	l.act(l.order("5"), testpay.Pay)
	server := httptest.NewServer(http.HandlerFunc(l.webhook))
	t.Cleanup(server.Close)
	second := l.open(server.URL) // another start; its events open with the first one's secret
	if err := second.DeliverDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.want(5 * money.Dollar)
}

func TestThePageOffersTheOutcomes(t *testing.T) {
	t.Parallel()
	l := newTill(t)
	id := l.order("1234.50")
	page := func(declined bool) string {
		s, err := l.cashier.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := l.cashier.Page(w, s, declined); err != nil {
			t.Fatal(err)
		}
		return w.Body.String()
	}
	open := page(false)
	for _, want := range []string{
		"Test checkout: no real money", "$1,234.50", `<form method="post" action="/test-checkout/` + id + `">`,
		`name="outcome" value="pay"`, `name="outcome" value="decline"`, `name="outcome" value="cancel"`,
	} {
		if !strings.Contains(open, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(open, "<script") || strings.Contains(open, "declined.") {
		t.Error("the page has a script, or speaks of a declined card")
	}
	if !strings.Contains(page(true), "Your card was declined.") {
		t.Error("a declined card is not told of")
	}
	l.act(id, testpay.Pay)
	if paid := page(true); strings.Contains(paid, "<form") || !strings.Contains(paid, "This checkout is paid.") {
		t.Error("a paid checkout can be paid again")
	}
}
