package meter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// followBatch is how many teams one look finds at most.
const followBatch = 100

// FollowSweep does what every team's wallet waits for by business time: it
// warns, ends pods and takes the steps of unpaid storage, for each team in the
// order in which it came due. Call it each second, and whenever something may
// have come due. A team that fails does not keep the others waiting, and is
// found again by the next sweep.
func (s *Service) FollowSweep(ctx context.Context) error {
	return s.followAll(ctx, s.Clock.Now())
}

func (s *Service) followAll(ctx context.Context, now time.Time) error {
	left := make(map[uuid.UUID]error)
	for {
		teams, err := s.Wallet.ListDue(ctx, now, followBatch+len(left))
		if err != nil {
			return err
		}
		found := false
		for _, teamID := range teams {
			if left[teamID] != nil {
				continue
			}
			found = true
			if err := s.follow(ctx, teamID, now); err != nil {
				left[teamID] = fmt.Errorf("follow the wallet of team %s: %w", teamID, err)
			}
		}
		if !found {
			break
		}
	}
	maps.DeleteFunc(left, func(_ uuid.UUID, err error) bool { return errors.Is(err, errWaits) })
	return errors.Join(slices.Collect(maps.Values(left))...)
}

// errWaits is why a team is left for a later sweep although nothing failed.
var errWaits = errors.New("a pod still holds a volume")

// maxSteps bounds what is done for one team before the others have their turn:
// years of months that nobody looked at.
const maxSteps = 1000

// follow does what one team's wallet waits for, step by step, each as of the
// instant at which it was due: a clock that was moved a month on leaves nothing
// out.
func (s *Service) follow(ctx context.Context, teamID uuid.UUID, now time.Time) error {
	for range maxSteps {
		due, ok, err := s.Wallet.NextDue(ctx, teamID, now)
		if err != nil || !ok {
			return err
		}
		switch due.What {
		case wallet.LowDue:
			err = s.low(ctx, teamID, due.At)
		case wallet.WarnDue:
			err = s.warn(ctx, teamID, due.At)
		case wallet.ExhaustDue:
			err = s.exhaust(ctx, teamID, due.At)
		case wallet.SpendDue:
			err = s.spend(ctx, teamID, due.At)
		case wallet.ArrearsDue:
			err = s.arrears(ctx, teamID, due.At)
		default:
			err = fmt.Errorf("nobody knows what %q is", due.What)
		}
		if errors.Is(err, volume.ErrInUse) {
			return errWaits
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d steps were due", maxSteps)
}

// SettleSweep posts the usage of the days that ended by business time.
func (s *Service) SettleSweep(ctx context.Context) error {
	_, err := s.Wallet.SettleDue(ctx, s.Clock.Now())
	return err
}

// PurgeSweep purges the volumes whose time in the trash is over, once what was
// paid until now has taken its volumes out of it.
func (s *Service) PurgeSweep(ctx context.Context) error {
	if err := s.followAll(ctx, s.Clock.Now()); err != nil {
		return err
	}
	return s.Volumes.PurgeDue(ctx)
}

// RunDue does everything that came due by now, before it returns: for business
// time that was moved. What wallets waited for is done first, in its order;
// then days are posted, volumes whose time in the trash is over are purged, and
// those that were unlocked for long enough are locked.
func (s *Service) RunDue(ctx context.Context, now time.Time) error {
	if err := s.followAll(ctx, now); err != nil {
		return err
	}
	if err := s.Wallet.SettleAll(ctx, now); err != nil {
		return err
	}
	if err := s.Volumes.PurgeDue(ctx); err != nil {
		return err
	}
	return s.Volumes.LockDue(ctx)
}
