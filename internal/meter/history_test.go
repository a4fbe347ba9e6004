package meter_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A history is one team of the simulation, with what an onlooker remembers.
type history struct {
	scope   team.Scope
	volumes map[uuid.UUID]bool // all it ever had
	gone    map[uuid.UUID]bool // seen to be purged
	pods    []uuid.UUID
}

// fromEnv reads how much to simulate: `make sim` asks for more than a test run.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// Random teams over 45 days: they pay, rent, store, change limits and forget to
// pay, while the clock moves in steps from a second to a week.
func TestRandomHistoriesOf45Days(t *testing.T) {
	t.Parallel()
	seed := uint64(fromEnv("HOMEPORT_SIM_SEED", int(time.Now().UnixNano()&0xffffff)))
	teams := fromEnv("HOMEPORT_SIM_TEAMS", 40)
	t.Logf("HOMEPORT_SIM_SEED=%d HOMEPORT_SIM_TEAMS=%d", seed, teams)
	random := rand.New(rand.NewPCG(seed, 1))
	y := newYard(t)
	y.fleet.stop = func(context.Context, pgx.Tx, uuid.UUID, time.Time) error { return nil }
	of := map[uuid.UUID]*history{}
	all := make([]*history, teams)
	for i := range all {
		plan := team.Hobby
		if random.IntN(2) == 0 {
			plan = team.Pro
		}
		h := &history{scope: y.team(plan), volumes: map[uuid.UUID]bool{}, gone: map[uuid.UUID]bool{}}
		of[h.scope.TeamID()], all[i] = h, h
		y.pay(h.scope, money.USD(1+random.Int64N(200_000_000)))
		h.volumes[y.volume(h.scope, 1+random.Int64N(500))] = true
	}
	y.fleet.stop = func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time) error {
		for _, pod := range of[teamID].pods {
			if err := y.w.StopTx(ctx, tx, pod, at); err != nil {
				return err
			}
		}
		return nil
	}
	end := noon.Add(45 * day)
	for y.clock.Now().Before(end) {
		for range teams / 8 {
			y.act(random, all[random.IntN(len(all))])
		}
		steps := []time.Duration{time.Second, 20 * time.Minute, 5 * time.Hour, day, 3 * day, 7 * day}
		y.wait(time.Duration(random.Int64N(int64(steps[random.IntN(len(steps))])) + 1))
		y.watch(all)
	}
	if problems, err := y.w.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the books do not balance: %v (%v)", problems, err)
	}
}

// act does something that a person may do.
func (y *yard) act(random *rand.Rand, h *history) {
	y.t.Helper()
	switch random.IntN(6) {
	case 0:
		y.pay(h.scope, money.USD(1+random.Int64N(100_000_000)))
	case 1, 2:
		if y.create(h.scope) == nil {
			pod := id.New()
			y.start(h.scope, pod, wallet.PodRuntime, money.Rate(10_000+random.Int64N(20_000_000)))
			h.pods = append(h.pods, pod)
		}
	case 3:
		if len(h.pods) > 0 {
			y.stop(h.pods[random.IntN(len(h.pods))])
		}
	case 4:
		most := y.w.PlanLimit(h.scope.Plan())
		y.tx(func(ctx context.Context, tx pgx.Tx) error {
			return y.w.SetLimitTx(ctx, tx, h.scope.TeamID(), h.scope.Plan(), 1+money.USD(random.Int64N(int64(most))), y.clock.Now())
		})
	case 5:
		if h.scope.Plan() == team.Pro && y.balance(h.scope).Balance > 0 {
			h.volumes[y.volume(h.scope, 1+random.Int64N(500))] = true
		}
	}
}

// watch checks what must hold of every team at every step.
func (y *yard) watch(all []*history) {
	y.t.Helper()
	for _, h := range all {
		b := y.balance(h.scope)
		// Seven days of a full volume cost 16.80 USD: compute adds nothing to it.
		if floor := -money.USD(len(h.volumes)) * 16_800_000; b.Balance < floor {
			y.t.Fatalf("a balance of %s with %d volumes: compute made it negative", b.Balance.Decimal(), len(h.volumes))
		}
		if b.Balance < 0 && !h.allEnded(y) {
			y.t.Fatalf("a pod is metered at a balance of %s", b.Balance.Decimal())
		}
		for vol := range h.volumes {
			at, gone := y.purged[vol]
			if !gone || h.gone[vol] {
				continue
			}
			h.gone[vol] = true
			since := y.exhausted(h.scope)
			if since == 0 || at.UnixMicro() < since+37*day.Microseconds() {
				y.t.Fatalf("volume %s was purged at %v, before day 37 of %v", vol, at, time.UnixMicro(since).UTC())
			}
		}
	}
	y.letters()
	for _, m := range y.post.letters {
		if y.post.seen[m.Key] {
			y.t.Fatalf("%q was sent twice", m.Subject)
		}
		y.post.seen[m.Key] = true
	}
	y.once()
}

// allEnded says whether no pod of the team is metered.
func (h *history) allEnded(y *yard) bool {
	y.t.Helper()
	until, err := y.w.MeteredUntil(y.t.Context(), y.pool, h.pods)
	y.must(err)
	for _, pod := range h.pods {
		if _, ended := until[pod]; !ended {
			return false
		}
	}
	return true
}

// exhausted is since when a team's storage is not paid, 0 when it is.
func (y *yard) exhausted(scope team.Scope) (us int64) {
	y.t.Helper()
	y.must(y.pool.QueryRow(y.t.Context(), `select coalesce(exhausted_us, 0) from wallet where team_id = $1`, scope.TeamID()).Scan(&us))
	return us
}

// once checks that no two letters of one kind are about the same episode: their
// notices are unique by construction, so are the instants they are about.
func (y *yard) once() {
	y.t.Helper()
	var twice string
	y.must(y.pool.QueryRow(y.t.Context(), `select coalesce(string_agg(kind, ' '), '') from (
		select kind from notice where kind like 'storage%' or kind = 'balance_empty' group by team_id, kind, posted_at having count(*) > 1) as n`).Scan(&twice))
	if strings.TrimSpace(twice) != "" {
		y.t.Fatalf("told twice: %s", twice)
	}
}
