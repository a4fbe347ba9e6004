package wallet_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/wallet"
)

// BenchmarkRead reads the live balance of a team with 4 meters, and 1000 rows
// of a team's history, in a ledger of many rows, beside the bare balance row.
// HOMEPORT_BENCH_ROWS gives the full size: 1000000.
func BenchmarkRead(b *testing.B) {
	n := benchSize("HOMEPORT_BENCH_ROWS", 2000)
	pool, err := pg.Open(b.Context(), pgtest.URL(b)+"&statement_timeout=0") // a million rows take their time
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	h := houseOn(b, pool, clock.Fixed(noon), slog.New(slog.DiscardHandler))
	scope := h.scope()
	h.credit(scope.TeamID(), 1_000_000*money.Dollar)
	for range 2 {
		h.start(scope.TeamID(), wallet.PodRuntime, perHour)
		h.start(scope.TeamID(), wallet.VolumeStorage, perHour/100)
	}
	exec := func(sql string, args ...any) {
		if _, err := h.pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	// A fifth of the rows is this team's: 100 resources over many days.
	exec(`insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
			segment_id, from_us, to_us, day_us, description, created_at)
		select w.account_id, a.id, 1000, 'charge', 'bench:' || g, case when g % 5 = 0 then w.team_id else gen_random_uuid() end,
			'volume-storage', md5((g / 5 % 100)::text)::uuid, gen_random_uuid(), d.us, d.us + 3600000000, d.us, '', $1
		from generate_series(1, $2::int) g
		join wallet w on w.team_id = $3 join account a on a.kind = 'usage_storage'
		cross join lateral (select $4::bigint - (g / 500) * 86400000000 as us) d`,
		noon, n, scope.TeamID(), noon.Truncate(24*time.Hour).UnixMicro()-86_400_000_000)
	exec(`vacuum analyze transfer`)
	h.clock.Advance(3 * time.Hour)
	measure := func(fn func()) (p50, p99 time.Duration) {
		times := make([]time.Duration, 200)
		for i := range times {
			at := time.Now()
			fn()
			times[i] = time.Since(at)
		}
		slices.Sort(times)
		return times[len(times)/2], times[len(times)*99/100]
	}
	rowP50, rowP99 := measure(func() {
		var balance int64
		var account uuid.UUID
		err := h.pool.QueryRow(b.Context(), `select account_id, balance_usd_micro from wallet where team_id = $1`, scope.TeamID()).Scan(&account, &balance)
		if err != nil {
			b.Fatal(err)
		}
	})
	liveP50, liveP99 := measure(func() { h.balance(scope) })
	pageP50, pageP99 := measure(func() {
		rows, _, err := h.w.Transactions(b.Context(), scope, h.clock.Now(), 1000, "")
		if err != nil || n >= 5000*5 && len(rows) != 1000 {
			b.Fatalf("%d rows: %v", len(rows), err)
		}
	})
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("\n### Reads in a ledger of %d rows\n\n| what | p50 | p99 | beside the balance row |\n|---|---|---|---|\n", n)
	fmt.Printf("| balance row | %v | %v | 1 |\n", rowP50, rowP99)
	fmt.Printf("| live balance, 4 meters (bar p50 <= 5) | %v | %v | %.2f |\n", liveP50, liveP99, float64(liveP50)/float64(rowP50))
	fmt.Printf("| 1000 transactions (bar p99 <= 50 ms) | %v | %v | |\n\nload %s", pageP50, pageP99, load)
}
