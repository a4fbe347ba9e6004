package wallet_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// Whatever pods start, stop, are re-rated and are given back for, over several
// midnights and settled or not: the sum of each day is that of big integers over
// the segments, and all days together are what the wallet was charged.
func TestRuntimeOfDaysIsWhatWasCharged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	settle := func(teamID uuid.UUID) {
		h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.SettleTx(ctx, tx, teamID, h.clock.Now()) })
	}
	rapid.Check(t, func(r *rapid.T) {
		teamID := h.wallet()
		h.credit(teamID, 1_000_000*money.Dollar)
		from := h.clock.Now().Truncate(24 * time.Hour)
		rate := func() money.Rate { return money.Rate(rapid.Int64Range(1, 100_000_000).Draw(r, "rate")) }
		var pods, open []uuid.UUID
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			h.clock.Advance(time.Duration(rapid.Int64Range(1, int64(9*time.Hour/time.Microsecond)).Draw(r, "later")) * time.Microsecond)
			switch what := rapid.IntRange(0, 4).Draw(r, "what"); {
			case what <= 1 || len(open) == 0:
				open = append(open, h.start(teamID, wallet.PodRuntime, rate()))
				pods = append(pods, open[len(open)-1])
			case what == 2:
				h.rerate(open[0], rate())
			case what == 3:
				settle(teamID)
			default: // it was lost a while ago
				ago := time.Duration(rapid.Int64Range(0, int64(time.Hour/time.Microsecond)).Draw(r, "ago")) * time.Microsecond
				h.stop(open[0], h.clock.Now().Add(-ago))
				open = open[1:]
			}
		}
		to := h.clock.Now()
		groups := make([]int32, len(pods))
		for i := range groups {
			groups[i] = int32(i % 2)
		}
		got := map[string]wallet.Runtime{}
		list, err := h.w.SumRuntime(t.Context(), h.pool, pods, groups, from, to)
		if err != nil {
			t.Fatal(err)
		}
		var sum money.USD
		for _, l := range list {
			got[fmt.Sprint(l.Group, " ", clock.FromMicros(l.DayUS).Format(time.DateOnly))] = l
			sum += l.Paid
		}
		want := map[string]wallet.Runtime{}
		for i, p := range pods {
			rows, _ := h.pool.Query(t.Context(), `select rate_usd_micro_per_hour, started_us, coalesce(stopped_us, $2) from segment where resource_id = $1`, p, to.UnixMicro())
			var rate, began, ended int64
			_, err := pgx.ForEachRow(rows, []any{&rate, &began, &ended}, func() error {
				upTo := func(us int64) *big.Int {
					c := new(big.Int).Mul(big.NewInt(rate), big.NewInt(min(max(us, began), ended)-began))
					return c.Quo(c, big.NewInt(3_600_000_000))
				}
				for day := from.UnixMicro(); day < ended; day += 86_400_000_000 {
					a, b := max(began, day), min(ended, day+86_400_000_000)
					if a >= b {
						continue
					}
					key := fmt.Sprint(i%2, " ", clock.FromMicros(day).Format(time.DateOnly))
					w := want[key]
					w.Group, w.DayUS = i%2, day
					w.Paid += money.USD(new(big.Int).Sub(upTo(b), upTo(a)).Int64())
					w.Micros += b - a
					want[key] = w
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("(-want +got):\n%s", diff)
		}
		settle(teamID)
		var charged money.USD
		err = h.pool.QueryRow(t.Context(), `select coalesce(sum(case code when 'charge' then amount_usd_micro else -amount_usd_micro end), 0)::bigint
			from transfer where team_id = $1 and code in ('charge', 'refund')`, teamID).Scan(&charged)
		if err != nil || charged != sum {
			r.Fatalf("the wallet was charged %d, the days make %d, %v", charged, sum, err)
		}
	})
}
