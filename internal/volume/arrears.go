package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// LockTeamTx locks a team's volumes that are not deleted, by id, before the
// wallet is locked, and returns how many hold data.
func (s *Service) LockTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (int, error) {
	volumes, err := collect(ctx, tx, sqlLockVolumesOfTeam, teamID)
	if err != nil {
		return 0, err
	}
	held := 0
	for _, v := range volumes {
		if v.HeadSeq > 0 || v.CurrentlyUsed {
			held++
		}
	}
	return held, nil
}

// sqlLockUnpaid finds what TrashTeamTx put into the trash for the platform.
const sqlLockUnpaid = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where team_id = $1 and deleted_by = $2 and purge_at > $3 order by id for update`

// RedeemTx ends FreezeTx and TrashTeamTx: the storage was paid, at now. Volumes
// whose time in the trash was not over then come out of it, and the meters run
// again from that instant on.
func (s *Service) RedeemTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	if err := s.ThawTx(ctx, tx, teamID, now); err != nil {
		return err
	}
	unpaid, err := collect(ctx, tx, sqlLockUnpaid, teamID, uuid.Nil, now)
	if err != nil {
		return err
	}
	for _, v := range unpaid {
		tag, err := tx.Exec(ctx, sqlRestoreVolume, pgx.NamedArgs{"id": v.ID, "now": now, "metered": v.Rate() > 0})
		if err != nil {
			return fmt.Errorf("take volume %s out of the trash: %w", v.ID, err)
		}
		if tag.RowsAffected() == 0 || v.Rate() == 0 { // it is being purged, or costs nothing
			continue
		}
		if err := s.startTx(ctx, tx, v.TeamID, v.ID, v.Name, v.Rate(), now); err != nil {
			return err
		}
	}
	return nil
}
