package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const (
	relaunchEvery = 15 * time.Second // between two looks for an offer
	relaunchAnew  = 24 * time.Hour   // a pod that ran so long begins a new line
)

// startingAgain is what a lost pod's card says until another one has its place.
const startingAgain = " It is being started again on another cloud."

// afterLossTx follows the end of a pod whose machine was lost: one that is to be
// started again waits for that, of the others its team is told.
func (s *Service) afterLossTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	wall := s.Clock.Wall()
	switch {
	case !p.AutoRelaunch:
		return s.tellLossTx(ctx, tx, p)
	case p.line(s.Clock.Now()) >= s.Limits.Relaunches:
		p.StatusDetail += fmt.Sprintf(" It is not started again by itself more than %d times a day.", s.Limits.Relaunches)
		if err := savePod(ctx, tx, p); err != nil {
			return err
		}
		return s.tellLossTx(ctx, tx, p)
	}
	p.StatusDetail += startingAgain
	p.RelaunchUntilWallAt, p.NextWallAt = ptr(wall.Add(s.Limits.RelaunchFor)), &wall
	if err := savePod(ctx, tx, p); err != nil {
		return err
	}
	return s.nudgeTx(ctx, tx, p.ID)
}

// line is how often the pods of this one's line were started again by themselves.
func (p *Pod) line(now time.Time) int {
	if p.ReadyAt != nil && now.Sub(*p.ReadyAt) >= relaunchAnew {
		return 0
	}
	return p.Relaunches
}

// errNoOther occurs when no other cloud sells what a lost pod was.
var errNoOther = errors.New("no equal offer of another cloud")

// relaunch starts a lost pod again as another one, once. What may pass is waited
// for as long as RelaunchFor; what will not pass by itself ends the try.
func (s *Service) relaunch(ctx context.Context, p *Pod) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.relaunchTx(ctx, tx, p.ID) })
	passes := errors.Is(err, errNoOther) || errors.Is(err, ErrGPULimit) || errors.Is(err, ErrNoPort)
	why := ""
	switch f := fault.Of(err); {
	case err == nil, passes && s.Clock.Wall().Before(*p.RelaunchUntilWallAt):
		return nil
	case errors.Is(err, errNoOther):
		why = "No other cloud has the same GPUs at this price or less."
	case f == nil:
		return err
	default:
		why = f.Detail
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil || p.RelaunchUntilWallAt == nil {
			return err
		}
		return s.notAgainTx(ctx, tx, p, " It could not be started again: "+why)
	})
}

// notAgainTx leaves a lost pod as it is.
func (s *Service) notAgainTx(ctx context.Context, tx pgx.Tx, p *Pod, why string) error {
	p.RelaunchUntilWallAt, p.NextWallAt = nil, nil
	p.StatusDetail = "The machine was lost. " + lastSynced(p) + why
	if err := savePod(ctx, tx, p); err != nil {
		return err
	}
	return s.tellLossTx(ctx, tx, p)
}

// relaunchTx makes every check that a new pod passes, but its price is at most
// the lost pod's, and its cloud another one.
func (s *Service) relaunchTx(ctx context.Context, tx pgx.Tx, podID uuid.UUID) error {
	lost, err := findPod(ctx, tx, podID)
	if err != nil {
		return err
	}
	plan, err := team.LockPlanTx(ctx, tx, lost.TeamID)
	if err != nil {
		return err
	}
	if lost, err = lockPod(ctx, tx, podID); err != nil || lost.RelaunchUntilWallAt == nil {
		return err
	}
	if !lost.AutoRelaunch { // its team thought better of it
		return s.notAgainTx(ctx, tx, lost, "")
	}
	keys, err := s.Keys.LinesTx(ctx, tx, []uuid.UUID{lost.SSHKeyID})
	if err != nil {
		return err
	}
	if keys[lost.SSHKeyID] == "" {
		return ErrNotFound.With("Its SSH key was removed.")
	}
	next, err := s.successorTx(ctx, tx, lost, plan)
	if err != nil {
		return err
	}
	if err := s.bearTx(ctx, tx, next, lost); err != nil {
		return err
	}
	return s.tellLossTx(ctx, tx, lost)
}

// successorTx is the pod that takes a lost one's place, with the volume attached.
func (s *Service) successorTx(ctx context.Context, tx pgx.Tx, lost *Pod, plan team.Plan) (*Pod, error) {
	now, wall := s.Clock.Now(), s.Clock.Wall()
	quote, err := s.elsewhereTx(ctx, tx, lost, plan)
	if err != nil {
		return nil, err
	}
	o := quote.Offer
	if err := s.checkGPUsTx(ctx, tx, lost.TeamID, plan, o.GPUCount); err != nil {
		return nil, err
	}
	podID, err := s.podID(ctx, tx, lost.ID)
	if err != nil {
		return nil, err
	}
	att, err := s.Volumes.ReattachTx(ctx, tx, lost.TeamID, lost.VolumeID, podID)
	if err != nil {
		return nil, err
	}
	if err := s.Wallet.RequireTx(ctx, tx, lost.TeamID, s.needed(quote.Rate), now); err != nil {
		return nil, err
	}
	return &Pod{
		ID: podID, TeamID: lost.TeamID, CreatedBy: lost.CreatedBy, VolumeID: lost.VolumeID, VolumeEpoch: att.Epoch,
		SSHKeyID: lost.SSHKeyID, Status: Pending, Offer: o, Adapter: quote.Adapter, Provider: o.Provider, Country: o.Country,
		GPUType: o.GPUType, GPUCount: o.GPUCount, Rate: quote.Rate, MaxRate: lost.Rate, ListRate: quote.ListRate,
		SSHHost: s.Host, CreatedAt: now, StatusWallAt: wall, ProgressWallAt: wall, NextWallAt: &wall,
		AutoRelaunch: true, Relaunches: lost.line(now) + 1, RelaunchOf: &lost.ID,
	}, nil
}

// elsewhereTx finds the best offer that may stand in for a lost pod's on another
// cloud, at no higher price. It returns errNoOther when there is none now.
func (s *Service) elsewhereTx(ctx context.Context, tx pgx.Tx, lost *Pod, plan team.Plan) (offer.Quote, error) {
	size, err := s.Volumes.SizeTx(ctx, tx, lost.TeamID, lost.VolumeID)
	if err != nil {
		return offer.Quote{}, err
	}
	quotes, err := s.Offers.EqualTx(ctx, tx, lost.Offer, plan, lost.Rate, nil)
	if err != nil {
		return offer.Quote{}, err
	}
	quotes = slices.DeleteFunc(quotes, func(q offer.Quote) bool {
		return q.Offer.Provider == lost.Provider || s.Adapters[q.Adapter] == nil || !offer.Holds(q.Offer, size)
	})
	if len(quotes) == 0 {
		return offer.Quote{}, errNoOther
	}
	if err := s.rankTx(ctx, tx, quotes); err != nil {
		return offer.Quote{}, err
	}
	return quotes[0], nil
}

const sqlNameTaken = `select exists (select from pod where left(id::text, 8) = $1 and status <> 'deleted')`

// podID draws the id of a new pod. Its first segment, by which people and DNS
// know it, is that of the pod whose place it takes, unless a live pod has it.
func (s *Service) podID(ctx context.Context, tx pgx.Tx, before uuid.UUID) (uuid.UUID, error) {
	podID := id.New()
	if before == uuid.Nil {
		return podID, nil
	}
	taken := false
	if err := tx.QueryRow(ctx, sqlNameTaken, id.First(before)).Scan(&taken); err != nil {
		return uuid.Nil, fmt.Errorf("look for the name of pod %s: %w", before, err)
	}
	if !taken {
		copy(podID[:4], before[:4])
	}
	return podID, nil
}

// inheritKey gives the pod the host key of another one.
func (s *Service) inheritKey(p, before *Pod) error {
	key, err := s.Box.Open(before.HostKeySealed, hostKeyPurpose(before.ID))
	if err != nil {
		return fmt.Errorf("host key of pod %s: %w", before.ID, err)
	}
	p.HostKeySealed, p.HostKeyFingerprint = s.Box.Seal(key, hostKeyPurpose(p.ID)), before.HostKeyFingerprint
	return nil
}

// endedTx locks a pod of the team whose place may be taken. The faults are
// ErrNotFound and ErrRelaunched.
func (s *Service) endedTx(ctx context.Context, tx pgx.Tx, scope team.Scope, podID uuid.UUID) (*Pod, error) {
	p, err := lockPod(ctx, tx, podID)
	if err != nil {
		return nil, err
	}
	if p.TeamID != scope.TeamID() {
		return nil, ErrNotFound
	}
	if p.Status != Deleted || p.RelaunchedAs != nil {
		return nil, ErrRelaunched
	}
	return p, nil
}

// SetRelaunch says whether a pod is started again when its machine is lost. The
// faults are ErrNotFound, ErrNotYours, and ErrTransition for a pod that ends.
func (s *Service) SetRelaunch(ctx context.Context, scope team.Scope, podID uuid.UUID, on bool) (*Pod, error) {
	var p *Pod
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		if p, err = lockPod(ctx, tx, podID); err != nil {
			return err
		}
		switch {
		case p.TeamID != scope.TeamID():
			return ErrNotFound
		case !scope.IsAdmin() && p.CreatedBy != scope.UserID():
			return ErrNotYours.With("Only the pod's creator or an admin can change it.")
		case p.AutoRelaunch == on:
			return nil
		case !p.Status.SettingUp() && p.Status != Ready && p.RelaunchUntilWallAt == nil:
			return ErrTransition
		}
		p.AutoRelaunch = on
		return savePod(ctx, tx, p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
