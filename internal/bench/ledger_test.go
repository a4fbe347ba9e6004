package bench_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// alone measures the reads of money of one client, in a ledger of many rows.
func (s *server) alone(u *user, z size) []row {
	s.t.Helper()
	addTransfers(s.t, s.database(), u.TeamID, z.rows)
	z.conns = 1
	var rows []row
	for _, c := range []struct {
		path string
		most time.Duration
	}{
		{"/api/wallet/balance", 20 * time.Millisecond},
		{"/api/wallet/transactions?limit=1000", 50 * time.Millisecond},
	} {
		and := "?"
		if strings.Contains(c.path, "?") {
			and = "&"
		}
		got := fire(s.t, s.addr, c.path+and+"team_id="+u.TeamID, u.Token, z, func() time.Duration { return 0 })
		rows = append(rows, row{
			Bar:    fmt.Sprintf("GET %s, one connection, %d rows in the ledger: p99", c.path, z.rows),
			Demand: fmt.Sprintf("<= %.0f ms", ms(c.most)), Measured: fmt.Sprintf("%.1f ms", ms(got.p99)),
			Spread: fmt.Sprintf("p50 %.1f ms", ms(got.p50)), Verdict: verdictOf(got.p99 <= c.most),
		})
	}
	return rows
}

// addTransfers fills the ledger with days of storage. A fifth of the rows is the
// team's: 100 volumes over many days.
func addTransfers(t *testing.T, database, team string, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const sql = `
		insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
			segment_id, from_us, to_us, day_us, description, created_at)
		select w.account_id, a.id, 1000, 'charge', 'bench:' || g, case when g % 5 = 0 then w.team_id else gen_random_uuid() end,
			'volume-storage', md5((g / 5 % 100)::text)::uuid, gen_random_uuid(), d.us, d.us + 3600000000, d.us, '', w.created_at
		from generate_series(1, $1::int) g
		join wallet w on w.team_id = $2 join account a on a.kind = 'usage_storage'
		cross join lateral (select (extract(epoch from w.created_at)::bigint / 86400 - 1 - g / 500) * 86400000000 as us) d`
	if _, err := conn.Exec(t.Context(), sql, n, team); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `vacuum analyze transfer`); err != nil {
		t.Fatal(err)
	}
}
