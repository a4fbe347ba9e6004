package meter_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
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
	wrote   map[uuid.UUID]byte // what a volume's last sync wrote
	pods    []uuid.UUID
}

// fromEnv reads how much to simulate: `make sim` asks for more than a test run.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// inOneSea is how many teams share a database and its clock.
const inOneSea = 100

// Random teams over 45 days: they pay, rent, store, change limits and forget to
// pay, while the clock moves in steps from a second to a week.
func TestRandomHistoriesOf45Days(t *testing.T) {
	t.Parallel()
	seed := uint64(fromEnv("HOMEPORT_SIM_SEED", int(time.Now().UnixNano()&0xffffff)))
	teams := fromEnv("HOMEPORT_SIM_TEAMS", 40)
	t.Logf("HOMEPORT_SIM_SEED=%d HOMEPORT_SIM_TEAMS=%d", seed, teams)
	for sea := 0; sea*inOneSea < teams; sea++ {
		t.Run(strconv.Itoa(sea), func(t *testing.T) {
			t.Parallel()
			live(t, rand.New(rand.NewPCG(seed, uint64(sea))), min(inOneSea, teams-sea*inOneSea))
		})
	}
}

// live plays the histories of some teams that share a clock.
func live(t *testing.T, random *rand.Rand, teams int) {
	y := newYard(t)
	y.fleet.stop = func(context.Context, pgx.Tx, uuid.UUID, time.Time) error { return nil }
	of := map[uuid.UUID]*history{}
	all := make([]*history, teams)
	for i := range all {
		plan := team.Hobby
		if random.IntN(2) == 0 {
			plan = team.Pro
		}
		h := &history{scope: y.team(plan), volumes: map[uuid.UUID]bool{}, gone: map[uuid.UUID]bool{}, wrote: map[uuid.UUID]byte{}}
		of[h.scope.TeamID()], all[i] = h, h
		y.pay(h.scope, money.USD(1+random.Int64N(200_000_000)))
		h.give(y, random)
	}
	y.fleet.stop = func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time) error {
		for _, pod := range of[teamID].pods {
			if err := y.w.StopTx(ctx, tx, pod, at); err != nil {
				return err
			}
		}
		return of[teamID].sync(ctx, tx) // the last one, of pods that end
	}
	end := noon.Add(45 * day)
	for y.clock.Now().Before(end) {
		for range max(1, teams/8) {
			y.act(random, all[random.IntN(len(all))])
		}
		steps := []time.Duration{time.Second, 20 * time.Minute, 5 * time.Hour, day, 3 * day, 7 * day}
		y.pass(random, of, time.Duration(random.Int64N(int64(steps[random.IntN(len(steps))]))+1))
		y.watch(all)
	}
	if problems, err := y.w.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the books do not balance: %v (%v)", problems, err)
	}
}

// looks is how often the node looks for teams without money.
const looks = 500 * time.Millisecond

// pass lets time pass: now and then as it does by itself, up to a look of the
// node after the next team's money ends, else all at once.
func (y *yard) pass(random *rand.Rand, of map[uuid.UUID]*history, d time.Duration) {
	y.t.Helper()
	now, until := y.clock.Now(), y.clock.Now().Add(d)
	var next *int64
	var teamID uuid.UUID
	y.must(y.pool.QueryRow(y.t.Context(), `select e.exhausts_us, coalesce(e.team_id, '00000000-0000-0000-0000-000000000000') from (select 1) as one
		left join lateral (select exhausts_us, team_id from wallet where exhausts_us > $1 and exhausts_us <= $2 and pod_burn_usd_micro_per_hour > 0
		order by exhausts_us limit 1) as e on true`, now.UnixMicro(), until.UnixMicro()).Scan(&next, &teamID))
	if next != nil && random.IntN(3) > 0 {
		at := clock.FromMicros(*next)
		y.clock.Advance(at.Sub(now) + time.Duration(random.Int64N(int64(looks))))
		y.fleet.off = nil
		y.must(y.m.FollowSweep(y.t.Context()))
		// They may have been switched off for an earlier reason by the same look.
		told := slices.ContainsFunc(y.fleet.off, func(o off) bool { return o.team == teamID && !o.at.After(at) })
		if !told || !of[teamID].allEnded(y) {
			y.t.Fatalf("the pods of team %s are not switching off by %v, its money ended at %v: %v", teamID, y.clock.Now(), at, y.fleet.off)
		}
	}
	y.wait(max(0, until.Sub(y.clock.Now())))
}

// act does something that a person may do.
func (y *yard) act(random *rand.Rand, h *history) {
	y.t.Helper()
	switch random.IntN(7) {
	case 6:
		if y.balance(h.scope).Balance > 0 {
			y.tx(h.sync)
		}
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
			h.give(y, random)
		}
	}
}

const sqlSync = `update volume set head_seq = head_seq + 1, head_tree = decode(repeat(lpad(to_hex($2::int), 2, '0'), 32), 'hex')
where id = $1 and deleted_at is null and frozen_at is null`

// give makes a volume with something in it.
func (h *history) give(y *yard, random *rand.Rand) {
	vol := y.volume(h.scope, 1+random.Int64N(500))
	h.volumes[vol], h.wrote[vol] = true, 1
}

// sync writes something new to each of the team's volumes that may be written.
func (h *history) sync(ctx context.Context, tx pgx.Tx) error {
	for vol := range h.volumes {
		content := h.wrote[vol] + 1
		tag, err := tx.Exec(ctx, sqlSync, vol, int(content))
		if err != nil {
			return err
		}
		if tag.RowsAffected() > 0 {
			h.wrote[vol] = content
		}
	}
	return nil
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
	y.content(all)
	y.letters()
	for _, m := range y.post.letters {
		if y.post.seen[m.Key] {
			y.t.Fatalf("%q was sent twice", m.Subject)
		}
		y.post.seen[m.Key] = true
	}
	y.once()
}

// content checks that volumes hold what was written last, in the trash, too,
// until they are purged.
func (y *yard) content(all []*history) {
	y.t.Helper()
	rows, err := y.pool.Query(y.t.Context(), `select id, coalesce(get_byte(head_tree, 0), 0) from volume`)
	y.must(err)
	held := map[uuid.UUID]int{}
	var vol uuid.UUID
	var content int
	_, err = pgx.ForEachRow(rows, []any{&vol, &content}, func() error {
		held[vol] = content
		return nil
	})
	y.must(err)
	for _, h := range all {
		for vol, want := range h.wrote {
			if !h.gone[vol] && held[vol] != int(want) {
				y.t.Fatalf("volume %s holds %d, %d was written last", vol, held[vol], want)
			}
		}
	}
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
