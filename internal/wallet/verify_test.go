package wallet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// A ruin is books with three settled days, of which one thing is broken at a
// time, behind the back of the constraints.
type ruin struct {
	*house
	teamID  uuid.UUID
	pod     uuid.UUID
	volume  uuid.UUID
	charges []int64 // the pod's, by day
}

func newRuin(t *testing.T) *ruin {
	h := newHouse(t)
	r := &ruin{house: h, teamID: h.wallet()}
	h.credit(r.teamID, 100*money.Dollar)
	r.pod = h.start(r.teamID, wallet.PodRuntime, perHour)
	r.volume = h.start(r.teamID, wallet.VolumeStorage, 100_000)
	for range 3 {
		h.clock.Advance(24 * time.Hour)
		h.settle()
	}
	h.verify()
	rows, err := h.pool.Query(t.Context(), `select id from transfer where resource_id = $1 order by from_us`, r.pod)
	if err != nil {
		t.Fatal(err)
	}
	if r.charges, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil || len(r.charges) != 3 {
		t.Fatalf("the pod's charges: %v (%v)", r.charges, err)
	}
	return r
}

// broken looks at the books after a statement, which is then undone.
func (r *ruin) broken(sql string, args ...any) wallet.Report {
	r.t.Helper()
	ctx := r.t.Context()
	run := func(sql string, args ...any) {
		if _, err := r.pool.Exec(ctx, sql, args...); err != nil {
			r.t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, table := range []string{"transfer", "wallet", "segment"} {
		run(`create table kept_` + table + ` as table ` + table)
	}
	run(`alter table transfer disable trigger transfer_append_only`)
	run(sql, args...)
	report, err := r.w.Recompute(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	run(`truncate transfer`)
	run(`insert into transfer overriding system value select * from kept_transfer`)
	run(`delete from segment`)
	run(`update wallet w set balance_usd_micro = k.balance_usd_micro, receivable_usd_micro = k.receivable_usd_micro,
		burn_usd_micro_per_hour = k.burn_usd_micro_per_hour, exhausts_us = k.exhausts_us from kept_wallet k where k.team_id = w.team_id`)
	run(`insert into segment select * from kept_segment`)
	for _, table := range []string{"transfer", "wallet", "segment"} {
		run(`drop table kept_` + table)
	}
	return report
}

// TestEveryBrokenRowIsNamed breaks the books in each way that money can go
// wrong, and wants the row named.
func TestEveryBrokenRowIsNamed(t *testing.T) {
	t.Parallel()
	r := newRuin(t)
	const insert = `insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind,
		resource_id, segment_id, from_us, to_us, day_us, reference_id, description, created_at)
		select debit_account_id, credit_account_id, `
	wallets := "wallet " + r.teamID.String()
	for name, c := range map[string]struct {
		sql       string
		args      []any
		kind, row string
		off       money.USD
	}{
		"a changed balance":      {`update wallet set balance_usd_micro = balance_usd_micro + 7 where team_id = $1`, []any{r.teamID}, "balance", wallets, 7},
		"a changed receivable":   {`update wallet set balance_usd_micro = 0, receivable_usd_micro = 5 where team_id = $1`, []any{r.teamID}, "receivable", wallets, 0},
		"a changed burn":         {`update wallet set burn_usd_micro_per_hour = burn_usd_micro_per_hour + 1 where team_id = $1`, []any{r.teamID}, "burn", wallets, 0},
		"an early end":           {`update wallet set exhausts_us = exhausts_us - 3600000000 where team_id = $1`, []any{r.teamID}, "exhaustion", wallets, 0},
		"a missing charge":       {`delete from transfer where id = $1`, []any{r.charges[1]}, "gap", "transfer", 0},
		"the first charge gone":  {`delete from transfer where id = $1`, []any{r.charges[0]}, "gap", "transfer", 0},
		"the last charge gone":   {`delete from transfer where id = $1`, []any{r.charges[2]}, "total", "segment", 48 * money.Dollar},
		"a missing credit":       {`delete from transfer where code = 'credit'`, nil, "balance", wallets, 100 * money.Dollar},
		"a credit posted twice":  {insert + `1, code, key || 'x', team_id, kind, resource_id, segment_id, from_us, to_us, day_us, reference_id, '', created_at from transfer where code = 'credit'`, nil, "balance", wallets, 1},
		"a wrong amount":         {`update transfer set amount_usd_micro = amount_usd_micro - 1 where id = $1`, []any{r.charges[1]}, "window", "transfer", 2},
		"an overlapping window":  {`update transfer set from_us = from_us + 1000, to_us = to_us - 1000 where id = $1`, []any{r.charges[1]}, "window", "transfer", 0},
		"a window twice":         {insert + `1, code, key || 'x', team_id, kind, resource_id, segment_id, from_us + 1, to_us, day_us, reference_id, '', created_at from transfer where id = $1`, []any{r.charges[2]}, "window", "transfer", 2},
		"an unknown segment":     {`update transfer set segment_id = gen_random_uuid() where id = $1`, []any{r.charges[1]}, "parties", "transfer", 0},
		"an unknown account":     {`update transfer set debit_account_id = gen_random_uuid() where id = $1`, []any{r.charges[1]}, "parties", "transfer", 0},
		"another resource":       {`update transfer set resource_id = gen_random_uuid() where id = $1`, []any{r.charges[1]}, "parties", "transfer", 0},
		"the wrong usage":        {`update transfer set credit_account_id = (select id from account where kind = 'usage_storage') where id = $1`, []any{r.charges[1]}, "parties", "transfer", 0},
		"a raised rate":          {`update segment set rate_usd_micro_per_hour = rate_usd_micro_per_hour * 2 where resource_id = $1`, []any{r.pod}, "total", "segment", 60 * money.Dollar},
		"an early stop":          {`update segment set stopped_us = started_us + 3600000000 where resource_id = $1`, []any{r.pod}, "total", "segment", 59 * money.Dollar},
		"two rates at once":      {`insert into segment select gen_random_uuid(), team_id, resource_id, kind, 0, started_us + 1, started_us + 2, '' from segment where resource_id = $1`, []any{r.pod}, "segment", "segment", 0},
		"a refund nobody is due": {insert + `9, 'refund', key || 'r', team_id, kind, resource_id, segment_id, null, null, null, null, '', created_at from transfer where id = $1`, []any{r.charges[2]}, "parties", "transfer", 0},
	} {
		report := r.broken(c.sql, c.args...)
		if !slices.ContainsFunc(report.Problems, func(p wallet.Problem) bool {
			return p.Kind == c.kind && strings.HasPrefix(p.Row, c.row) && p.TeamID == r.teamID && p.Detail != ""
		}) {
			t.Errorf("%s: found %+v, want a %s at %s", name, report.Problems, c.kind, c.row)
		}
		if c.off > 0 && report.Imbalance() != c.off {
			t.Errorf("%s: off by %d, want %d", name, report.Imbalance(), c.off)
		}
	}
	r.verify()
	if report, err := r.w.Recompute(t.Context()); err != nil || report.Wallets < 1 || report.Segments != 2 || report.Transfers != 7 || report.Imbalance() != 0 {
		t.Errorf("looked at %+v (%v)", report, err)
	}
}

// TestEachNightIsCheckedOnce moves over nights and wants what was found kept.
func TestEachNightIsCheckedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.credit(h.wallet(), money.Dollar)
	if _, ok, err := h.w.LastCheck(t.Context()); ok || err != nil {
		t.Fatalf("checked before the first night (%v)", err)
	}
	look := func(want wallet.Check) {
		t.Helper()
		for range 2 {
			if err := h.w.CheckNight(t.Context(), h.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok, err := h.w.LastCheck(t.Context()); !ok || err != nil || got != want {
			t.Errorf("found %+v, %v (%v), want %+v", got, ok, err, want)
		}
	}
	first := wallet.Check{At: h.clock.Now(), Wallets: 1, Transfers: 1}
	look(first)
	if _, err := h.pool.Exec(t.Context(), `update wallet set balance_usd_micro = balance_usd_micro + 7`); err != nil {
		t.Fatal(err)
	}
	look(first) // the same night
	h.clock.Advance(40 * 24 * time.Hour)
	look(wallet.Check{At: h.clock.Now(), Wallets: 1, Transfers: 1, Problems: 1, Imbalance: 7})
	var nights int
	if err := h.pool.QueryRow(t.Context(), `select count(*) from ledger_check`).Scan(&nights); err != nil || nights != 2 {
		t.Errorf("%d nights were kept (%v), want 2", nights, err)
	}
}
