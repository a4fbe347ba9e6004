package pod_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// share is what a rate makes of the part of a stretch that lies in a day: the
// difference of two whole sums, computed with big integers.
func share(rate money.Rate, from, to, midnight time.Time) (sum money.USD, micros int64) {
	until := func(t time.Time) *big.Int {
		t = t.UTC()
		if t.Before(from) {
			t = from
		}
		if t.After(to) {
			t = to
		}
		p := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(t.Sub(from).Microseconds()))
		return p.Quo(p, big.NewInt(time.Hour.Microseconds()))
	}
	next := midnight.Add(24 * time.Hour)
	begin, end := midnight, next
	if from.After(begin) {
		begin = from
	}
	if to.Before(end) {
		end = to
	}
	return money.USD(new(big.Int).Sub(until(next), until(midnight)).Int64()), max(0, end.Sub(begin).Microseconds())
}

// ledgerOf sums up by day and what is sold, in an order to compare by.
type ledgerOf map[string]pod.Margin

func (l ledgerOf) add(day time.Time, s pod.Sold, m pod.Margin) {
	if m != (pod.Margin{}) {
		key := fmt.Sprintf("%s %s %s %s x%d", day.Format(time.DateOnly), s.Adapter, s.Cloud, s.GPUType, s.GPUCount)
		l[key] = l[key].Plus(m)
	}
}

func told(list []pod.DayMargin) ledgerOf {
	l := ledgerOf{}
	for _, m := range list {
		l.add(m.Day, m.Sold, m.Margin)
	}
	return l
}

// A machine that fails to start, one that is lost shortly before midnight and
// given back for, a gap, and a pod that ends in good order: what users paid is
// what their wallet shows, and every second of a machine costs, also where
// nobody pays for it.
func TestMarginsAreWhatUsersPaidLessWhatMachinesCost(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	h.clock.Advance(11*time.Hour + 33*time.Minute) // 23:33
	from := h.clock.Now().Truncate(24 * time.Hour)
	h.a.script(play{failed: true})
	h.a.answers(nil, []error{errCut, errCut, errCut}) // and it does not end at once
	p := h.rent(scope)
	h.pass(10 * time.Second)
	p = h.is(scope, p, pod.Starting)
	if p.Provider != "borealis" {
		t.Fatalf("it starts at %s", p.Provider)
	}
	lost := h.boot(h.b.one())
	lost.mount()
	h.work()
	h.is(scope, p, pod.Ready)
	lost.write("a.txt", "hello")
	h.must(lost.sync(false))
	lost.live(24 * time.Minute) // until shortly before midnight
	h.b.vanish(lost.machine.Name)
	h.pass(90 * time.Second)
	h.tx(func(tx pgx.Tx) error { return h.wallet.SettleTx(t.Context(), tx, scope.TeamID(), h.clock.Now()) })
	charged := h.spent(scope)
	h.pass(2 * time.Minute)
	p = h.is(scope, p, pod.Deleted)
	if h.spent(scope) >= charged {
		t.Fatal("nothing was given back")
	}
	h.pass(7 * time.Minute) // the gap, over midnight
	q, ashore := h.running(scope)
	ashore.live(31 * time.Minute)
	h.must(h.Delete(t.Context(), scope, q.ID))
	h.must(ashore.sync(true))
	h.pass(time.Minute)
	q = h.is(scope, q, pod.Deleted)
	r, still := h.running(scope) // runs on
	still.live(3 * time.Minute)
	r = h.find(scope, r)
	to := h.clock.Now()
	if got := to.Sub(from); got < 24*time.Hour || got > 25*time.Hour {
		t.Fatalf("the story takes until %s", to)
	}

	want, paid := ledgerOf{}, money.USD(0)
	days := []time.Time{from, from.Add(24 * time.Hour)}
	for _, one := range []*pod.Pod{p, q, r} {
		end := to
		if one.StoppedAt != nil {
			end = *one.StoppedAt
		}
		for _, day := range days {
			sum, micros := share(one.Rate, *one.ReadyAt, end, day)
			paid += sum
			want.add(day, pod.Sold{Adapter: one.Adapter, Cloud: one.Provider, GPUType: one.GPUType, GPUCount: one.GPUCount}, pod.Margin{Paid: sum, PaidMicros: micros})
		}
	}
	if shown := h.spent(scope); shown != paid {
		t.Errorf("the wallet shows %d, the model %d", shown, paid)
	}
	rows, _ := h.pool.Query(t.Context(), `select name, provider, state, created_wall_at, state_wall_at from instance order by created_wall_at`)
	var name, adapter, state string
	var made, ended time.Time
	machines := 0
	_, err := pgx.ForEachRow(rows, []any{&name, &adapter, &state, &made, &ended}, func() error {
		machines++
		asked := slices.IndexFunc(append(slices.Clone(h.a.log), h.b.log...), func(c call) bool {
			return c.op == "launch" && c.name == name && c.wall.Equal(made)
		})
		if asked < 0 {
			t.Errorf("%s was not asked for at %s", name, made)
		}
		if state != "gone" {
			ended = to
		}
		for _, day := range days {
			sum, micros := share(2_000_000, made, ended, day)
			want.add(day, pod.Sold{Adapter: adapter, Cloud: map[string]string{"a": "aurora", "b": "borealis"}[adapter], GPUType: "H100_80GB", GPUCount: 1},
				pod.Margin{Upstream: sum, MachineMicros: micros})
		}
		return nil
	})
	h.must(err)
	if machines != 4 {
		t.Fatalf("%d machines", machines)
	}
	got, err := h.Margins(t.Context(), from, to)
	h.must(err)
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The cloud whose machine never started is at a loss that day: nobody paid.
	first := told(got)[from.Format(time.DateOnly)+" a aurora H100_80GB x1"]
	if first.Paid != 0 || first.Upstream == 0 || first.Left() >= 0 {
		t.Errorf("the failed start: %+v", first)
	}
}

// Random machines over ninety days, at prices up to the dearest, with and
// without a disk's price: the sums are those of big integers.
func TestWhatMachinesCostIsExact(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	p := h.rent(scope)
	dice := rand.New(rand.NewPCG(7, 7))
	to := h.clock.Now()
	from := to.Truncate(24 * time.Hour).Add(-89 * 24 * time.Hour)
	want := ledgerOf{}
	for n := range 400 {
		rate, disk, gb := money.Rate(dice.Int64N(int64(money.MaxRate))), money.Rate(dice.Int64N(3)*dice.Int64N(200)), dice.IntN(2000)
		began := to.Add(-time.Duration(dice.Int64N(int64(100 * 24 * time.Hour)))).Truncate(time.Microsecond)
		ended := began.Add(time.Duration(dice.Int64N(int64(5 * 24 * time.Hour)))).Truncate(time.Microsecond)
		state, ref := "gone", "r"
		switch {
		case n%7 == 0:
			ref = "" // no machine was made
		case n%5 == 0 || ended.After(to):
			state = "running"
		}
		h.exec(`insert into instance (id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
			  created_wall_at, state_wall_at, tries)
			select gen_random_uuid(), $1, $2, $3, 'a', $4, $5, gen_random_uuid(), convert_to($3, 'UTF8'), $6, '', 1, '', $7, $8, 0`,
			p.ID, 100+n, fmt.Sprint("m", n), map[string]any{
				"Provider": "aurora", "GPUType": "L4_24GB", "GPUCount": n%3 + 1, "UpstreamPrice": rate, "DiskGB": gb, "DiskPrice": disk,
			}, state, ref, began, ended)
		if state != "gone" {
			ended = to
		}
		if ref == "" {
			continue
		}
		for day := from; !day.After(to); day = day.Add(24 * time.Hour) {
			end := min(ended.UnixMicro(), to.UnixMicro())
			sum, micros := share(rate+money.Rate(gb)*disk, began, time.UnixMicro(end).UTC(), day)
			want.add(day, pod.Sold{Adapter: "a", Cloud: "aurora", GPUType: "L4_24GB", GPUCount: n%3 + 1}, pod.Margin{Upstream: sum, MachineMicros: micros})
		}
	}
	got, err := h.Margins(t.Context(), from, to)
	h.must(err)
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong with machines is named: those that do not end, those of which
// nobody knows, those of no pod, with what they cost; and those that nobody owns.
func TestFleetsTellWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 100*money.Dollar)
	stuck := h.rent(scope)
	h.work()
	h.a.answers(nil, slices.Repeat([]error{errCut}, 500))
	h.must(h.Delete(t.Context(), scope, stuck.ID))
	h.pass(time.Minute)
	h.is(scope, stuck, pod.Deleted)
	if list, err := h.Troubled(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after a minute: %+v, %v", list, err)
	}
	h.pass(15 * time.Minute)
	h.a.plant("hp-" + h.env4() + "-0000aaaa-1")
	h.must(h.Reap(t.Context()))
	h.pass(10 * time.Second)
	unclear := h.rent(scope)
	h.b.script(play{err: errCut}) // the other cloud's breaker is open
	h.b.answers(slices.Repeat([]error{errCut}, 500), nil)
	h.advance(time.Second)
	h.work()
	h.is(scope, unclear, pod.Pending)
	fleets, err := h.Fleets(t.Context())
	h.must(err)
	want := []pod.Fleet{
		{Provider: "a", Terminating: 1, TerminatingLong: 1, WithoutPod: 1, Burn: 2_000_000, Orphans: 1}, {Provider: "b", Ambiguous: 1},
	}
	if diff := cmp.Diff(want, fleets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list, err := h.Troubled(t.Context())
	h.must(err)
	if len(list) != 2 || list[0].PodID != stuck.ID || list[0].State != pod.Terminating || list[0].Burn != 2_000_000 || list[0].Tries == 0 ||
		list[1].PodID != unclear.ID || list[1].State != pod.Ambiguous || list[1].Burn != 0 {
		t.Errorf("troubled: %+v", list)
	}
	orphans, err := h.Orphans(t.Context())
	h.must(err)
	if len(orphans) != 1 || orphans[0].Name != "hp-"+h.env4()+"-0000aaaa-1" {
		t.Errorf("orphans: %+v", orphans)
	}
}
