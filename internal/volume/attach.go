package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const sqlAttachVolume = `
update volume set pod_id = @pod, epoch = epoch + 1, restored = false, seen_generation = generation
where id = @id and team_id = @team and pod_id is null and deleted_at is null and frozen_at is null
  and (not team_key or key_sealed is not null)
returning epoch, size_bytes`

// AttachTx gives a free volume of the team to a pod and raises its epoch. Of
// any number of pods that ask one gets it. The faults are ErrNotFound,
// ErrInUse, ErrFrozen and ErrLocked; after them the transaction can go on.
func (s *Service) AttachTx(ctx context.Context, tx pgx.Tx, scope team.Scope, volumeID, podID uuid.UUID, _ time.Time) (Attachment, error) {
	a := Attachment{VolumeID: volumeID, PodID: podID}
	err := tx.QueryRow(ctx, sqlAttachVolume, pgx.NamedArgs{
		"id": volumeID, "team": scope.TeamID(), "pod": podID,
	}).Scan(&a.Epoch, &a.SizeBytes)
	if err == nil {
		return a, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return Attachment{}, fmt.Errorf("attach volume %s: %w", volumeID, err)
	}
	v, err := s.FindTx(ctx, tx, scope, volumeID)
	switch {
	case err != nil:
		return Attachment{}, err
	case v.Frozen:
		return Attachment{}, ErrFrozen
	case v.Locked:
		return Attachment{}, ErrLocked
	}
	return Attachment{}, ErrInUse
}

const sqlMarkRestored = `
update volume set restored = true where id = $1 and epoch = $2 and pod_id is not null`

// MarkRestoredTx records that the pod's restore is complete: from now on its
// commits are accepted. The fault is ErrFenced.
func (s *Service) MarkRestoredTx(ctx context.Context, tx pgx.Tx, volumeID uuid.UUID, epoch int64) error {
	tag, err := tx.Exec(ctx, sqlMarkRestored, volumeID, epoch)
	if err != nil {
		return fmt.Errorf("mark volume %s restored: %w", volumeID, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrFenced
	}
	return nil
}

const sqlReleaseVolume = `
update volume set pod_id = null, epoch = epoch + 1, restored = false,
  unlocked_until = case when team_key then $3::timestamptz end
where id = $1 and pod_id = $2`

// ReleaseTx takes the volume from a pod and raises its epoch, so that nothing
// the pod still does counts. A volume with a key of its team's stays unlocked
// for UnlockedFor, so that another pod can go on. It does nothing when the pod
// does not hold it.
func (s *Service) ReleaseTx(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlReleaseVolume, volumeID, podID, now.Add(UnlockedFor)); err != nil {
		return fmt.Errorf("release volume %s: %w", volumeID, err)
	}
	return nil
}

// A state is what the calls of an agent need to know of a volume.
type state struct {
	ID               uuid.UUID
	TeamID           uuid.UUID
	Name             string
	CreatedAt        time.Time
	SizeBytes        int64
	Epoch            int64
	PodID            *uuid.UUID
	Restored         bool
	KeySealed        []byte
	PasswordSealed   []byte
	ChunkerKeySealed []byte
	RepositoryMade   bool
	HeadSnapshot     []byte
	HeadTree         []byte
	HeadSeq          int64
	HeadTimeNS       *int64 `db:"head_time_ns"`
	Generation       int64  // raised by each collection
	SeenGeneration   int64  // of the indexes that the agent has
	TeamKey          bool
	KeyFile          []byte // of a volume with a key of its team's
}

const sqlFindState = `
select id, team_id, name, created_at, size_bytes, epoch, pod_id, restored, key_sealed, password_sealed,
  chunker_key_sealed, repository_made, head_snapshot, head_tree, head_seq, head_time_ns,
  generation, seen_generation, team_key, key_file
from volume where id = $1`

const sqlLockState = `
select id, team_id, name, created_at, size_bytes, epoch, pod_id, restored, key_sealed, password_sealed,
  chunker_key_sealed, repository_made, head_snapshot, head_tree, head_seq, head_time_ns,
  generation, seen_generation, team_key, key_file
from volume where id = $1 for share`

func findState(ctx context.Context, q pg.Querier, sql string, volumeID uuid.UUID) (state, error) {
	rows, err := q.Query(ctx, sql, volumeID)
	if err != nil {
		return state{}, fmt.Errorf("read volume %s: %w", volumeID, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state])
	if errors.Is(err, pgx.ErrNoRows) {
		return state{}, ErrNotFound
	}
	if err != nil {
		return state{}, fmt.Errorf("read volume %s: %w", volumeID, err)
	}
	return v, nil
}

// findHeld reads a volume that an attachment must still hold. The fault is
// ErrFenced.
func findHeld(ctx context.Context, q pg.Querier, sql string, a Attachment) (state, error) {
	v, err := findState(ctx, q, sql, a.VolumeID)
	if errors.Is(err, ErrNotFound) || err == nil && !v.heldBy(a) {
		return state{}, ErrFenced
	}
	return v, err
}

// locked says that only the team's key opens the volume.
func (v state) locked() bool { return v.TeamKey && v.KeySealed == nil }

func (v state) heldBy(a Attachment) bool {
	return v.Epoch == a.Epoch && v.PodID != nil && *v.PodID == a.PodID
}

// prefix is where the volume's repository lies in the store.
func (v state) prefix() string { return prefixOf(v.ID) }

func prefixOf(volumeID uuid.UUID) string { return "v/" + volumeID.String() }
