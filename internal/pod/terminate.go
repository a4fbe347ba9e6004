package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/provider"
)

const sqlDueInstances = `
select id from instance where next_wall_at <= $1 and state = 'terminating' order by next_wall_at limit $2`

// SweepInstances returns the instances whose end is due to be tried again.
// Terminate each. Ending a machine is retried for ever (server rule 15).
func (s *Service) SweepInstances(ctx context.Context) ([]uuid.UUID, error) {
	rows, _ := s.Pool.Query(ctx, sqlDueInstances, s.Clock.Wall(), sweepBatch)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("due instances: %w", err)
	}
	return ids, nil
}

// Terminate takes one step towards the end of an instance: ask the provider,
// then see whether it is gone. It is called by TerminateJob and by a sweep.
func (s *Service) Terminate(ctx context.Context, instanceID uuid.UUID) error {
	rows, _ := s.Pool.Query(ctx, sqlFindInstance, instanceID)
	in, err := oneInstance(rows, instanceID)
	if err != nil || in == nil || in.State != Terminating {
		return err
	}
	if err := s.tryLater(ctx, in); err != nil {
		return err
	}
	fail.Point("pod.terminate.intent")
	gone, err := s.end(ctx, in)
	if err != nil || !gone {
		if err != nil {
			s.Logger.WarnContext(ctx, "instance is not ended yet", "provider", in.Provider, "instance", in.Name, "tries", in.Tries, "err", err)
		}
		return nil
	}
	fail.Point("pod.terminate.called")
	for range 2 { // the pod may be started again while its name is taken back
		if settled, err := s.settle(ctx, in); settled || err != nil {
			return err
		}
	}
	return nil
}

// settle makes the pod's name lead where it must, and then counts an ended
// machine's instance as gone. It reports false when that failed or the name must
// lead elsewhere since: the instance then stays open, or is opened again if
// another node was faster, so that it is tried until it is true.
func (s *Service) settle(ctx context.Context, in *Instance) (settled bool, err error) {
	forgotten, failed := s.settleName(ctx, in)
	if failed != nil {
		s.Logger.WarnContext(ctx, "an ended machine's name is not settled yet", "instance", in.Name, "err", failed)
	}
	err = s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		settled = failed == nil && p.over() == forgotten
		switch {
		case settled && in.State == Terminating:
			in.set(Gone, in.Reason, s.Clock.Wall())
		case !settled && in.State == Gone:
			in.set(Terminating, in.Reason, s.Clock.Wall())
		default:
			return nil
		}
		return saveInstance(ctx, tx, in)
	})
	return settled, err
}

const sqlTryLater = `
update instance set tries = tries + 1, next_wall_at = $2 where id = $1 and state = 'terminating'`

// tryLater sets the next try before this one is made.
func (s *Service) tryLater(ctx context.Context, in *Instance) error {
	at := s.Clock.Wall().Add(backoff(in.Tries, s.Limits.TerminateMin, s.Limits.TerminateMax))
	if _, err := s.Pool.Exec(ctx, sqlTryLater, in.ID, at); err != nil {
		return fmt.Errorf("instance %s: %w", in.Name, err)
	}
	return nil
}

// unlistedFor is how long the end of a machine that is not listed is asked for
// when its cloud does not say that it is gone.
const unlistedFor = 15 * time.Minute

// end asks for the end of a machine and reports whether the provider confirms it.
func (s *Service) end(ctx context.Context, in *Instance) (bool, error) {
	// One that ended by itself is terminated too: its disk may be there still.
	m, found, err := s.listed(ctx, in)
	if err != nil {
		return false, err
	}
	wall := s.Clock.Wall()
	switch {
	case !found && in.Ref == "":
		// A machine whose making was unclear may still appear.
		return wall.Sub(in.CreatedWallAt) >= s.Limits.LaunchFor+s.appearsIn(in), nil
	case !found:
		// A list may be late with a machine, or leave it out for once: what has an
		// id is asked to end all the same.
		m.Ref = in.Ref
	case m.State == provider.Terminating:
		return false, nil
	}
	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = s.Adapters[in.Provider].Terminate(call, m.Ref)
	if found { // what a cloud says of an id that it does not list is no sign of its health
		s.noteCall(ctx, in.Provider, offer.CallOther, err)
	}
	switch {
	case err == nil:
	case !found && wall.Sub(in.StateWallAt) >= unlistedFor:
		return true, nil // its cloud has other words for an id that it does not know any more
	case errors.Is(err, provider.ErrNotYet):
		return false, nil
	default:
		return false, err
	}
	_, found, err = s.find(ctx, in)
	return err == nil && !found, err
}
