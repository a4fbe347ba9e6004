package volume

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
)

// Latest names the newest version of a volume.
const Latest = "latest"

// ErrNoVersion occurs when a volume has no such version, or it is not kept any
// more.
var ErrNoVersion = fault.New(fault.NotFound, "volume_version_not_found", "There is no such version, or it is not kept any more.")

// A Version is a committed state of a volume that is kept.
type Version struct {
	Seq         int64 // its number: later versions have higher ones
	CreatedAt   time.Time
	SizeBytes   int64
	Entries     int64     // files, folders and others
	PodID       uuid.UUID // that wrote it; Nil: it was restored
	Final       bool      // the last one of its pod
	Skipped     int64     // entries that could not be read
	Unstable    int64     // files that changed while they were read
	RestoredSeq *int64    // the version whose files it has again
	RestoredBy  *uuid.UUID
	Newest      bool
	Changes     *snapshot.Changes `db:"-"` // from the version before it that is kept; nil: not known
	SnapshotID  []byte
	TreeID      []byte

	ChangesSince                           *int64 `db:"changes_since"`
	FilesAdded, FilesChanged, FilesRemoved *int64
}

const sqlListVersions = `
select s.seq, s.created_at, s.size_bytes, s.entries, s.pod_id, s.final, s.skipped, s.unstable,
  s.restored_seq, s.restored_by, s.seq = v.head_seq as newest, s.snapshot_id, s.tree_id,
  s.changes_since, s.files_added, s.files_changed, s.files_removed
from volume_snapshot s join volume v on v.id = s.volume_id
where s.volume_id = $1
order by s.seq desc`

// listVersions lists what was committed of a volume, newest first, also what
// is not kept any more.
func listVersions(ctx context.Context, q pg.Querier, volumeID uuid.UUID) ([]Version, error) {
	rows, err := q.Query(ctx, sqlListVersions, volumeID)
	if err != nil {
		return nil, fmt.Errorf("list versions of volume %s: %w", volumeID, err)
	}
	versions, err := pgx.CollectRows(rows, pgx.RowToStructByName[Version])
	if err != nil {
		return nil, fmt.Errorf("list versions of volume %s: %w", volumeID, err)
	}
	return versions, nil
}

// Versions lists the versions of a team's volume, newest first. The fault is
// ErrNotFound, also for a volume in the trash.
func (s *Service) Versions(ctx context.Context, scope team.Scope, volumeID uuid.UUID) ([]Version, error) {
	v, err := s.Find(ctx, scope, volumeID)
	if err != nil {
		return nil, err
	}
	if v.Deleted {
		return nil, ErrNotFound
	}
	return s.AllVersions(ctx, volumeID)
}

// AllVersions is Versions for the operator.
func (s *Service) AllVersions(ctx context.Context, volumeID uuid.UUID) ([]Version, error) {
	v, err := findState(ctx, s.Pool, sqlFindState, volumeID)
	if err != nil {
		return nil, err
	}
	versions, err := s.keptVersions(ctx, s.Pool, volumeID)
	if err != nil || len(versions) < 2 {
		return versions, err
	}
	s.countChanges(ctx, v, versions)
	return versions, nil
}

func (s *Service) keptVersions(ctx context.Context, q pg.Querier, volumeID uuid.UUID) ([]Version, error) {
	all, err := listVersions(ctx, q, volumeID)
	if err != nil {
		return nil, err
	}
	kept, _ := s.Retention.keep(all, s.Clock.Now())
	return kept, nil
}

// pick returns the version of that number, or the newest one.
func pick(versions []Version, number string) (Version, error) {
	seq, err := strconv.ParseInt(number, 10, 64)
	for _, v := range versions {
		if number == Latest && v.Newest || err == nil && v.Seq == seq && strconv.FormatInt(seq, 10) == number {
			return v, nil
		}
	}
	return Version{}, ErrNoVersion
}

// Bounds of counting changes while somebody waits for a list.
const (
	countFor     = time.Second // wall time
	countFolders = 20_000      // that differ
)

// countChanges fills in how each version differs from the one before it. What
// is not counted in time, or cannot be, as in a locked volume, stays unknown until
// the next look.
func (s *Service) countChanges(ctx context.Context, v state, versions []Version) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	for i := range versions[:len(versions)-1] {
		to, from := &versions[i], versions[i+1]
		if to.ChangesSince == nil || *to.ChangesSince != from.Seq {
			if ctx.Err() != nil || v.locked() {
				continue
			}
			if err := s.count(ctx, v, to, from); err != nil {
				if ctx.Err() == nil {
					s.Logger.WarnContext(ctx, "the changes of a version are not counted", "volume", v.ID, "seq", to.Seq, "err", err)
				}
				continue
			}
		}
		if to.FilesAdded != nil {
			to.Changes = &snapshot.Changes{Added: *to.FilesAdded, Changed: *to.FilesChanged, Removed: *to.FilesRemoved}
		}
	}
}

const sqlKeepChanges = `
update volume_snapshot set changes_since = $3, files_added = $4, files_changed = $5, files_removed = $6
where volume_id = $1 and seq = $2`

// count compares two versions, and keeps what it found.
func (s *Service) count(ctx context.Context, v state, to *Version, from Version) error {
	views := make([]*snapshot.View, 2)
	for i, one := range []Version{from, *to} {
		view, err := s.view(ctx, v, one)
		if err != nil {
			return err
		}
		views[i] = view
	}
	to.ChangesSince, to.FilesAdded, to.FilesChanged, to.FilesRemoved = &from.Seq, nil, nil, nil
	c, err := snapshot.Compare(ctx, views[0], views[1], countFolders)
	if err == nil {
		to.FilesAdded, to.FilesChanged, to.FilesRemoved = &c.Added, &c.Changed, &c.Removed
	} else if !errors.Is(err, snapshot.ErrTooLarge) {
		return err
	}
	_, err = s.Pool.Exec(ctx, sqlKeepChanges, v.ID, to.Seq, from.Seq, to.FilesAdded, to.FilesChanged, to.FilesRemoved)
	return err
}
