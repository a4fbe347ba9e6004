package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
)

// errRestoreInUse is ErrInUse with what to do about it.
var errRestoreInUse = ErrInUse.With("A pod is using this volume. Delete the pod, then restore the version.")

// RestoreVersion makes the files of a version, named by its number, those of
// the newest one again: as a commit of its own, so that nothing is lost and
// the one before can be restored in turn. Where they are the newest already
// nothing is done. It returns the newest version. The faults are ErrNotFound,
// also for a volume in the trash, ErrNotYours, ErrNoVersion, ErrInUse,
// ErrFrozen, ErrLocked and those of a scope that may not use the team.
func (s *Service) RestoreVersion(ctx context.Context, scope team.Scope, volumeID uuid.UUID, number string, once idem.Request) (Version, error) {
	var out Version
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		out, err = idem.RunTx(ctx, tx, once, func() (Version, error) {
			v, err := find(ctx, tx, sqlLockVolume, scope, volumeID)
			if err != nil {
				return Version{}, err
			}
			if v.Deleted {
				return Version{}, ErrNotFound
			}
			if err := mayDispose(scope, v); err != nil {
				return Version{}, err
			}
			return s.restoreVersionTx(ctx, tx, v, number, scope.UserID())
		})
		return err
	})
	if err != nil {
		return Version{}, err
	}
	s.publishRestored(ctx, volumeID)
	return out, nil
}

const sqlLockAnyVolume = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where id = $1 for update`

// RestoreAnyVersion is RestoreVersion for the operator.
func (s *Service) RestoreAnyVersion(ctx context.Context, volumeID uuid.UUID, number string) (Version, error) {
	var out Version
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		volumes, err := collect(ctx, tx, sqlLockAnyVolume, volumeID)
		if err != nil {
			return err
		}
		if len(volumes) == 0 || volumes[0].Deleted {
			return ErrNotFound
		}
		out, err = s.restoreVersionTx(ctx, tx, volumes[0], number, uuid.Nil)
		return err
	})
	if err != nil {
		return Version{}, err
	}
	s.publishRestored(ctx, volumeID)
	return out, nil
}

const sqlRestoreHead = `
update volume set head_snapshot = @snapshot, head_tree = @tree, head_seq = head_seq + 1, head_time_ns = @time,
  size_bytes = @size, entries = @entries, last_commit_at = @now, epoch = epoch + 1, metered = metered or @rated
where id = @volume and epoch = @epoch and pod_id is null and head_snapshot = @parent
returning head_seq, epoch`

const sqlInsertRestored = `
insert into volume_snapshot (volume_id, seq, snapshot_id, tree_id, parent_id, time_ns, epoch, pod_id,
  final, size_bytes, entries, skipped, unstable, created_at, restored_seq, restored_by, stored)
values (@volume, @seq, @snapshot, @tree, @parent, @time, @epoch, @pod,
  false, @size, @entries, @skipped, @unstable, @now, @restored, @by, @stored)`

// restoreVersionTx is the commit. The volume is locked: nothing attaches it, and
// no version of it is dropped.
func (s *Service) restoreVersionTx(ctx context.Context, tx pgx.Tx, v Volume, number string, by uuid.UUID) (Version, error) {
	versions, err := s.keptVersions(ctx, tx, v.ID)
	if err != nil {
		return Version{}, err
	}
	old, err := pick(versions, number)
	if err == nil {
		err = v.mayChange()
	}
	if err != nil {
		return Version{}, err
	}
	head, err := findState(ctx, tx, sqlFindState, v.ID)
	if err != nil {
		return Version{}, err
	}
	if bytes.Equal(old.TreeID, head.HeadTree) {
		return pick(versions, Latest)
	}
	k, err := s.openKeys(head)
	if err != nil {
		return Version{}, err
	}
	at := time.Unix(0, max(s.Clock.Wall().UnixNano(), *head.HeadTimeNS+1)).UTC()
	stored, id, err := snapshot.EncodeSnapshot(k.master, snapshot.Snapshot{
		Time: at, Parent: snapshot.ID(head.HeadSnapshot), Tree: snapshot.ID(old.TreeID),
		Paths: []string{"/workspace"}, Hostname: "homeport", Username: "root",
	})
	if err != nil {
		return Version{}, fmt.Errorf("encode a snapshot of volume %s: %w", v.ID, err)
	}
	now := s.Clock.Now()
	args := pgx.NamedArgs{
		"volume": v.ID, "epoch": head.Epoch, "pod": uuid.Nil, "snapshot": id[:], "tree": old.TreeID, "parent": head.HeadSnapshot,
		"time": at.UnixNano(), "size": old.SizeBytes, "entries": old.Entries, "skipped": old.Skipped, "unstable": old.Unstable,
		"now": now, "rated": RateOf(old.SizeBytes) > 0, "restored": old.Seq, "by": by, "stored": stored,
	}
	var seq, epoch int64
	err = tx.QueryRow(ctx, sqlRestoreHead, args).Scan(&seq, &epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Version{}, fmt.Errorf("restore volume %s: the head of a locked volume moved", v.ID)
	}
	if err != nil {
		return Version{}, fmt.Errorf("restore volume %s: %w", v.ID, err)
	}
	args["seq"], args["epoch"] = seq, epoch
	if _, err := tx.Exec(ctx, sqlInsertRestored, args); err != nil {
		return Version{}, fmt.Errorf("record a restored version of volume %s: %w", v.ID, err)
	}
	if err := s.rerateTx(ctx, tx, head, old.SizeBytes, now); err != nil {
		return Version{}, err
	}
	return Version{
		Seq: seq, CreatedAt: now, SizeBytes: old.SizeBytes, Entries: old.Entries, Skipped: old.Skipped, Unstable: old.Unstable,
		RestoredSeq: &old.Seq, RestoredBy: &by, Newest: true, SnapshotID: id[:], TreeID: old.TreeID,
	}, nil
}

// mayChange holds that a volume's files can be made others without a pod.
func (v Volume) mayChange() error {
	switch {
	case v.Frozen:
		return ErrFrozen
	case v.CurrentlyUsed:
		return errRestoreInUse
	case v.Locked:
		return ErrLocked
	}
	return nil
}

const sqlListRestored = `
select volume_id, seq, snapshot_id, tree_id, time_ns, pod_id, final, size_bytes, published_at, stored
from volume_snapshot where volume_id = $1 and published_at is null and stored is not null`

// publishRestored publishes what was restored of a volume. What fails is left
// to PublishDue.
func (s *Service) publishRestored(ctx context.Context, volumeID uuid.UUID) {
	rows, err := s.Pool.Query(ctx, sqlListRestored, volumeID)
	if err == nil {
		var due []committed
		due, err = pgx.CollectRows(rows, pgx.RowToStructByName[committed])
		for _, c := range due {
			err = errors.Join(err, s.publish(ctx, c, c.Stored))
		}
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "a version is restored and not published yet", "volume", volumeID, "err", err)
	}
}
