package payment_test

import (
	"encoding/json"
	"log/slog"
	"path"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

const secret = "whsec_of_this_test"

type desk struct {
	t     *testing.T
	pool  *pgxpool.Pool
	bank  *bank
	pay   *payment.Service
	w     *wallet.Service
	clock *clock.Manual
	jobs  *job.Recorder
	teams *team.Service
	scope team.Scope
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{
		t: t, pool: pgtest.New(t), clock: clock.Fixed(noon),
		bank: &bank{
			sessions: map[string]payment.Session{}, opened: map[string]string{}, subs: map[string]payment.Subscription{},
			purse: purse{cards: map[string]payment.Card{}, detached: map[string]bool{}, paid: map[uuid.UUID]payment.Payment{}},
		},
		jobs: &job.Recorder{},
	}
	logger := slog.New(slog.DiscardHandler)
	d.w = wallet.New(wallet.Deps{Pool: d.pool, Clock: d.clock.Clock, Logger: logger})
	d.teams = team.New(team.Deps{Pool: d.pool, Clock: d.clock.Clock, Jobs: &job.Recorder{}, Hooks: team.Hooks{OpenWallet: d.w.OpenTx}})
	d.pay = payment.New(payment.Deps{
		Pool: d.pool, Clock: d.clock.Clock, Logger: logger, Wallet: d.w, Teams: d.teams, Jobs: d.jobs, Processor: d.bank, PublicURL: "https://homeport.test",
	})
	d.scope = teamtest.Admin(t, d.pool, team.Pro)
	err := pg.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
		return d.w.OpenTx(t.Context(), tx, d.scope.TeamID(), d.clock.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// order opens a checkout and returns its session.
func (d *desk) order(amount string) payment.Session {
	d.t.Helper()
	url, err := d.pay.CheckoutCredit(d.t.Context(), d.scope, payment.CreditRequest{Amount: amount}, idem.Request{})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.bank.sessions[path.Base(url)]
}

// A notice is an event before it is signed.
type notice struct {
	id, kind, version string
	live              bool
	object            map[string]any
}

// paid is the event of a paid checkout, as Stripe writes it.
func paid(s payment.Session, paymentID string) notice {
	return notice{
		id: "evt_" + id.New().String(), kind: "checkout.session.completed", version: stripe.APIVersion, live: true,
		object: map[string]any{
			"id": s.ID, "object": "checkout.session", "amount_subtotal": int64(s.Amount / money.Cent), "currency": "usd",
			"amount_total": int64(s.Amount/money.Cent) + 19, "mode": "payment", "payment_status": "paid", "status": "complete",
			"payment_intent": paymentID, "metadata": map[string]string{payment.OrderKey: s.OrderID.String()},
		},
	}
}

func (n notice) body(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"id": n.id, "object": "event", "api_version": n.version, "created": noon.Unix(), "livemode": n.live,
		"type": n.kind, "data": map[string]any{"object": n.object},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func sign(body []byte, key string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: key, Timestamp: at}).Header
}

// receive delivers an event signed now.
func (d *desk) receive(n notice) error {
	body := n.body(d.t)
	return d.pay.Receive(d.t.Context(), body, sign(body, secret, d.clock.Wall()))
}

func (d *desk) mustReceive(n notice) {
	d.t.Helper()
	if err := d.receive(n); err != nil {
		d.t.Fatal(err)
	}
}

// want checks the balance and how many credits made it.
func (d *desk) want(amount money.USD, credits int) {
	d.t.Helper()
	b, err := d.w.Balance(d.t.Context(), d.scope, d.clock.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	rows, _, err := d.w.Transactions(d.t.Context(), d.scope, d.clock.Now(), 100, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if b.Balance != amount || len(rows) != credits {
		d.t.Errorf("balance %s by %d credits, want %s by %d", b.Balance, len(rows), amount, credits)
	}
}
