package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A call is one client's operation on a wallet, at a business instant.
type call struct {
	wallet   int // index of the wallet
	kind     string
	at       int64  // microseconds
	amount   int64  // of a credit, a debit, or what a start requires
	key      string // of a credit or a debit
	resource uuid.UUID
	pod      bool
	rate     int64
}

// An answer is what the client saw of it.
type answer struct {
	done           bool // credit, debit: posted; start: taken; exhaust: the money ended
	balance, spend int64
	at             int64 // exhaust: when
}

func (c call) String() string {
	return fmt.Sprintf("%s wallet %d at %d: %d %q %s pod=%v %d/h", c.kind, c.wallet, c.at, c.amount, c.key, c.resource, c.pod, c.rate)
}

// A ledger is the model's state of one wallet with the keys that it has seen.
type ledger struct {
	*model
	keys map[string]bool
}

func (l ledger) clone() ledger {
	m := *l.model
	m.in, m.given = new(big.Int).Set(l.in), new(big.Int).Set(l.given)
	m.segments = make([]*modelSegment, len(l.segments))
	for i, s := range l.segments {
		c := *s
		m.segments[i] = &c
	}
	keys := make(map[string]bool, len(l.keys)+1)
	for k := range l.keys {
		keys[k] = true
	}
	return ledger{model: &m, keys: keys}
}

// String is equal for equal states, whatever order led to them.
func (l ledger) String() string {
	var lines []string
	for _, s := range l.segments {
		lines = append(lines, fmt.Sprintf("%s %d %d-%d", s.resource, s.rate, s.start, s.stop))
	}
	for k := range l.keys {
		lines = append(lines, k)
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s %s %v %d %d %d\n%s", l.in, l.given, l.exhausted, l.since, l.now, l.switchOff, strings.Join(lines, "\n"))
}

// step is the ledger's sequential specification.
func (l ledger) step(c call) answer {
	l.advance(c.at)
	switch c.kind {
	case "credit", "debit":
		if l.keys[c.key] {
			return answer{}
		}
		l.keys[c.key] = true
		if c.kind == "credit" {
			l.credit(c.amount)
		} else {
			l.debit(c.amount)
		}
		return answer{done: true}
	case "start":
		if l.shown(l.now).Cmp(big.NewInt(c.amount)) < 0 {
			return answer{}
		}
		l.start(c.resource, c.pod, c.rate)
		return answer{done: true}
	case "stop":
		l.stop(c.resource, c.at)
	case "exhaust":
		at := l.switchOff
		l.switchOff = 0
		return answer{done: at != 0, at: at}
	case "balance":
		burn, _ := l.burn()
		return answer{balance: l.shown(c.at).Int64(), spend: burn}
	}
	return answer{}
}

// specification checks the histories of wallets that all began empty at an
// instant, each wallet for itself.
func specification(began int64) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			var parts [][]porcupine.Operation
			for _, op := range history {
				n := op.Input.(call).wallet
				for len(parts) <= n {
					parts = append(parts, nil)
				}
				parts[n] = append(parts[n], op)
			}
			return parts
		},
		Init: func() any { return ledger{model: newModel(began), keys: map[string]bool{}} },
		Step: func(state, input, output any) (bool, any) {
			next := state.(ledger).clone()
			return next.step(input.(call)) == output.(answer), next
		},
		Equal: func(a, b any) bool { return a.(ledger).String() == b.(ledger).String() },
	}
}

// A club is the clients of some wallets, with what they did and saw.
type club struct {
	*house
	scopes []team.Scope
	mu     sync.Mutex
	began  time.Time // wall
	ops    []porcupine.Operation
}

// ask has a client make a call and records when it was asked and answered.
func (c *club) ask(client int, in call) {
	asked := time.Since(c.began).Nanoseconds()
	out, err := c.call(in)
	op := porcupine.Operation{ClientId: client, Input: in, Call: asked, Output: out, Return: time.Since(c.began).Nanoseconds()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.t.Errorf("%s: %v", in, err)
	}
	c.ops = append(c.ops, op)
}

func (c *club) call(in call) (out answer, err error) {
	scope, at := c.scopes[in.wallet], time.UnixMicro(in.at).UTC()
	if in.kind == "balance" {
		b, err := c.w.Balance(c.t.Context(), scope, at)
		return answer{balance: int64(b.Balance), spend: int64(b.SpendingPerHour)}, err
	}
	err = c.try(func(ctx context.Context, tx pgx.Tx) (err error) {
		switch in.kind {
		case "credit":
			out.done, err = c.w.CreditTx(ctx, tx, wallet.Credit{
				TeamID: scope.TeamID(), Amount: money.USD(in.amount), Source: wallet.Test, Key: in.key, At: at,
			})
		case "debit":
			out.done, err = c.w.DebitTx(ctx, tx, wallet.Debit{
				TeamID: scope.TeamID(), Amount: money.USD(in.amount), To: wallet.Test, Key: in.key, At: at,
			})
		case "start":
			out.done, err = c.startTx(ctx, tx, in, at)
		case "stop":
			err = c.w.StopTx(ctx, tx, in.resource, at)
		case "settle":
			err = c.w.SettleTx(ctx, tx, scope.TeamID(), at)
		case "exhaust":
			var e wallet.Exhaustion
			if e, out.done, err = c.w.ExhaustTx(ctx, tx, scope.TeamID(), at); out.done {
				out.at = e.At.UnixMicro()
			}
		}
		return err
	})
	return out, err
}

// startTx begins what the wallet has the money for, as making a pod does.
func (c *club) startTx(ctx context.Context, tx pgx.Tx, in call, at time.Time) (bool, error) {
	teamID := c.scopes[in.wallet].TeamID()
	err := c.w.RequireTx(ctx, tx, teamID, money.USD(in.amount), at)
	if errors.Is(err, wallet.ErrInsufficient) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	kind := wallet.VolumeStorage
	if in.pod {
		kind = wallet.PodRuntime
	}
	return true, c.w.StartTx(ctx, tx, wallet.Start{TeamID: teamID, ResourceID: in.resource, Kind: kind, Rate: money.Rate(in.rate), At: at})
}

// draw makes up a call. Clients share keys and resources, so that they meet.
func (c *club) draw(random *rand.Rand, resources []uuid.UUID) call {
	in := call{wallet: random.IntN(len(c.scopes)), at: c.clock.Now().UnixMicro()}
	kinds := []string{"credit", "credit", "debit", "start", "start", "stop", "settle", "exhaust", "balance", "balance", "balance"}
	switch in.kind = kinds[random.IntN(len(kinds))]; in.kind {
	case "credit", "debit":
		in.amount = []int64{400_000, 1_500_000, 3_000_001}[random.IntN(3)]
		in.key = fmt.Sprintf("%s:%s:%d:%d:%d", in.kind, c.scopes[in.wallet].TeamID(), in.amount, in.at, random.IntN(2))
	case "start":
		in.amount = 10_000
		in.resource, in.pod = id.New(), random.IntN(3) > 0
		in.rate = []int64{7, 99_999, 2_500_000}[random.IntN(3)]
	case "stop":
		in.resource = resources[random.IntN(len(resources))]
		in.wallet = int(in.resource[0]) % len(c.scopes)
	}
	return in
}

// fromEnv reads how much to simulate: `make sim` asks for more than a test run.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// TestWalletHistoriesAreLinearizable has many clients use the same wallets at
// once, on the real database: what each of them saw fits one order of all they
// did, in which the exact model gives the same answers.
func TestWalletHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	seed := uint64(fromEnv("HOMEPORT_SIM_SEED", int(time.Now().UnixNano()&0xffffff)))
	histories := fromEnv("HOMEPORT_SIM_HISTORIES", 8)
	t.Logf("HOMEPORT_SIM_SEED=%d HOMEPORT_SIM_HISTORIES=%d", seed, histories)
	h := newHouse(t)
	// The model knows no monthly limit, which volumes on credit may reach.
	h.w = wallet.New(wallet.Deps{Pool: h.pool, Clock: h.clock.Clock, Logger: slog.New(slog.DiscardHandler), Limits: map[team.Plan]money.USD{}})
	for n := range histories {
		c := &club{house: h, scopes: []team.Scope{h.scope(), h.scope()}, began: time.Now()}
		began := h.clock.Now().UnixMicro()
		c.play(rand.New(rand.NewPCG(seed, uint64(n))))
		result, _ := porcupine.CheckOperationsVerbose(specification(began), c.ops, time.Minute)
		if result != porcupine.Ok {
			t.Fatalf("history %d of seed %d, %d operations: %s", n, seed, len(c.ops), result)
		}
	}
	h.settle()
	h.verify()
}

// play runs rounds of concurrent calls. Time stands still within a round: a
// call is about an instant, and the order of those about one is the question.
func (c *club) play(random *rand.Rand) {
	resources := make([]uuid.UUID, 0, 64)
	for range 10 {
		var wait sync.WaitGroup
		var begun []uuid.UUID
		for client := range 8 {
			var calls []call
			for range 3 {
				in := c.draw(random, append(resources, uuid.Nil))
				if in.kind == "start" {
					in.resource[0] = byte(in.wallet) // names its wallet
					begun = append(begun, in.resource)
				}
				calls = append(calls, in)
			}
			wait.Go(func() {
				for _, in := range calls {
					c.ask(client, in)
				}
			})
		}
		wait.Go(func() {
			if _, err := c.w.SettleDue(c.t.Context(), c.clock.Now()); err != nil {
				c.t.Error(err)
			}
		})
		wait.Wait()
		resources = append(resources, begun...)
		steps := []time.Duration{time.Microsecond, 20 * time.Minute, 3 * time.Hour, 26 * time.Hour, 8 * 24 * time.Hour}
		c.clock.Advance(time.Duration(random.Int64N(int64(steps[random.IntN(len(steps))])) + 1))
	}
}

// TestAStaleReadIsNotLinearizable shows that the check can fail: the balance
// before a credit, read after it, and one key that is posted twice.
func TestAStaleReadIsNotLinearizable(t *testing.T) {
	t.Parallel()
	began := noon.UnixMicro()
	at := func(asked, answered int64, in call, out answer) porcupine.Operation {
		in.at = began
		return porcupine.Operation{Input: in, Output: out, Call: asked, Return: answered}
	}
	credit, balance := call{kind: "credit", amount: 5, key: "k"}, call{kind: "balance"}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want bool
	}{
		"a read beside the credit may miss it": {[]porcupine.Operation{
			at(0, 10, credit, answer{done: true}), at(5, 6, balance, answer{}),
		}, true},
		"a read after the credit may not": {[]porcupine.Operation{
			at(0, 4, credit, answer{done: true}), at(5, 6, balance, answer{}),
		}, false},
		"a key is posted once": {[]porcupine.Operation{
			at(0, 4, credit, answer{done: true}), at(1, 6, credit, answer{done: true}),
		}, false},
	} {
		if got := porcupine.CheckOperations(specification(began), c.ops); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}
