package wallet_test

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A player is a team of the state machine, with its model.
type player struct {
	scope     team.Scope
	model     *model
	resources []uuid.UUID
	keys      []wallet.Credit
}

type machine struct {
	*house
	rt      *rapid.T
	players []*player
}

func (m *machine) pick() *player { return rapid.SampledFrom(m.players).Draw(m.rt, "team") }

func (m *machine) pickResource(p *player) (uuid.UUID, bool) {
	if len(p.resources) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(p.resources).Draw(m.rt, "resource"), true
}

func (m *machine) now() int64 { return m.clock.Now().UnixMicro() }

// sync lets the models' time catch up with the clock.
func (m *machine) sync() {
	for _, p := range m.players {
		p.model.advance(m.now())
	}
}

func (m *machine) advance() {
	step := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, hour), rapid.Int64Range(1, 60*hour)).Draw(m.rt, "step")
	if rapid.Bool().Draw(m.rt, "to midnight") {
		step = 24*hour - m.now()%(24*hour)
	}
	m.clock.Advance(time.Duration(step) * time.Microsecond)
}

func (m *machine) creditSome() {
	p := m.pick()
	c := wallet.Credit{
		TeamID: p.scope.TeamID(), Source: wallet.Test, Key: id.New().String(), ReferenceID: "pi_test", At: m.clock.Now(),
		Amount: money.USD(rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 100_000_000)).Draw(m.rt, "amount")),
	}
	p.keys = append(p.keys, c)
	p.model.credit(int64(c.Amount))
	want := m.byBook(c)
	m.post(c, true)
	if got := m.row(m.t.Context(), m.pool, c.TeamID); got != want {
		m.rt.Errorf("the wallet is\n%s, by the book\n%s", got, want)
	}
}

func (m *machine) creditAgain() {
	if p := m.pick(); len(p.keys) > 0 {
		c := rapid.SampledFrom(p.keys).Draw(m.rt, "credit")
		c.At = m.clock.Now()
		m.post(c, false)
	}
}

func (m *machine) post(c wallet.Credit, want bool) {
	m.do(func(ctx context.Context, tx pgx.Tx) error {
		posted, err := m.w.CreditTx(ctx, tx, c)
		if posted != want {
			m.rt.Errorf("posted %v, want %v", posted, want)
		}
		return err
	})
}

func (m *machine) startSome() {
	p, pod := m.pick(), rapid.Bool().Draw(m.rt, "pod")
	kind := wallet.VolumeStorage
	if pod {
		kind = wallet.PodRuntime
	}
	// Equal rates tick together: the last tick can cost more than is left.
	rate := rapid.OneOf(rapid.SampledFrom([]int64{0, 5, 2_500_000, 2_500_000_000}), rapid.Int64Range(0, 10_000_000),
		rapid.Int64Range(0, int64(money.MaxRate))).Draw(m.rt, "rate")
	resource := m.house.start(p.scope.TeamID(), kind, money.Rate(rate))
	p.resources = append(p.resources, resource)
	p.model.start(resource, pod, rate)
}

func (m *machine) rerateSome() {
	p := m.pick()
	resource, ok := m.pickResource(p)
	open := p.model.open(resource)
	if !ok || open == nil {
		return
	}
	rate := rapid.Int64Range(0, 20_000_000).Draw(m.rt, "rate")
	m.rerate(resource, money.Rate(rate))
	if rate != open.rate {
		open.stop = p.model.now
		p.model.start(resource, open.pod, rate)
	}
}

func (m *machine) stopSome() {
	p := m.pick()
	resource, ok := m.pickResource(p)
	if !ok {
		return
	}
	at := m.now()
	if !p.model.exhausted && p.model.switchOff == 0 && rapid.Bool().Draw(m.rt, "back") {
		at -= rapid.Int64Range(0, 30*hour).Draw(m.rt, "by")
	}
	m.stop(resource, clock.FromMicros(at))
	p.model.stop(resource, at)
}

func (m *machine) settleOne() {
	p := m.pick()
	now := m.clock.Now()
	if rapid.Bool().Draw(m.rt, "backwards") {
		now = now.Add(-time.Hour) // another node's clock: a no-op, or less
	}
	m.do(func(ctx context.Context, tx pgx.Tx) error { return m.w.SettleTx(ctx, tx, p.scope.TeamID(), now) })
}

func (m *machine) warnSome() {
	p := m.pick()
	m.do(func(ctx context.Context, tx pgx.Tx) error {
		_, _, err := m.w.WarnTx(ctx, tx, p.scope.TeamID(), m.clock.Now())
		return err
	})
}

func (m *machine) exhaustAll() {
	due, err := m.w.ListDue(m.t.Context(), m.clock.Now(), 1000)
	if err != nil {
		m.rt.Fatal(err)
	}
	listed := map[uuid.UUID]bool{}
	for _, teamID := range due {
		listed[teamID] = true
	}
	for _, p := range m.players {
		at, exhausted := m.exhaust(p.scope.TeamID())
		want := p.model.switchOff
		if exhausted != (want != 0) || exhausted && at.UnixMicro() != want || exhausted && !listed[p.scope.TeamID()] {
			m.rt.Errorf("exhausted %v at %d (listed %v), want at %d", exhausted, at.UnixMicro(), listed[p.scope.TeamID()], want)
		}
		p.model.switchOff = 0
	}
}

// check compares all that a team can see with the model.
func (m *machine) check() {
	m.sync()
	for _, p := range m.players {
		b := m.balance(p.scope)
		if want := p.model.shown(m.now()); want.Cmp(big.NewInt(int64(b.Balance))) != 0 {
			m.rt.Errorf("balance %d, want %s", b.Balance, want)
		}
		burn, _ := p.model.burn()
		if int64(b.SpendingPerHour) != burn {
			m.rt.Errorf("spending %d, want %d", b.SpendingPerHour, burn)
		}
		if b.DepletesAt != nil && !p.model.exhausted {
			if at, ok := p.model.ends(b.DepletesAt.UnixMicro()); !ok || at != b.DepletesAt.UnixMicro() {
				m.rt.Errorf("depletes at %d, want %d", b.DepletesAt.UnixMicro(), at)
			}
		}
		var sum money.USD
		for _, r := range m.history(p.scope, 1000) {
			sum += r.Amount
		}
		if sum != b.Balance {
			m.rt.Errorf("rows sum up to %d, the balance is %d", sum, b.Balance)
		}
	}
}

// checkMonths wants the months to lead from one to the next, up to the balance,
// and each to read the same in full.
func (m *machine) checkMonths() {
	now := m.clock.Now()
	for _, p := range m.players {
		months, err := m.w.Months(m.t.Context(), p.scope, now)
		if err != nil {
			m.rt.Fatal(err)
		}
		next := m.balance(p.scope).Balance
		for _, month := range months {
			whole, err := m.w.Period(m.t.Context(), p.scope, month.Start, month.End, now)
			if err != nil {
				m.rt.Fatal(err)
			}
			if month.Closing != next || whole.Opening != month.Opening || whole.Totals != month.Totals || whole.Closing != month.Closing {
				m.rt.Errorf("the month of %s: %+v, in full %+v, before %d", month.Start, month, whole, next)
			}
			var usage money.USD
			for _, u := range whole.Usage {
				usage += u.Net()
			}
			if usage != whole.Charges-whole.Refunds {
				m.rt.Errorf("usage of %s is %d, charges less refunds %d", month.Start, usage, whole.Charges-whole.Refunds)
			}
			next = month.Opening
		}
		if next != 0 {
			m.rt.Errorf("the first month opened with %d", next)
		}
	}
}

func (m *machine) checkEnds() {
	for _, p := range m.players {
		until, err := m.w.MeteredUntil(m.t.Context(), m.pool, p.resources)
		if err != nil {
			m.rt.Fatal(err)
		}
		for _, resource := range p.resources {
			at, want := until[resource], p.model.until(resource)
			if (want == 0) != at.IsZero() || want != 0 && at.UnixMicro() != want {
				m.rt.Errorf("metered until %v, want %d", at, want)
			}
		}
	}
}

// TestLedgerKeepsToTheModel runs random histories of several teams over the
// database, beside the model.
func TestLedgerKeepsToTheModel(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{house: h, rt: rt}
		for range 2 {
			scope := h.scope()
			m.players = append(m.players, &player{scope: scope, model: newModel(m.now())})
		}
		actions := []func(){
			m.advance, m.advance, m.creditSome, m.creditAgain, m.startSome, m.startSome, m.rerateSome, m.stopSome,
			m.settleOne, m.settle, m.warnSome, m.exhaustAll,
		}
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "action")()
			m.check()
		}
		m.exhaustAll()
		m.checkEnds()
		m.checkMonths()
		m.settle()
		m.check()
		m.checkMonths()
	})
	if problems, err := h.w.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the books: %v (%v)", problems, err)
	}
}
