//go:build linux

package agent

import (
	"context"
	"errors"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

const (
	waitIdle  = 20 // seconds the control plane may hold a heartbeat while the pod serves
	waitBusy  = 1  // while there is progress to show
	leaseSlow = 15 * time.Second
	// leaseFlight is the time a heartbeat surely takes to arrive.
	leaseFlight = 20 * time.Millisecond
	leaseRest   = time.Second // after an answer that came at once and said nothing new
)

// lease keeps saying what the agent does, and obeys the answers, until ctx
// ends. A control plane that is away is asked for ever.
func (a *agent) lease(ctx context.Context) {
	away := newBackoff(retryFirst, retryMost, a.cfg.Token)
	seen := ""
	for ctx.Err() == nil {
		call, cancel := context.WithCancel(ctx)
		seen = a.leaseOnce(ctx, call, cancel, away, seen)
		cancel()
	}
}

// leaseOnce makes one heartbeat and returns the version of the orders that are
// in force now. call ends early when the phase changes.
func (a *agent) leaseOnce(ctx, call context.Context, cancel context.CancelFunc, away *backoff, seen string) string {
	// A heartbeat is given the time to arrive before it is ended, lest it
	// arrive after the next one and tell a phase that is over.
	msg := a.status.message(func() { time.AfterFunc(leaseFlight, cancel) })
	msg.Seen, msg.WaitSeconds = seen, waitBusy
	if msg.Phase == agentapi.PhaseServing || msg.Phase == agentapi.PhaseDone {
		msg.WaitSeconds = waitIdle
	}
	if a.saidPhase() != msg.Phase {
		msg.WaitSeconds = 0 // to know soon that it was heard
	}
	began := a.cfg.Clock.Wall()
	held := time.Duration(msg.WaitSeconds) * time.Second
	var orders agentapi.Orders
	err := a.client.post(call, agentapi.PathLease, held+leaseSlow, msg, &orders)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		away.reset()
		a.said.Store(&msg.Phase)
		a.obey(orders, seen)
		if orders.Version == seen && a.cfg.Clock.Wall().Sub(began) < held/2 {
			_ = sleep(call, min(held/2, leaseRest))
		}
		return orders.Version
	case over(err):
		a.end(err)
	case call.Err() != nil: // the phase changed: say so at once
	case errors.Is(err, ErrAway):
		a.log.Debug("the control plane is away", "error", err)
		_ = away.sleep(call)
	default:
		a.log.Error("the heartbeat was refused", "error", err)
		_ = away.sleep(call)
	}
	return seen
}

// obey puts orders in force.
func (a *agent) obey(o agentapi.Orders, seen string) {
	a.setKeys(o.AuthorizedKeys)
	if added := a.status.setNotice(o.Notice); added != "" {
		a.sshd.announce(added)
	}
	a.landing.set(o.Landing)
	switch o.Command {
	case agentapi.CommandNone:
	case agentapi.CommandSync:
		if o.Version == seen {
			return // obeyed already
		}
		select {
		case a.syncNow <- struct{}{}:
		default:
		}
	case agentapi.CommandFinal:
		a.askFinal()
	case agentapi.CommandStop:
		a.end(errStopped)
	default:
		a.log.Error("an unknown command came", "command", string(o.Command))
	}
}

// setKeys replaces the keys that may log in, and ends the connections of those
// that no longer may.
func (a *agent) setKeys(lines []string) {
	changed, bad := a.keys.set(lines)
	if bad > 0 {
		a.log.Warn("public keys could not be read", "count", bad)
	}
	if changed {
		a.sshd.recheck()
	}
}
