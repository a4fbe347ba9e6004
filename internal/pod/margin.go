package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
)

// A Sold is what is sold, as the operator compares it: one count of one GPU type
// of one cloud.
type Sold struct {
	Adapter  string // key of Deps.Adapters
	Cloud    string // its name as users see it
	GPUType  string
	GPUCount int
}

// A Margin is what users paid for pods against what their machines cost.
type Margin struct {
	Paid          money.USD
	Upstream      money.USD
	PaidMicros    int64 // metered time of pods
	MachineMicros int64 // time that there were machines
}

// Left is what is left of it; below zero we paid for it.
func (m Margin) Left() money.USD { return m.Paid - m.Upstream }

// Plus is both together.
func (m Margin) Plus(o Margin) Margin {
	return Margin{m.Paid + o.Paid, m.Upstream + o.Upstream, m.PaidMicros + o.PaidMicros, m.MachineMicros + o.MachineMicros}
}

// A DayMargin is the margin of one thing that is sold on one UTC day.
type DayMargin struct {
	Day time.Time // the midnight that begins it
	Sold
	Margin
}

const sqlListMetered = `
select id, adapter, provider, gpu_type, gpu_count from pod
 where ready_at is not null and coalesce(stopped_at, 'infinity'::timestamptz) > $1 and ready_at < $2`

// What a machine costs runs from the instant at which it was asked for, which
// is never later than its cloud counts, until its cloud confirmed its end; a
// name under which no machine was made has no reference. An offer that is not
// read costs nothing.
const sqlSumUpstream = `
with machine as (
  select provider as adapter, coalesce(offer->>'Provider', '') as cloud, coalesce(offer->>'GPUType', '') as gpu_type,
         coalesce((offer->>'GPUCount')::integer, 0) as gpu_count,
         coalesce((offer->>'UpstreamPrice')::numeric + (offer->>'DiskGB')::numeric * (offer->>'DiskPrice')::numeric, 0) as rate,
         (extract(epoch from created_wall_at) * 1000000)::bigint + @offset as began,
         case when state = 'gone' then least((extract(epoch from state_wall_at) * 1000000)::bigint + @offset, @to) else @to end as ended
    from instance
   where ref <> '' and created_wall_at < @wall_to and (state <> 'gone' or state = 'gone' and state_wall_at > @wall_from)
)
select d.day_us, m.adapter, m.cloud, m.gpu_type, m.gpu_count,
       sum(div(m.rate * (least(m.ended, d.day_us + 86400000000) - m.began), 3600000000)
         - div(m.rate * (greatest(m.began, d.day_us) - m.began), 3600000000))::bigint as upstream,
       sum(least(m.ended, d.day_us + 86400000000) - greatest(m.began, d.day_us))::bigint as micros
  from machine m
 cross join lateral generate_series(greatest(m.began - m.began % 86400000000, @from), m.ended - 1, 86400000000) as d (day_us)
 group by 1, 2, 3, 4, 5`

// meteredBatch is how many pods' meters are summed up at once.
const meteredBatch = 10_000

// Margins sums up what users paid for pods and what machines cost, for each UTC
// day of business time from a midnight to an instant. Machines live by wall
// time; where a development door moved the business clock they are counted as
// if it had always stood as it does.
func (s *Service) Margins(ctx context.Context, from, to time.Time) ([]DayMargin, error) {
	sums := map[DayMargin]Margin{} // the keys have no margin
	key := func(dayUS int64, sold Sold) DayMargin { return DayMargin{Day: clock.FromMicros(dayUS), Sold: sold} }
	if err := s.sumPaid(ctx, from, to, func(dayUS int64, sold Sold, m Margin) {
		sums[key(dayUS, sold)] = sums[key(dayUS, sold)].Plus(m)
	}); err != nil {
		return nil, err
	}
	offset := s.Clock.Offset()
	rows, _ := s.Pool.Query(ctx, sqlSumUpstream, pgx.NamedArgs{
		"from": from.UnixMicro(), "to": to.UnixMicro(), "offset": offset.Microseconds(),
		"wall_from": from.Add(-offset), "wall_to": to.Add(-offset),
	})
	var dayUS, micros int64
	var sold Sold
	var cost money.USD
	_, err := pgx.ForEachRow(rows, []any{&dayUS, &sold.Adapter, &sold.Cloud, &sold.GPUType, &sold.GPUCount, &cost, &micros}, func() error {
		sums[key(dayUS, sold)] = sums[key(dayUS, sold)].Plus(Margin{Upstream: cost, MachineMicros: micros})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sum up what machines cost: %w", err)
	}
	list := make([]DayMargin, 0, len(sums))
	for k, m := range sums {
		k.Margin = m
		list = append(list, k)
	}
	return list, nil
}

// sumPaid tells what users paid for each thing that is sold, day by day.
func (s *Service) sumPaid(ctx context.Context, from, to time.Time, add func(dayUS int64, sold Sold, m Margin)) error {
	var kinds []Sold
	number := map[Sold]int32{}
	var pods []uuid.UUID
	var groups []int32
	var podID uuid.UUID
	var sold Sold
	rows, _ := s.Pool.Query(ctx, sqlListMetered, from, to)
	_, err := pgx.ForEachRow(rows, []any{&podID, &sold.Adapter, &sold.Cloud, &sold.GPUType, &sold.GPUCount}, func() error {
		n, ok := number[sold]
		if !ok {
			n = int32(len(kinds))
			number[sold], kinds = n, append(kinds, sold)
		}
		pods, groups = append(pods, podID), append(groups, n)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list metered pods: %w", err)
	}
	for at := 0; at < len(pods); at += meteredBatch {
		end := min(at+meteredBatch, len(pods))
		made, err := s.Wallet.SumRuntime(ctx, s.Pool, pods[at:end], groups[at:end], from, to)
		if err != nil {
			return err
		}
		for _, r := range made {
			add(r.DayUS, kinds[r.Group], Margin{Paid: r.Paid, PaidMicros: r.Micros})
		}
	}
	return nil
}
