package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const sqlListSegments = `
select started_us, stopped_us, rate_usd_micro_per_hour from segment
where team_id = $1 and resource_id = $2 and started_us < coalesce(stopped_us, 9223372036854775807)
order by started_us`

// Segments lists what a resource of the scope's team cost per hour, and from
// when to when, the oldest first.
func (s *Service) Segments(ctx context.Context, scope team.Scope, resourceID uuid.UUID) ([]Segment, error) {
	rows, err := s.Pool.Query(ctx, sqlListSegments, scope.TeamID(), resourceID)
	if err != nil {
		return nil, fmt.Errorf("list segments of %s: %w", resourceID, err)
	}
	segments, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Segment, error) {
		var from int64
		var to *int64
		var rate money.Rate
		if err := row.Scan(&from, &to, &rate); err != nil {
			return Segment{}, err
		}
		g := Segment{From: clock.FromMicros(from), Rate: rate}
		if to != nil {
			end := clock.FromMicros(*to)
			g.To = &end
		}
		return g, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list segments of %s: %w", resourceID, err)
	}
	return segments, nil
}

const sqlListMeteredUntil = `
select resource_id, max(stopped_us) as stopped_us from segment
where resource_id = any($1)
group by resource_id
having count(*) = count(stopped_us)`

// MeteredUntil tells when the meters of resources ended. Those that still run,
// or never did, are left out.
func (s *Service) MeteredUntil(ctx context.Context, q pg.Querier, resourceIDs []uuid.UUID) (map[uuid.UUID]time.Time, error) {
	rows, err := q.Query(ctx, sqlListMeteredUntil, resourceIDs)
	if err != nil {
		return nil, fmt.Errorf("list the ends of meters: %w", err)
	}
	until := make(map[uuid.UUID]time.Time)
	var resource uuid.UUID
	var stopped int64
	_, err = pgx.ForEachRow(rows, []any{&resource, &stopped}, func() error {
		until[resource] = clock.FromMicros(stopped)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the ends of meters: %w", err)
	}
	return until, nil
}
