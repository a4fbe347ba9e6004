package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// How long the trash keeps a volume, in business time.
const (
	TrashFor     = 7 * 24 * time.Hour  // that a user deleted
	TeamTrashFor = 30 * 24 * time.Hour // of a deleted team
)

const sqlLockVolume = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where id = $1 and team_id = $2 for update`

const sqlTrashVolume = `
update volume set deleted_at = @now, deleted_by = @user, purge_at = @purge, metered = false
where id = @id`

// Delete puts a free volume into the trash for seven days and ends its meter.
// The faults are ErrNotFound, ErrNotYours, ErrInUse and those of a scope that
// may not use the team.
func (s *Service) Delete(ctx context.Context, scope team.Scope, volumeID uuid.UUID) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		v, err := find(ctx, tx, sqlLockVolume, scope, volumeID)
		if err != nil {
			return err
		}
		if v.Deleted {
			return ErrNotFound
		}
		if err := mayDispose(scope, v); err != nil {
			return err
		}
		if v.CurrentlyUsed {
			return ErrInUse
		}
		now := s.Clock.Now()
		return s.trashTx(ctx, tx, v.ID, scope.UserID(), now, now.Add(TrashFor))
	})
}

// mayDispose holds the rule that a volume is its creator's and the admins'.
func mayDispose(scope team.Scope, v Volume) error {
	if _, err := scope.Require(team.Use); err != nil {
		return err
	}
	if !scope.IsAdmin() && v.CreatedBy != scope.UserID() {
		return ErrNotYours
	}
	return nil
}

func (s *Service) trashTx(ctx context.Context, tx pgx.Tx, volumeID, by uuid.UUID, now, purge time.Time) error {
	_, err := tx.Exec(ctx, sqlTrashVolume, pgx.NamedArgs{"id": volumeID, "user": by, "now": now, "purge": purge})
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", volumeID, err)
	}
	return s.Wallet.StopTx(ctx, tx, volumeID, now)
}

const sqlRestoreVolume = `
update volume set deleted_at = null, deleted_by = null, purge_at = null, frozen_at = null, metered = @metered
where id = @id and purge_at > @now`

// Restore takes a volume out of the trash; the time it lay there is charged at
// its rate. The faults are ErrNotFound (also when it is not in the trash),
// ErrNotYours, ErrPlanLimit, those of wallet.RequireTx and those of a scope
// that may not use the team.
func (s *Service) Restore(ctx context.Context, scope team.Scope, volumeID uuid.UUID, once idem.Request) (Volume, error) {
	var v Volume
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		v, err = idem.RunTx(ctx, tx, once, func() (Volume, error) { return s.restoreTx(ctx, tx, scope, volumeID) })
		return err
	})
	return v, err
}

func (s *Service) restoreTx(ctx context.Context, tx pgx.Tx, scope team.Scope, volumeID uuid.UUID) (Volume, error) {
	v, err := find(ctx, tx, sqlLockVolume, scope, volumeID)
	if err != nil {
		return Volume{}, err
	}
	if !v.Deleted {
		return Volume{}, ErrNotFound
	}
	if err := mayDispose(scope, v); err != nil {
		return Volume{}, err
	}
	if err := checkPlanLimit(ctx, tx, scope); err != nil {
		return Volume{}, err
	}
	now := s.Clock.Now()
	tag, err := tx.Exec(ctx, sqlRestoreVolume, pgx.NamedArgs{"id": v.ID, "now": now, "metered": v.Rate() > 0})
	if err != nil {
		return Volume{}, fmt.Errorf("restore volume %s: %w", v.ID, err)
	}
	if tag.RowsAffected() == 0 { // its time is over, it is being purged
		return Volume{}, ErrNotFound
	}
	if err := s.chargeTrash(ctx, tx, v, now); err != nil {
		return Volume{}, err
	}
	return find(ctx, tx, sqlFindVolume, scope, v.ID)
}

// chargeTrash starts the meter again and charges the time since the volume was
// deleted.
func (s *Service) chargeTrash(ctx context.Context, tx pgx.Tx, v Volume, now time.Time) error {
	if v.Rate() == 0 {
		return nil
	}
	cost := money.Cost(v.Rate(), v.DeletedAt.UnixMicro(), now.UnixMicro())
	if err := s.Wallet.RequireTx(ctx, tx, v.TeamID, cost, now); err != nil {
		return err
	}
	return s.Wallet.ResumeTx(ctx, tx, meterOf(v.TeamID, v.ID, v.Name, v.Rate(), *v.DeletedAt), now)
}

func (s *Service) startTx(ctx context.Context, tx pgx.Tx, teamID, volumeID uuid.UUID, name string, rate money.Rate, at time.Time) error {
	return s.Wallet.StartTx(ctx, tx, meterOf(teamID, volumeID, name, rate, at))
}

func meterOf(teamID, volumeID uuid.UUID, name string, rate money.Rate, at time.Time) wallet.Start {
	return wallet.Start{
		TeamID: teamID, ResourceID: volumeID, Kind: wallet.VolumeStorage, Rate: rate, At: at,
		Description: "Volume " + name,
	}
}

const sqlLockVolumesOfTeam = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where team_id = $1 and deleted_at is null order by id for update`

const sqlHandOver = `
update volume set team_id = $2 where team_id = $1 and deleted_at is not null and purged_at is null`

// EndTeamTx puts every volume of a team that is being deleted into the trash
// of the personal team of who does it, for 30 days. The fault is ErrInUse.
func (s *Service) EndTeamTx(ctx context.Context, tx pgx.Tx, teamID, personal, by uuid.UUID, now time.Time) error {
	if err := s.TrashTeamTx(ctx, tx, teamID, by, now, now.Add(TeamTrashFor)); err != nil {
		return err
	}
	if personal == uuid.Nil {
		return nil
	}
	if _, err := tx.Exec(ctx, sqlHandOver, teamID, personal); err != nil {
		return fmt.Errorf("hand over the trash of team %s: %w", teamID, err)
	}
	return nil
}

// TrashTeamTx puts every volume of a team into the trash until an instant:
// when frozen storage was not paid for too long. by is Nil when the platform
// does it. The fault is ErrInUse.
func (s *Service) TrashTeamTx(ctx context.Context, tx pgx.Tx, teamID, by uuid.UUID, now, purge time.Time) error {
	volumes, err := collect(ctx, tx, sqlLockVolumesOfTeam, teamID)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if v.CurrentlyUsed {
			return ErrInUse
		}
		if err := s.trashTx(ctx, tx, v.ID, by, now, purge); err != nil {
			return err
		}
	}
	return nil
}

const sqlFreezeVolume = `update volume set frozen_at = $2, metered = false where id = $1`

// FreezeTx keeps the team's volumes without charge and lets nobody attach
// them, because their storage is not paid. Frozen ones stay as they are; one
// whose last sync still runs takes it, uncharged.
func (s *Service) FreezeTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	volumes, err := collect(ctx, tx, sqlLockVolumesOfTeam, teamID)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if v.Frozen {
			continue
		}
		if _, err := tx.Exec(ctx, sqlFreezeVolume, v.ID, now); err != nil {
			return fmt.Errorf("freeze volume %s: %w", v.ID, err)
		}
		if err := s.Wallet.StopTx(ctx, tx, v.ID, now); err != nil {
			return err
		}
	}
	return nil
}

const sqlThawVolume = `update volume set frozen_at = null, metered = $2 where id = $1`

// ThawTx ends FreezeTx: a payment came, and the meters run again from now on.
// Those that run already are left alone. A volume need not be frozen: the
// wallet ends its meter on day 7, whether or not FreezeTx came to it.
func (s *Service) ThawTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	volumes, err := collect(ctx, tx, sqlLockVolumesOfTeam, teamID)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if _, err := tx.Exec(ctx, sqlThawVolume, v.ID, v.Rate() > 0); err != nil {
			return fmt.Errorf("thaw volume %s: %w", v.ID, err)
		}
		if v.Rate() == 0 {
			continue
		}
		if err := s.startTx(ctx, tx, v.TeamID, v.ID, v.Name, v.Rate(), now); err != nil {
			return err
		}
	}
	return nil
}
