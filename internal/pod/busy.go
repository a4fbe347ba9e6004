package pod

import (
	"context"
	"errors"
	"slices"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/provider"
)

// The time between two calls that a cloud takes, unless it says how long it
// wants to be left alone.
const (
	busyLeast = 2 * time.Second
	busyMost  = 30 * time.Second
)

// brokenLook is how soon a pod whose cloud does not work looks again.
const brokenLook = 5 * time.Second

// rests reports whether the cloud of this instance took no call and is not to be
// called yet.
func (in *Instance) rests(wall time.Time) bool {
	return in.Reason == reasonBusy && in.NextWallAt != nil && in.NextWallAt.After(wall)
}

// busy reports whether the cloud took no call: nothing was sent, or nothing of it read.
func busy(err error) bool {
	return errors.Is(err, provider.ErrRateLimited) || errors.Is(err, provider.ErrUnreachable)
}

// busyFor is how long a cloud that took no call is left alone, by a pod that has
// waited so long for it: twice that in all, or what the cloud asks for, but not
// beyond the pod's time.
func (s *Service) busyFor(waited time.Duration, said error) time.Duration {
	asked := time.Duration(fault.Of(said).RetryAfter) * time.Second
	return min(max(asked, min(max(waited, busyLeast), busyMost)), max(s.Limits.PendingFor-waited, 0))
}

// usedUp are the offers that a pod's next attempt leaves aside. One whose cloud
// takes no call is not among them while the pod may wait for it; repeats are
// how often others were tried in vain without being at fault.
func (s *Service) usedUp(p *Pod, tried []*Instance) (used []offer.Tuple, repeats int) {
	waits := s.Clock.Wall().Sub(p.StatusWallAt) < s.Limits.PendingFor
	for _, in := range tried {
		t := offer.TupleOf(in.Offer)
		switch {
		case in.Reason == reasonPort, in.Reason == reasonUnclear:
			repeats++
		case in.Reason == reasonBusy && waits && t == offer.TupleOf(p.Offer), slices.Contains(used, t):
		default:
			used = append(used, t)
		}
	}
	return used, repeats
}

// noteCall tells the cloud's breaker how a call ended, unless its caller gave up.
func (s *Service) noteCall(ctx context.Context, adapter string, c offer.Call, called error) {
	if ctx.Err() != nil {
		return
	}
	if err := s.Offers.NoteCall(ctx, adapter, c, called); err != nil {
		s.Logger.WarnContext(ctx, "a call was not noted", "provider", adapter, "err", err)
	}
}
