package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

// A Runtime is what the meters of a group of pods made on one UTC day.
type Runtime struct {
	Group  int
	DayUS  int64 `db:"day_us"` // the midnight that begins it
	Paid   money.USD
	Micros int64 // metered time
}

// Each segment's cost of a day is the difference of its cost at two instants, as
// settlement posts it: a meter that was moved back, and refunded, costs less on
// the days that it ran. sqlSumRuntime needs 128 bits between.
const sqlSumRuntime = `
select g.n as "group", d.day_us,
  sum(div(s.rate_usd_micro_per_hour::numeric * (least(s.ends_us, d.day_us + 86400000000) - s.started_us), 3600000000)
    - div(s.rate_usd_micro_per_hour::numeric * (greatest(s.started_us, d.day_us) - s.started_us), 3600000000))::bigint as paid,
  sum(least(s.ends_us, d.day_us + 86400000000) - greatest(s.started_us, d.day_us))::bigint as micros
from unnest(@pods::uuid[], @groups::integer[]) as g (pod_id, n)
cross join lateral (
  select rate_usd_micro_per_hour, started_us, least(coalesce(stopped_us, @to), @to) as ends_us from segment
  where resource_id = g.pod_id and kind = 'pod-runtime' and started_us < @to and coalesce(stopped_us, @to) > greatest(@from, started_us)
) s
cross join lateral generate_series(greatest(s.started_us - s.started_us % 86400000000, @from), s.ends_us - 1, 86400000000) as d (day_us)
group by 1, 2`

// SumRuntime sums up what the meters of pods made on each UTC day from one
// midnight to an instant, settled or not, after refunds. groups says for each
// pod which sum it counts to. What the house bears of a wallet that ran empty,
// less than a micro-dollar for each meter, is in it.
func (s *Service) SumRuntime(ctx context.Context, q pg.Querier, pods []uuid.UUID, groups []int32, from, to time.Time) ([]Runtime, error) {
	rows, _ := q.Query(ctx, sqlSumRuntime, pgx.NamedArgs{
		"pods": pods, "groups": groups, "from": dayStart(from.UnixMicro()), "to": to.UnixMicro(),
	})
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Runtime])
	if err != nil {
		return nil, fmt.Errorf("sum up the meters of %d pods: %w", len(pods), err)
	}
	return list, nil
}
