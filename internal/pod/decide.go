package pod

import "time"

// An action is what the reconciler does next for a pod.
type action string

const (
	doNothing   action = "nothing"
	doLaunch    action = "launch"    // ask a provider for a machine
	doDoubt     action = "doubt"     // the call's end is unknown: mark it ambiguous
	doLocate    action = "locate"    // look for an ambiguous machine by its name
	doWatch     action = "watch"     // ask the provider how the machine is
	doProbe     action = "probe"     // log in through the published address
	doNextOffer action = "next"      // this machine will not do
	doFail      action = "fail"      // no machine can be had
	doFindLost  action = "find lost" // silence: is the machine gone?
	doFinish    action = "finish"    // synced: end the machine, free the volume
	doGiveUp    action = "give up"   // the last sync does not move any more
	doRelaunch  action = "relaunch"  // lost: start it again on another cloud
)

// seen is what the reconciler knows beside the rows.
type seen struct {
	wall      time.Time
	nodeAlive bool          // the node that called the provider may still be waiting
	since     time.Time     // this node works without a break since then
	hears     time.Time     // an agent's silence counts from then on
	boots     time.Duration // launch to hello at the instance's cloud, at most; 0 = not known
}

// still is for how long nothing happened since at, as far as this node was
// there to see it.
func (s seen) still(at time.Time) time.Duration {
	if at.Before(s.since) {
		at = s.since
	}
	return s.wall.Sub(at)
}

// silent is how long an agent was silent while it could have been heard.
func (s seen) silent(in *Instance) time.Duration {
	at := *in.AgentSeenWallAt
	if at.Before(s.hears) {
		at = s.hears
	}
	return s.wall.Sub(at)
}

// decide is the reconciler's whole judgement: what to do now for a pod with
// its latest instance (nil: none yet), and when to look again after doing so.
func decide(p *Pod, in *Instance, now seen, l Limits) (action, time.Duration) {
	switch {
	case p.Status == Deleted && p.RelaunchUntilWallAt != nil:
		return decideRelaunch(in)
	case p.Status == Deleted:
		return doNothing, 0
	case p.Status == Pending || p.Status.SettingUp() && in != nil && in.unclear():
		// An agent may say hello before its launch's answer is recorded, or after
		// the node that asked for it died.
		return decidePending(p, in, now, l)
	case in == nil:
		return doNextOffer, time.Second
	case p.Status.Ending():
		return decideEnding(p, in, now, l)
	case p.Status == Ready:
		return decideSilence(in, now, l, 5*time.Second)
	case in.State == Gone || in.State == Terminating:
		return doNextOffer, time.Second
	case p.Status == Starting && now.still(p.StatusWallAt) >= max(l.StartingFor, now.boots):
		return doNextOffer, time.Second
	case p.Status == Mounting && now.still(p.ProgressWallAt) >= l.MountingStall:
		return doNextOffer, time.Second
	case p.Status == Mounting && p.RestoredWallAt != nil:
		return doProbe, probeEvery(now.wall.Sub(*p.RestoredWallAt))
	}
	return doWatch, 3 * time.Second
}

func decidePending(p *Pod, in *Instance, now seen, l Limits) (action, time.Duration) {
	if in != nil && in.State == Ambiguous {
		return doLocate, backoff(in.Tries, time.Second, 15*time.Second)
	}
	if in != nil && in.State == Intent {
		if now.nodeAlive && now.wall.Sub(in.CreatedWallAt) < l.LaunchFor+5*time.Second {
			return doNothing, time.Second
		}
		return doDoubt, 0
	}
	if in != nil && in.State == Running {
		return doNothing, time.Second // recorded since the pod was read
	}
	if in != nil && in.rests(now.wall) {
		return doNothing, in.NextWallAt.Sub(now.wall)
	}
	if now.wall.Sub(p.StatusWallAt) >= l.PendingFor && in != nil && in.Reason != reasonBusy {
		return doFail, 0
	}
	return doLaunch, time.Second
}

// endingQuiet is how long an agent in its last sync may say nothing.
const endingQuiet = 10 * time.Second

func decideEnding(p *Pod, in *Instance, now seen, l Limits) (action, time.Duration) {
	if p.FinalWallAt != nil || in.State == Gone || in.State == Terminating {
		return doFinish, time.Second
	}
	if now.still(p.ProgressWallAt) >= l.FinalStall {
		return doGiveUp, time.Second
	}
	// An agent in its last sync speaks each second: when it does not, the
	// provider is asked at once whether the machine is gone (server rule 10).
	if in.AgentSeenWallAt != nil && now.wall.Sub(*in.AgentSeenWallAt) >= endingQuiet {
		return doFindLost, 5 * time.Second
	}
	return doNothing, 5 * time.Second
}

// decideSilence is the start of server rule 14: a machine may be lost when its
// heartbeats stopped, and only the time in which we could have heard them counts.
func decideSilence(in *Instance, now seen, l Limits, every time.Duration) (action, time.Duration) {
	if in.AgentSeenWallAt == nil {
		return doWatch, every
	}
	if now.silent(in) >= l.Quiet {
		return doFindLost, every
	}
	return doNothing, every
}

// decideRelaunch has the lost machine's end asked for before another one is.
func decideRelaunch(in *Instance) (action, time.Duration) {
	if in != nil && in.State == Terminating && in.Tries == 0 {
		return doNothing, time.Second
	}
	return doRelaunch, relaunchEvery
}

// probeEvery spaces the log-in attempts: quickly at first.
func probeEvery(since time.Duration) time.Duration {
	return min(max(since/4, 50*time.Millisecond), 2*time.Second)
}

// backoff doubles from first to most with each try.
func backoff(tries int, first, most time.Duration) time.Duration {
	return min(first<<min(tries, 20), most)
}
