//go:build linux

package agent

import (
	"context"
	"time"
)

const (
	killLast       = time.Second // grace of what is left when the agent ends
	maxFinalPasses = 16          // looks that still found a difference, though nobody should write
)

// freeze waits until the last sync is asked for, and then ends SSH and every
// process of the users, so that the files stand still.
func (a *agent) freeze(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.final:
	}
	a.sshd.shut()
	a.calm = a.procs.killAll(ctx, killGrace)
	if !a.calm {
		a.log.Error("some processes could not be ended")
	}
	a.sshd.close()
	close(a.frozen)
}

// syncFinal syncs until a look at the still files finds no difference. What
// fails is tried again for as long as the control plane lets the agent live.
func (a *agent) syncFinal(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.frozen:
	}
	wait := newBackoff(retryFirst, syncRetryMost, a.welcome.PodID)
	committed := false
	for pass := 0; pass < maxFinalPasses; {
		change, err := a.syncOnce(ctx, true, a.calm)
		switch {
		case ctx.Err() != nil && committed && over(context.Cause(ctx)):
			return nil // it has the last commit, and let go
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case over(err):
			a.end(err)
			return err
		case err != nil:
			a.noteSync(err)
			if err := wait.sleep(ctx); err != nil {
				return err
			}
		case change == nil:
			return nil
		case !change.Partial:
			committed = a.calm && change.Unstable == 0
			wait.reset()
			pass++
		}
	}
	a.log.Error("the files never stood still")
	return nil
}
