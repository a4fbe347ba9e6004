package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

const sqlCountFinals = `
select count(*) from pod
 where team_id = $1 and id <> $2 and delete_requested_at >= $3 and ready_at is not null`

// priceFinalTx says from when on the last sync of a pod that a user ends is
// charged: after its free minutes, or at once when the team had its free ones
// of this UTC day (server rule 33). The team is locked.
func (s *Service) priceFinalTx(ctx context.Context, tx pgx.Tx, p *Pod, now time.Time) error {
	if p.ReadyAt == nil {
		return nil // there is nothing to sync
	}
	var finals int
	if err := tx.QueryRow(ctx, sqlCountFinals, p.TeamID, p.ID, now.Truncate(24*time.Hour)).Scan(&finals); err != nil {
		return fmt.Errorf("count the last syncs of team %s: %w", p.TeamID, err)
	}
	from := now
	if finals < s.Limits.FreeFinals {
		from = now.Add(s.Limits.FinalFree)
	}
	p.FinalPaidFromAt = &from
	return nil
}

// A turn is what becomes of the meter of a last sync.
type turn int

const (
	turnNone turn = iota
	turnOn
	turnOff
)

// finalTurn is the rule: the meter runs while bytes move, from when the sync is
// charged on, for at most an hour, and ends where they moved last. It errs on
// the user's side. moved is when they moved last, in business time as now.
func (p *Pod) finalTurn(now, moved time.Time, l Limits) (turn, time.Time) {
	if p.Status != Deleting || p.FinalPaidFromAt == nil || p.FinalWallAt != nil {
		return turnNone, now
	}
	until := p.FinalPaidFromAt.Add(l.FinalPaid)
	over, still := !now.Before(until), now.Sub(moved) >= stallLooks
	switch {
	case p.StoppedAt == nil && still && moved.Before(until):
		return turnOff, moved
	case p.StoppedAt == nil && over:
		return turnOff, until
	case p.StoppedAt == nil || over || still || moved.Before(*p.FinalPaidFromAt) || !moved.After(*p.StoppedAt):
		return turnNone, now
	}
	return turnOn, moved
}

// movedAt is the business time at which bytes of a pod moved last.
func (s *Service) movedAt(p *Pod) time.Time {
	if p.MovedWallAt == nil {
		return time.Time{}
	}
	return p.MovedWallAt.Add(s.Clock.Offset())
}

// meterFinal starts or ends the meter of a pod's last sync where that is due.
func (s *Service) meterFinal(ctx context.Context, p *Pod) error {
	if p.Status != Deleting || p.FinalPaidFromAt == nil || p.FinalWallAt != nil {
		return nil
	}
	if next, _ := p.finalTurn(s.Clock.Now(), s.movedAt(p), s.Limits); next == turnNone && p.StoppedAt != nil {
		return nil
	}
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		locked, err := lockPod(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := s.turnFinalTx(ctx, tx, locked); err != nil {
			return err
		}
		*p = *locked
		return nil
	})
	if err != nil {
		return fmt.Errorf("meter the last sync of pod %s: %w", p.ID, err)
	}
	return nil
}

func (s *Service) turnFinalTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	next, at := p.finalTurn(s.Clock.Now(), s.movedAt(p), s.Limits)
	switch next {
	case turnOn:
		p.StoppedAt, p.StatusDetail = nil, finalPaid
		if err := s.startMeterTx(ctx, tx, p, at); err != nil {
			return err
		}
	case turnOff:
		p.restFinal(at, s.Limits)
		if err := s.stopMeterTx(ctx, tx, p); err != nil {
			return err
		}
	case turnNone:
	}
	if err := s.broke(ctx, tx, p); err != nil {
		return err
	}
	return savePod(ctx, tx, p)
}

// finalPaid is what a card says while a last sync is charged.
const finalPaid = "The last sync takes long. What runs beyond the free time is charged at the pod's price, for an hour at most."

// broke makes the rest of a last sync free when the team's money ran out: its
// meter has ended with the others then.
func (s *Service) broke(ctx context.Context, tx pgx.Tx, p *Pod) error {
	if p.StoppedAt != nil || p.FinalPaidFromAt == nil {
		return nil
	}
	ends, err := s.Wallet.MeteredUntil(ctx, tx, []uuid.UUID{p.ID})
	if err != nil {
		return err
	}
	if end, ended := ends[p.ID]; ended {
		p.StoppedAt, p.FinalPaidFromAt, p.StatusDetail = &end, nil, ""
	}
	return nil
}

// restFinal sets the end of the meter of a last sync, if it runs. The caller
// stops it there, after the volume is locked.
func (p *Pod) restFinal(at time.Time, l Limits) {
	if p.StoppedAt != nil || p.FinalPaidFromAt == nil {
		return
	}
	if until := p.FinalPaidFromAt.Add(l.FinalPaid); at.After(until) {
		at = until
	}
	p.StoppedAt = &at
	if p.StatusDetail == finalPaid {
		p.StatusDetail = ""
	}
}
