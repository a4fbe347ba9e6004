package pod

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// findLost decides whether a silent machine is lost (server rule 14): gone in
// two reads of the provider, or silent for long with its SSH silent too. One
// that the provider calls running and whose SSH answers stays as it is.
func (s *Service) findLost(ctx context.Context, p *Pod, in *Instance) (bool, error) {
	m, found, known := s.look(ctx, in)
	if !known {
		return false, nil
	}
	answers := false
	if found && m.State.Alive() {
		answers = p.Status == Ready && s.logIn(ctx, p) == nil
	}
	lost := false
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		wall := s.Clock.Wall()
		var err error
		lost, err = s.noteSilence(ctx, tx, p, in, silence{
			seen: s.seen(wall), alive: found && m.State.Alive(), answers: answers,
		})
		return err
	})
	if err != nil || !lost {
		return false, err
	}
	return false, s.lose(ctx, p)
}

// silence is what was seen of a machine that does not send heartbeats.
type silence struct {
	seen
	alive   bool // the provider lists it as usable
	answers bool // our SSH log-in works
}

func (s *Service) noteSilence(ctx context.Context, tx pgx.Tx, p *Pod, in *Instance, now silence) (bool, error) {
	switch {
	case now.silent(in) < s.Limits.Quiet && (now.alive || !p.Status.Ending()):
		return false, nil // it spoke meanwhile
	case !now.alive && in.GoneSeenWallAt == nil:
		in.GoneSeenWallAt = &now.wall
	case !now.alive:
		if now.wall.Sub(*in.GoneSeenWallAt) >= s.Limits.GoneTwice {
			return true, nil
		}
	case now.answers:
		in.GoneSeenWallAt, in.ProbedWallAt = nil, &now.wall
		if p.Status != Ready {
			break
		}
		p.StatusDetail = unreachable(p)
		if err := savePod(ctx, tx, p); err != nil {
			return false, err
		}
	default:
		in.GoneSeenWallAt = nil
		return now.silent(in) >= s.Limits.QuietLong, saveInstance(ctx, tx, in)
	}
	return false, saveInstance(ctx, tx, in)
}

// unreachable is what a card says of a pod that works while its agent is silent.
func unreachable(p *Pod) string {
	if p.SyncedAt == nil {
		return "Agent unreachable, not synced yet"
	}
	return "Agent unreachable, last synced at " + p.SyncedAt.Format(timeForPeople)
}

// lose ends a pod whose machine is lost: its meter ends when the machine was
// last known to work, and its volume stays at the last committed snapshot.
func (s *Service) lose(ctx context.Context, p *Pod) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		in, err := currentInstance(ctx, tx, p.ID)
		if err != nil || in == nil {
			return err
		}
		detail := "The machine was lost. " + lastSynced(p)
		if !p.Status.Ending() && (p.Status != Ready || s.seen(s.Clock.Wall()).silent(in) < s.Limits.Quiet) {
			return nil
		}
		in.turned(OutcomeLost, s.Clock.Wall())
		if err := saveInstance(ctx, tx, in); err != nil {
			return err
		}
		if p.Status.Ending() {
			p.StatusDetail = detail
			// It may have been lost before its end was asked for.
			if at := s.lastKnown(p, in); p.ReadyAt != nil && (p.StoppedAt == nil || at.Before(*p.StoppedAt)) {
				p.StoppedAt = &at
			}
			return s.finishTx(ctx, tx, p)
		}
		p.RestoredWallAt = nil // no agent is left that could sync
		if err := s.endTx(ctx, tx, p, Stop, ReasonLost, detail, s.lastKnown(p, in)); err != nil {
			return err
		}
		return s.afterLossTx(ctx, tx, p)
	})
}

// lastKnown is the business time at which a lost machine last worked: its last
// heartbeat, or our last log-in, never before it was ready.
func (s *Service) lastKnown(p *Pod, in *Instance) time.Time {
	last := *in.AgentSeenWallAt
	if in.ProbedWallAt != nil && in.GoneSeenWallAt == nil && in.ProbedWallAt.After(last) {
		last = *in.ProbedWallAt
	}
	at := last.Add(s.Clock.Offset())
	if p.ReadyAt != nil && at.Before(*p.ReadyAt) {
		return *p.ReadyAt
	}
	return at
}
