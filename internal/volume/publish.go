package volume

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/snapshot"
)

// stagingPrefix is where snapshot objects wait for their commit: outside the
// repository, where a public tool would take them for committed.
const stagingPrefix = "staging/"

func stagingKey(volumeID uuid.UUID, snapshotID snapshot.ID) string {
	return stagingPrefix + volumeID.String() + "/" + snapshotID.String()
}

// stage keeps the snapshot object where PublishDue finds it, should this node
// not live to publish it.
func (s *Service) stage(ctx context.Context, volumeID uuid.UUID, p proposal) error {
	err := s.Store.Put(ctx, stagingKey(volumeID, p.id), p.stored)
	if err != nil && !errors.Is(err, blob.ErrExists) {
		return fmt.Errorf("stage a snapshot of volume %s: %w", volumeID, err)
	}
	return nil
}

const sqlMarkPublished = `
update volume_snapshot set published_at = $3, stored = null where volume_id = $1 and seq = $2 and published_at is null`

// publish puts a committed snapshot into the repository. Several may try.
func (s *Service) publish(ctx context.Context, c committed, stored []byte) error {
	id := snapshot.ID(c.SnapshotID)
	err := s.Store.Put(ctx, snapshot.KeyOf(prefixOf(c.VolumeID), id), stored)
	if err != nil && !errors.Is(err, blob.ErrExists) {
		return fmt.Errorf("publish snapshot %d of volume %s: %w", c.Seq, c.VolumeID, err)
	}
	if _, err := s.Pool.Exec(ctx, sqlMarkPublished, c.VolumeID, c.Seq, s.Clock.Now()); err != nil {
		return fmt.Errorf("mark snapshot %d of volume %s published: %w", c.Seq, c.VolumeID, err)
	}
	if err := s.Store.Delete(ctx, stagingKey(c.VolumeID, id)); err != nil {
		return fmt.Errorf("clear the staged snapshot %d of volume %s: %w", c.Seq, c.VolumeID, err)
	}
	return nil
}

const sqlListUnpublished = `
select volume_id, seq, snapshot_id, tree_id, time_ns, pod_id, final, size_bytes, published_at, stored
from volume_snapshot where published_at is null
order by created_at limit 100`

// PublishDue publishes what was committed by a node that did not live to
// publish it, oldest first, and tells OnFinal of final snapshots. What fails
// is tried again by the next sweep; the error joins what went wrong.
func (s *Service) PublishDue(ctx context.Context) error {
	rows, err := s.Pool.Query(ctx, sqlListUnpublished)
	if err != nil {
		return fmt.Errorf("list unpublished snapshots: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByName[committed])
	if err != nil {
		return fmt.Errorf("list unpublished snapshots: %w", err)
	}
	var errs []error
	for _, c := range due {
		errs = append(errs, s.publishStaged(ctx, c))
	}
	return errors.Join(errs...)
}

func (s *Service) publishStaged(ctx context.Context, c committed) error {
	if c.Stored != nil { // restored: no pod is behind it
		return s.publish(ctx, c, c.Stored)
	}
	stored, err := s.read(ctx, stagingKey(c.VolumeID, snapshot.ID(c.SnapshotID)))
	if errors.Is(err, blob.ErrNotFound) { // another one published it since
		stored, err = s.read(ctx, snapshot.KeyOf(prefixOf(c.VolumeID), snapshot.ID(c.SnapshotID)))
	}
	if err != nil {
		return fmt.Errorf("read the staged snapshot %d of volume %s: %w", c.Seq, c.VolumeID, err)
	}
	if sha256.Sum256(stored) != [32]byte(c.SnapshotID) {
		return fmt.Errorf("the staged snapshot %d of volume %s: %w", c.Seq, c.VolumeID, blob.ErrChecksum)
	}
	if err := s.publish(ctx, c, stored); err != nil {
		return err
	}
	if !c.Final || s.OnFinal == nil {
		return nil
	}
	return s.OnFinal(ctx, c.VolumeID, c.PodID)
}

func (s *Service) read(ctx context.Context, key string) ([]byte, error) {
	r, err := s.Store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, agentapi.MaxSnapshot+1))
}

const sqlFindFinal = `
select published_at is not null from volume_snapshot
where volume_id = $1 and pod_id = $2 and final
order by seq desc limit 1`

// FinalState says whether a pod's final snapshot is committed, and whether it
// is published: only then the volume may be released as synced.
func (s *Service) FinalState(ctx context.Context, volumeID, podID uuid.UUID) (committed, published bool, err error) {
	err = s.Pool.QueryRow(ctx, sqlFindFinal, volumeID, podID).Scan(&published)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("find the final snapshot of pod %s: %w", podID, err)
	}
	return true, published, nil
}

const sqlIsIdle = `
select v.pod_id is null and not exists (
  select from volume_snapshot s where s.volume_id = v.id and s.snapshot_id = $2 and s.published_at is null)
from volume v where v.id = $1`

// SweepStaging removes staged snapshots of volumes that no pod holds: they
// were never committed and never will be.
func (s *Service) SweepStaging(ctx context.Context) error {
	var stale []string
	err := s.Store.List(ctx, stagingPrefix, func(info blob.Info) error {
		idle, err := s.isIdle(ctx, strings.TrimPrefix(info.Key, stagingPrefix))
		if err == nil && idle {
			stale = append(stale, info.Key)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list staged snapshots: %w", err)
	}
	for _, key := range stale {
		if err := s.Store.Delete(ctx, key); err != nil {
			return fmt.Errorf("clear a staged snapshot: %w", err)
		}
	}
	return nil
}

func (s *Service) isIdle(ctx context.Context, name string) (bool, error) {
	volume, snap, _ := strings.Cut(name, "/")
	volumeID, ok := id.Parse(volume)
	snapshotID, err := snapshot.ParseID(snap)
	if !ok || err != nil {
		return false, nil //nolint:nilerr // not ours
	}
	var idle bool
	err = s.Pool.QueryRow(ctx, sqlIsIdle, volumeID, snapshotID[:]).Scan(&idle)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	return idle, err
}
