package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// Delete asks for the end of a pod: the meter stops now, and the last sync
// runs if the restore had finished. A lost pod that waits to be started again
// stays ended. Asking again is no error. The faults are ErrNotFound, ErrNotYours
// and ErrSwitchingOff.
func (s *Service) Delete(ctx context.Context, scope team.Scope, podID uuid.UUID) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		p, err := lockPod(ctx, tx, podID)
		if err != nil {
			return err
		}
		if p.TeamID != scope.TeamID() {
			return ErrNotFound
		}
		if !scope.IsAdmin() && p.CreatedBy != scope.UserID() {
			return ErrNotYours
		}
		switch p.Status {
		case Deleting:
			return nil
		case Deleted:
			if p.RelaunchUntilWallAt == nil {
				return nil
			}
			p.AutoRelaunch = false
			return s.notAgainTx(ctx, tx, p, "")
		case SwitchingOff:
			return ErrSwitchingOff
		case Pending, Starting, Mounting, Ready:
		}
		now := s.Clock.Now()
		p.DeleteRequestedAt = &now
		p.EndedByUserEarly = p.ReadyAt == nil
		if err := s.priceFinalTx(ctx, tx, p, now); err != nil {
			return err
		}
		return s.endTx(ctx, tx, p, UserEnd, ReasonUser, "", now)
	})
	if err != nil {
		return err
	}
	fail.Point("pod.delete.committed")
	return nil
}

// endTx starts the end of a pod: it moves to deleting or switching_off and its
// meter stops at the given instant. Without a finished restore there is
// nothing to sync, and the pod ends at once. The pod's row is locked; the
// volume and the wallet come after it.
func (s *Service) endTx(ctx context.Context, tx pgx.Tx, p *Pod, e Event, reason, detail string, at time.Time) error {
	status, err := p.Status.After(e)
	if err != nil {
		return err
	}
	wall := s.Clock.Wall()
	p.Status, p.StatusReason, p.StatusDetail = status, reason, detail
	p.StatusWallAt, p.ProgressWallAt, p.Progress = wall, wall, 0
	p.NextWallAt = &wall
	if p.ReadyAt != nil && p.StoppedAt == nil {
		p.StoppedAt = &at
	}
	if p.RestoredWallAt == nil {
		return s.finishTx(ctx, tx, p)
	}
	if err := s.stopMeterTx(ctx, tx, p); err != nil {
		return err
	}
	if err := savePod(ctx, tx, p); err != nil {
		return err
	}
	return s.nudgeTx(ctx, tx, p.ID)
}

// stopMeterTx stops the pod's meter at StoppedAt, and sets StoppedAt to where
// it really ended: an empty wallet may have stopped it before.
func (s *Service) stopMeterTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	if p.ReadyAt == nil {
		return nil
	}
	if err := s.Wallet.StopTx(ctx, tx, p.ID, *p.StoppedAt); err != nil {
		return err
	}
	ends, err := s.Wallet.MeteredUntil(ctx, tx, []uuid.UUID{p.ID})
	if err != nil {
		return err
	}
	if end, ok := ends[p.ID]; ok {
		p.StoppedAt = &end
	}
	return nil
}

// finishTx ends a pod for good: the volume is free, the port goes back, and the
// instance's own row lives on until its provider confirms that it is gone.
func (s *Service) finishTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	status, err := p.Status.After(Finished)
	if err != nil {
		return err
	}
	now, wall := s.Clock.Now(), s.Clock.Wall()
	p.Status, p.StatusWallAt = status, wall
	p.EndedAt, p.EndedWallAt, p.NextWallAt = &now, &wall, nil
	p.restFinal(s.movedAt(p), s.Limits)
	if err := s.dropInstancesTx(ctx, tx, p.ID, "the pod ended"); err != nil {
		return err
	}
	if err := freePort(ctx, tx, p.ID, wall); err != nil {
		return err
	}
	if err := s.Volumes.ReleaseTx(ctx, tx, p.VolumeID, p.ID, now); err != nil {
		return err
	}
	if err := s.stopMeterTx(ctx, tx, p); err != nil {
		return err
	}
	if err := savePod(ctx, tx, p); err != nil {
		return err
	}
	return s.nudgeTx(ctx, tx, p.ID)
}

const sqlLockTeamPods = `
select id from pod where team_id = $1 and status <> 'deleted' order by id for update`

const sqlTeamPodsToStop = `
select id from pod
 where team_id = $1 and created_at <= $2 and status in ('pending', 'starting', 'mounting', 'ready')
 order by id`

const sqlCountLive = `select count(*) from pod where team_id = $1 and status <> 'deleted'`

// BlockEndTx keeps a team that has pods from being deleted: also those whose
// last sync still runs. The team is locked. The fault is ErrRunning.
func (s *Service) BlockEndTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	var live int
	if err := tx.QueryRow(ctx, sqlCountLive, teamID).Scan(&live); err != nil {
		return fmt.Errorf("count the pods of team %s: %w", teamID, err)
	}
	if live > 0 {
		return ErrRunning.With("Delete the %d running pods first.", live)
	}
	return nil
}

// LockTeamTx locks the team's live pods in the order of their ids.
func (s *Service) LockTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlLockTeamPods, teamID)
	return err
}

// SwitchOffTeamTx ends every running pod of a team because the platform asks:
// its wallet is empty or its limit reached. Their meters end at that instant;
// pods that were made after it stay.
func (s *Service) SwitchOffTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time, reason string) error {
	rows, _ := tx.Query(ctx, sqlTeamPodsToStop, teamID, at)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	for _, podID := range ids {
		p, err := lockPod(ctx, tx, podID)
		if err != nil {
			return err
		}
		if err := s.endTx(ctx, tx, p, Stop, reason, stopDetail[reason], at); err != nil {
			return err
		}
	}
	return nil
}

// stopDetail says to the user why the platform ended a pod.
var stopDetail = map[string]string{
	ReasonBalance:    "The wallet is empty. Add funds to start a new pod; the volume is kept.",
	ReasonSpendLimit: "The month's spend limit is reached. The volume is kept.",
}
