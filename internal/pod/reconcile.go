package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// Reconcile looks at one pod and takes the next step. It may run at any time,
// any number of times, on any node; rows and locks make that safe. It is
// called by ReconcileJob and by Sweep.
func (s *Service) Reconcile(ctx context.Context, podID uuid.UUID) error {
	// One step may make the next one possible at once; a bound keeps a mistake
	// from spinning.
	for range 8 {
		again, err := s.step(ctx, podID)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// step takes one decision and acts on it; it reports whether to look again now.
func (s *Service) step(ctx context.Context, podID uuid.UUID) (bool, error) {
	p, err := findPod(ctx, s.Pool, podID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	in, err := currentInstance(ctx, s.Pool, podID)
	if err != nil {
		return false, err
	}
	now := s.seen(s.Clock.Wall())
	if in != nil && in.State == Intent {
		if now.nodeAlive, err = s.nodeAlive(ctx, s.Pool, in); err != nil {
			return false, err
		}
	}
	now.boots = s.bootsIn(in)
	if err := s.excuse(ctx, p, now); err != nil {
		return false, err
	}
	if err := s.meterFinal(ctx, p); err != nil {
		return false, err
	}
	act, after := decide(p, in, now, s.Limits)
	if err := s.lookAgain(ctx, p, act, now.wall.Add(after)); err != nil {
		return false, err
	}
	again, err := s.act(ctx, p, in, act)
	if err != nil {
		return false, fmt.Errorf("pod %s: %s: %w", podID, act, err)
	}
	return again, nil
}

// bootsIn is how long a machine of the instance's cloud may take from its launch
// to its agent's hello; 0 = not known.
func (s *Service) bootsIn(in *Instance) time.Duration {
	if in == nil || s.Adapters[in.Provider] == nil {
		return 0
	}
	return s.Adapters[in.Provider].Capabilities().BootTimeout
}

func (s *Service) act(ctx context.Context, p *Pod, in *Instance, act action) (bool, error) {
	switch act {
	case doNothing:
		return false, nil
	case doLaunch:
		return s.launch(ctx, p)
	case doDoubt:
		return true, s.doubt(ctx, in)
	case doLocate:
		return s.locate(ctx, in)
	case doWatch:
		return s.watch(ctx, in)
	case doProbe:
		return s.probe(ctx, p, in)
	case doNextOffer:
		return true, s.tryNext(ctx, p, in, OutcomeFailed, "The pod was not ready in time.")
	case doFail:
		return true, s.failSetup(ctx, p, ReasonSetup, "")
	case doFindLost:
		return s.findLost(ctx, p, in)
	case doFinish:
		return false, s.finish(ctx, p, in)
	case doRelaunch:
		return false, s.relaunch(ctx, p)
	case doGiveUp:
		return true, s.giveUp(ctx, p, "The last sync did not move for too long.")
	}
	return false, fmt.Errorf("no such action: %s", act)
}

const sqlLookAgain = `
update pod set next_wall_at = $2 where id = $1 and (status <> 'deleted' or relaunch_until_wall_at is not null)`

// lookAgain sets when a sweep finds the pod again, before anything is tried,
// so that a crash in the middle only delays it.
func (s *Service) lookAgain(ctx context.Context, p *Pod, act action, at time.Time) error {
	if p.Status == Deleted && p.RelaunchUntilWallAt == nil {
		return nil
	}
	if act == doLaunch || act == doFinish {
		at = at.Add(2 * time.Second) // the call's own time
	}
	if _, err := s.Pool.Exec(ctx, sqlLookAgain, p.ID, at); err != nil {
		return fmt.Errorf("look again at pod %s: %w", p.ID, err)
	}
	return nil
}

// sweepBatch bounds one pass of a sweep.
const sweepBatch = 64

// Sweep returns the pods that are due: those whose job was lost, and those that
// wait for something outside. Reconcile each.
func (s *Service) Sweep(ctx context.Context) ([]uuid.UUID, error) {
	return duePods(ctx, s.Pool, s.Clock.Wall(), sweepBatch)
}

// watch asks the provider how a machine in set-up is.
func (s *Service) watch(ctx context.Context, in *Instance) (bool, error) {
	m, found, known := s.look(ctx, in)
	if !known {
		return false, nil
	}
	wall := s.Clock.Wall()
	next := false
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if in.State != Running || !p.Status.SettingUp() {
			return nil
		}
		if found && m.State.Alive() {
			in.GoneSeenWallAt = nil
			in.at(m)
			if err := saveInstance(ctx, tx, in); err != nil || p.SSHPort == in.SSHPort {
				return err
			}
			p.SSHPort = in.SSHPort
			return savePod(ctx, tx, p)
		}
		// A list may lag behind a machine just made: one read is no proof.
		if in.GoneSeenWallAt == nil && !found {
			in.GoneSeenWallAt = &wall
			return saveInstance(ctx, tx, in)
		}
		next = found || wall.Sub(*in.GoneSeenWallAt) >= s.Limits.GoneTwice
		return nil
	})
	if err != nil {
		return false, err
	}
	if !next {
		return false, s.push(ctx, in, m)
	}
	p, err := findPod(ctx, s.Pool, in.PodID)
	if err != nil {
		return false, err
	}
	return true, s.tryNext(ctx, p, in, OutcomeFailed, "The machine failed during set-up.")
}

// tryNext gives up a pod's machine, which did as it did, and lets the next equal
// offer be tried.
func (s *Service) tryNext(ctx context.Context, p *Pod, in *Instance, did Outcome, why string) error {
	if in == nil {
		return s.failSetup(ctx, p, ReasonSetup, why)
	}
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		latest, err := currentInstance(ctx, tx, p.ID)
		if err != nil || !p.Status.SettingUp() || p.Status == Pending || latest.ID != in.ID {
			return err // another node was faster
		}
		if in.State != Gone && in.State != Terminating {
			in.turned(did, s.Clock.Wall())
			if err := s.dropTx(ctx, tx, in, why); err != nil {
				return err
			}
		}
		return s.backToPendingTx(ctx, tx, p, why)
	})
	if err != nil {
		return err
	}
	s.endSoon(ctx, in)
	return nil
}

// endSoon asks once for the end of a dropped instance, before anything else is
// done for its pod; whether or not that works, sweeps see to it. The caller may be
// the machine's own agent, which ends with it.
func (s *Service) endSoon(ctx context.Context, in *Instance) {
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.Terminate(once, in.ID); err != nil {
		s.Logger.WarnContext(ctx, "instance will be ended later", "instance", in.Name, "err", err)
	}
}

// backToPendingTx makes a pod wait for another machine.
func (s *Service) backToPendingTx(ctx context.Context, tx pgx.Tx, p *Pod, why string) error {
	wall := s.Clock.Wall()
	if p.Status != Pending {
		status, err := p.Status.After(NextTry)
		if err != nil {
			return err
		}
		p.Status = status
	}
	p.StatusWallAt, p.ProgressWallAt, p.Progress = wall, wall, 0
	p.RestoredWallAt, p.NextWallAt = nil, &wall
	p.StatusDetail = why + " Trying another machine."
	return savePod(ctx, tx, p)
}

// failSetup ends a pod that could not be made ready: nothing is charged, and
// the detail names what could be rented instead.
func (s *Service) failSetup(ctx context.Context, p *Pod, reason, detail string) error {
	if detail == "" {
		detail = s.alternatives(ctx, p)
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil || !p.Status.SettingUp() {
			return err
		}
		p.RestoredWallAt = nil // nothing of this pod was ever usable
		return s.endTx(ctx, tx, p, Stop, reason, detail, s.Clock.Now())
	})
}

// finish ends a pod whose last sync is in. Its machine is ended first, so that
// where the provider is quick, as the sandbox is, its folder is gone before the
// volume is free; a provider that is not quick does not hold the volume back.
func (s *Service) finish(ctx context.Context, p *Pod, in *Instance) error {
	if in != nil && in.State != Gone {
		err := s.changeInstance(ctx, in, func(tx pgx.Tx, _ *Pod, in *Instance) error {
			if in.State == Gone || in.State == Terminating {
				return nil
			}
			return s.dropTx(ctx, tx, in, "synced")
		})
		if err != nil {
			return err
		}
		s.endSoon(ctx, in)
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil || !p.Status.Ending() {
			return err
		}
		return s.finishTx(ctx, tx, p)
	})
}

// giveUp ends a pod at its last committed snapshot (server rules 10 and 14).
func (s *Service) giveUp(ctx context.Context, p *Pod, why string) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil || !p.Status.Ending() {
			return err
		}
		p.StatusDetail = why + " " + lastSynced(p)
		return s.finishTx(ctx, tx, p)
	})
}

func lastSynced(p *Pod) string {
	if p.SyncedAt == nil {
		return "The volume is as it was before this pod."
	}
	return "The volume is as it was synced at " + p.SyncedAt.Format(timeForPeople) + "."
}

// timeForPeople writes instants into sentences.
const timeForPeople = "2006-01-02 15:04:05 UTC"
