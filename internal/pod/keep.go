package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/provider"
)

// A machine whose cloud can do so ends by itself keepFor after it was launched
// or last kept: what a control plane that is lost for good can cost. It is kept
// keepEvery, so that an outage of sixteen hours ends no pod.
const (
	keepFor   = 24 * time.Hour
	keepEvery = 8 * time.Hour
)

const sqlDueKeeps = `
select id, name, provider, ref from instance
where state = 'running' and ref <> '' and provider = any(@keepers) and coalesce(kept_wall_at, created_wall_at) <= @before
order by coalesce(kept_wall_at, created_wall_at) limit @most`

const sqlNoteKept = `update instance set kept_wall_at = $2 where id = $1`

// KeepMachines moves the deadlines of running machines where their cloud ends
// them by itself. Its error joins what went wrong with single machines; they are
// due again at the next call. One that is to end keeps its deadline.
func (s *Service) KeepMachines(ctx context.Context) error {
	var keepers []string
	for name, adapter := range s.Adapters {
		if _, ok := adapter.(provider.Keeper); ok {
			keepers = append(keepers, name)
		}
	}
	if len(keepers) == 0 {
		return nil
	}
	wall := s.Clock.Wall()
	type due struct {
		ID                  uuid.UUID
		Name, Provider, Ref string
	}
	rows, _ := s.Pool.Query(ctx, sqlDueKeeps, pgx.NamedArgs{"keepers": keepers, "before": wall.Add(-keepEvery), "most": sweepBatch})
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[due])
	if err != nil {
		return fmt.Errorf("machines to keep: %w", err)
	}
	var errs []error
	for _, in := range list {
		call, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := s.Adapters[in.Provider].(provider.Keeper).Keep(call, in.Ref, wall.Add(keepFor))
		cancel()
		if err == nil {
			_, err = s.Pool.Exec(ctx, sqlNoteKept, in.ID, wall)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("keep instance %s: %w", in.Name, err))
		}
	}
	return errors.Join(errs...)
}
