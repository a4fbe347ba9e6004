package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"homeport.dev/homeport/internal/agentapi"
)

// How garbage is deleted.
const (
	garbageFor    = 24 * time.Hour // it stays at least so long: a download or a restore may read it
	garbageBatch  = 500
	deletesAtOnce = 16
)

// kindSnapshot is the kind of a snapshot object among garbage.
const kindSnapshot agentapi.Kind = "snapshot"

const sqlCondemnOrphans = `
with gone as (
  delete from volume_pack p using volume v
  where p.volume_id = $1 and v.id = p.volume_id and p.committed_seq is null and p.epoch < v.epoch and p.created_at <= $2
  returning p.volume_id, p.kind, p.id, p.size_bytes, p.created_at)
insert into volume_garbage (volume_id, kind, id, size_bytes, committed, generation, condemned_at)
select volume_id, kind, id, size_bytes, false, 0, created_at from gone
on conflict (volume_id, kind, id) do nothing`

// condemnOrphans lets go of what attachments that are over uploaded and never
// committed, and of what collections made that did not end.
func (s *Service) condemnOrphans(ctx context.Context, volumeID uuid.UUID) error {
	if _, err := s.Pool.Exec(ctx, sqlCondemnOrphans, volumeID, s.Clock.Now().Add(-orphanTime)); err != nil {
		return fmt.Errorf("condemn orphans of volume %s: %w", volumeID, err)
	}
	return nil
}

// A garbage is what a volume does not need any more.
type garbage struct {
	VolumeID uuid.UUID
	Kind     agentapi.Kind
	ID       []byte
}

func (g garbage) key() string {
	return object{ID: g.ID, Kind: g.Kind}.key(g.VolumeID)
}

// sqlListGarbage leaves out what an agent with earlier indexes may want.
const sqlListGarbage = `
select g.volume_id, g.kind, g.id
from volume_garbage g join volume v on v.id = g.volume_id
where g.condemned_at <= $1 and (v.pod_id is null or v.seen_generation >= g.generation)
  and not exists (select from volume_pack p where p.volume_id = g.volume_id and p.id = g.id)
order by g.condemned_at, g.kind = 'index' desc limit $2`

const sqlForgetOneGarbage = `delete from volume_garbage where volume_id = $1 and kind = $2 and id = $3`

// ParseKeepGarbage reads how long what a collection replaced stays in the
// store, such as 720h; at least a day.
func ParseKeepGarbage(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < garbageFor {
		return 0, fmt.Errorf("%q is not a duration of 24h or more, such as 720h", text)
	}
	return d, nil
}

// SweepGarbage deletes what was condemned KeepGarbage ago and no agent may read
// any more. It may be interrupted anywhere and run on several nodes.
func (s *Service) SweepGarbage(ctx context.Context) error {
	for {
		before := s.Clock.Now().Add(-max(s.KeepGarbage, garbageFor))
		rows, err := s.Pool.Query(ctx, sqlListGarbage, before, garbageBatch)
		if err != nil {
			return fmt.Errorf("list garbage: %w", err)
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByName[garbage])
		if err != nil {
			return fmt.Errorf("list garbage: %w", err)
		}
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(deletesAtOnce)
		for _, g := range due {
			group.Go(func() error { return s.deleteGarbage(inner, g) })
		}
		if err := group.Wait(); err != nil || len(due) < garbageBatch {
			return err
		}
	}
}

func (s *Service) deleteGarbage(ctx context.Context, g garbage) error {
	if err := s.Store.Delete(ctx, g.key()); err != nil {
		return fmt.Errorf("delete garbage of volume %s: %w", g.VolumeID, err)
	}
	if _, err := s.Pool.Exec(ctx, sqlForgetOneGarbage, g.VolumeID, string(g.Kind), g.ID); err != nil {
		return fmt.Errorf("forget garbage of volume %s: %w", g.VolumeID, err)
	}
	return nil
}
