package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

// How long a machine may be ending, nobody may know whether there is one, or a
// last sync may say that it moves, before the operator has to look; and how many of each are named.
const (
	TerminatesIn = 15 * time.Minute
	ClearsIn     = 5 * time.Minute
	LastSyncIn   = 24 * time.Hour
	fleetList    = 100
)

// A Fleet is what one cloud has of ours now.
type Fleet struct {
	Provider                                string // key of Deps.Adapters
	Intent, Ambiguous, Running, Terminating int    // open instances
	TerminatingLong, AmbiguousLong          int
	LastSyncLong                            int        // running ones in their pod's last sync
	WithoutPod                              int        // machines that serve no pod any more
	Burn                                    money.Rate // of the machines that there are
	Orphans                                 int        // machines that no open instance owns
}

const sqlListFleets = `
with open as (
  select i.provider, i.state, i.state_wall_at, i.ref <> '' as made, p.status = 'deleted' or i.attempt < p.attempts as idle,
         i.state = 'running' and p.status in ('deleting', 'switching_off') and p.status_wall_at < $3 as last_sync_long,
         coalesce((i.offer->>'UpstreamPrice')::bigint + (i.offer->>'DiskGB')::bigint * (i.offer->>'DiskPrice')::bigint, 0) as rate
    from instance i join pod p on p.id = i.pod_id
   where i.state <> 'gone'
), instances as (
  select provider, count(*) filter (where state = 'intent') as intent, count(*) filter (where state = 'ambiguous') as ambiguous,
         count(*) filter (where state = 'running') as running, count(*) filter (where state = 'terminating') as terminating,
         count(*) filter (where state = 'terminating' and state_wall_at < $1) as terminating_long,
         count(*) filter (where state = 'ambiguous' and state_wall_at < $2) as ambiguous_long,
         count(*) filter (where last_sync_long) as last_sync_long,
         count(*) filter (where made and idle) as without_pod, coalesce(sum(rate) filter (where made), 0)::bigint as burn
    from open group by provider
), orphans as (select provider, count(*) as orphans from orphan group by provider)
select provider, coalesce(intent, 0) as intent, coalesce(ambiguous, 0) as ambiguous, coalesce(running, 0) as running,
       coalesce(terminating, 0) as terminating, coalesce(terminating_long, 0) as terminating_long,
       coalesce(ambiguous_long, 0) as ambiguous_long, coalesce(last_sync_long, 0) as last_sync_long, coalesce(without_pod, 0) as without_pod, coalesce(burn, 0) as burn,
       coalesce(orphans, 0) as orphans
  from instances full join orphans using (provider)
 order by provider`

// Fleets tells what each cloud has of ours; one that has nothing is left out.
func (s *Service) Fleets(ctx context.Context) ([]Fleet, error) {
	wall := s.Clock.Wall()
	rows, _ := s.Pool.Query(ctx, sqlListFleets, wall.Add(-TerminatesIn), wall.Add(-ClearsIn), wall.Add(-LastSyncIn))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Fleet])
	if err != nil {
		return nil, fmt.Errorf("count machines: %w", err)
	}
	return list, nil
}

// A Troubled is an instance whose end, or whose existence, is not known for too
// long, or whose pod's last sync takes too long.
type Troubled struct {
	Name        string
	Provider    string
	Cloud       string // as users see it
	GPUType     string `db:"gpu_type"`
	GPUCount    int    `db:"gpu_count"`
	State       InstanceState
	SinceWallAt time.Time // in this state; of a last sync: when it began
	Tries       int
	Reason      string
	NextWallAt  *time.Time
	PodID       uuid.UUID
	PodStatus   Status
	Burn        money.Rate // while there is a machine
}

const sqlListTroubled = `
select i.name, i.provider, coalesce(i.offer->>'Provider', '') as cloud, coalesce(i.offer->>'GPUType', '') as gpu_type,
       coalesce((i.offer->>'GPUCount')::integer, 0) as gpu_count, i.state,
       case when i.state = 'running' then p.status_wall_at else i.state_wall_at end as since_wall_at, i.tries, i.reason, i.next_wall_at,
       i.pod_id, p.status as pod_status,
       case when i.ref = '' then 0 else
         coalesce((i.offer->>'UpstreamPrice')::bigint + (i.offer->>'DiskGB')::bigint * (i.offer->>'DiskPrice')::bigint, 0) end as burn
  from instance i join pod p on p.id = i.pod_id
 where i.state <> 'gone' and (i.state = 'ambiguous' or i.state = 'terminating' and i.state_wall_at < $1
       or i.state = 'running' and p.status in ('deleting', 'switching_off') and p.status_wall_at < $2)
 order by since_wall_at, i.name
 limit $3`

// Troubled lists the instances of which nobody knows whether there is a machine,
// those that are ending for long, and those in long last syncs, the oldest first,
// 100 at most.
func (s *Service) Troubled(ctx context.Context) ([]Troubled, error) {
	wall := s.Clock.Wall()
	rows, _ := s.Pool.Query(ctx, sqlListTroubled, wall.Add(-TerminatesIn), wall.Add(-LastSyncIn), fleetList)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Troubled])
	if err != nil {
		return nil, fmt.Errorf("list troubled machines: %w", err)
	}
	return list, nil
}

// An Orphan is a machine with our mark at a cloud that no open instance owns.
type Orphan struct {
	Provider        string
	Ref             string
	Name            string
	FirstSeenWallAt time.Time
}

const sqlListOrphans = `
select provider, ref, name, first_seen_wall_at from orphan order by first_seen_wall_at, provider, ref limit $1`

// Orphans lists them, the oldest first, 100 at most.
func (s *Service) Orphans(ctx context.Context) ([]Orphan, error) {
	rows, _ := s.Pool.Query(ctx, sqlListOrphans, fleetList)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Orphan])
	if err != nil {
		return nil, fmt.Errorf("list orphans: %w", err)
	}
	return list, nil
}
