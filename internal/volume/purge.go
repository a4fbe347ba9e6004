package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

const sqlListPurgeable = `
select id from volume where purge_at <= $1 and purged_at is null order by purge_at limit $2`

// purgeBatch is how many volumes are purged before the next are looked for.
const purgeBatch = 20

// PurgeDue removes for good the data of volumes whose time in the trash is
// over. Each is claimed first: nothing takes it out of the trash from then on,
// so nobody gets back half of one. It may be interrupted and called again, and
// run on several nodes. It does nothing while the database is a restored one.
func (s *Service) PurgeDue(ctx context.Context) error {
	if s.RestoredAt != nil {
		if since, err := s.RestoredAt(ctx); err != nil || since != nil {
			return err
		}
	}
	for {
		more, err := s.purgeSome(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// purgeSome purges a batch, and says whether there may be more.
func (s *Service) purgeSome(ctx context.Context) (bool, error) {
	rows, err := s.Pool.Query(ctx, sqlListPurgeable, s.Clock.Now(), purgeBatch)
	if err != nil {
		return false, fmt.Errorf("list what to purge: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return false, fmt.Errorf("list what to purge: %w", err)
	}
	var errs []error
	for _, volumeID := range due {
		if err := s.purge(ctx, volumeID); err != nil {
			errs = append(errs, fmt.Errorf("purge volume %s: %w", volumeID, err))
		}
	}
	return len(due) == purgeBatch, errors.Join(errs...)
}

// sqlClaimPurge moves the end of a volume's time in the trash before any
// instant that a restore, on whatever node, may come with.
const sqlClaimPurge = `
update volume set purge_at = 'epoch'
where id = $1 and deleted_at is not null and purge_at <= $2 and purged_at is null`

func (s *Service) purge(ctx context.Context, volumeID uuid.UUID) error {
	tag, err := s.Pool.Exec(ctx, sqlClaimPurge, volumeID, s.Clock.Now())
	if err != nil || tag.RowsAffected() == 0 { // it was restored, or is purged
		return err
	}
	for _, prefix := range []string{prefixOf(volumeID) + "/", stagingPrefix + volumeID.String() + "/"} {
		if err := s.Store.Purge(ctx, prefix); err != nil {
			return err
		}
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p := Purged{VolumeID: volumeID, At: s.Clock.Now()}
		err := tx.QueryRow(ctx, sqlMarkPurged, volumeID, p.At).Scan(&p.TeamID, &p.SizeBytes, &p.DeletedAt, &p.DeletedBy)
		if errors.Is(err, pgx.ErrNoRows) { // another node was faster
			return nil
		}
		if err != nil {
			return err
		}
		for _, sql := range []string{sqlForgetObjects, sqlForgetGarbage, sqlForgetDamage, sqlForgetSnapshots} {
			if _, err := tx.Exec(ctx, sql, volumeID); err != nil {
				return err
			}
		}
		if s.OnPurgeTx == nil {
			return nil
		}
		return s.OnPurgeTx(ctx, tx, p)
	})
}

const sqlForgetObjects = `delete from volume_pack where volume_id = $1`

const sqlForgetGarbage = `delete from volume_garbage where volume_id = $1`

const sqlForgetDamage = `delete from volume_damage where volume_id = $1`

const sqlForgetSnapshots = `delete from volume_snapshot where volume_id = $1`

const sqlMarkPurged = `
update volume set purged_at = $2, key_sealed = null, password_sealed = null, chunker_key_sealed = null,
  key_file = null, unlocked_until = null, repository_made = false, head_snapshot = null, head_tree = null, head_seq = 0, head_time_ns = null
where id = $1 and purged_at is null
returning team_id, size_bytes, deleted_at, deleted_by`

// A Purged is the record of a volume whose data is gone.
type Purged struct {
	VolumeID  uuid.UUID
	TeamID    uuid.UUID
	SizeBytes int64
	DeletedAt time.Time
	DeletedBy uuid.UUID // Nil: the platform, for storage that was not paid
	At        time.Time
}
