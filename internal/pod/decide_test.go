package pod

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var wall = time.Date(2030, 1, 15, 12, 0, 0, 0, time.UTC)

// ago is an instant before the tests' present.
func ago(d time.Duration) time.Time { return wall.Add(-d) }

func TestDecide(t *testing.T) {
	t.Parallel()
	type is = struct {
		status   Status
		since    time.Duration // in this status
		progress time.Duration // since the last one
		restored bool
		final    bool
		in       InstanceState // "": none
		inSince  time.Duration
		silent   time.Duration // since the agent's last word; 0: none yet
		node     bool          // the calling node lives
		up       time.Duration // how long this node has listened; 0: for days
	}
	for name, tt := range map[string]struct {
		is   is
		want action
	}{
		"new":                                   {is{status: Pending}, doLaunch},
		"new, and old":                          {is{status: Pending, since: time.Hour}, doLaunch},
		"the last machine is gone":              {is{status: Pending, in: Gone}, doLaunch},
		"the last machine is on its way out":    {is{status: Pending, in: Terminating}, doLaunch},
		"no machine within 5 min":               {is{status: Pending, since: 5 * time.Minute, in: Gone}, doFail},
		"just within 5 min":                     {is{status: Pending, since: 5*time.Minute - 1, in: Gone}, doLaunch},
		"the call is under way":                 {is{status: Pending, in: Intent, node: true}, doNothing},
		"the call's node died":                  {is{status: Pending, in: Intent}, doDoubt},
		"the call takes too long":               {is{status: Pending, in: Intent, inSince: 65 * time.Second, node: true}, doDoubt},
		"the call's end is not known":           {is{status: Pending, in: Ambiguous}, doLocate},
		"hello before the answer":               {is{status: Mounting, in: Intent, node: true}, doNothing},
		"hello, and the caller died":            {is{status: Mounting, in: Intent}, doDoubt},
		"hello of a machine in doubt":           {is{status: Mounting, in: Ambiguous, restored: true}, doLocate},
		"starting":                              {is{status: Starting, in: Running}, doWatch},
		"starting for 20 min":                   {is{status: Starting, in: Running, since: 20 * time.Minute}, doNextOffer},
		"starting just within 20 min":           {is{status: Starting, in: Running, since: 20*time.Minute - 1}, doWatch},
		"starting without a machine":            {is{status: Starting}, doNextOffer},
		"starting, its machine is gone":         {is{status: Starting, in: Gone}, doNextOffer},
		"mounting, its machine is on its way":   {is{status: Mounting, in: Terminating}, doNextOffer},
		"mounting":                              {is{status: Mounting, in: Running, since: 9 * time.Hour}, doWatch},
		"mounting without progress":             {is{status: Mounting, in: Running, progress: 30 * time.Minute}, doNextOffer},
		"mounting with some":                    {is{status: Mounting, in: Running, progress: 30*time.Minute - 1}, doWatch},
		"restored":                              {is{status: Mounting, in: Running, restored: true}, doProbe},
		"restored, not reachable for 30 min":    {is{status: Mounting, in: Running, restored: true, progress: 30 * time.Minute}, doNextOffer},
		"ready":                                 {is{status: Ready, in: Running, silent: 20 * time.Second}, doNothing},
		"ready, silent":                         {is{status: Ready, in: Running, silent: 90 * time.Second}, doFindLost},
		"ready, just not silent":                {is{status: Ready, in: Running, silent: 90*time.Second - 1}, doNothing},
		"ready, silent while we were deaf":      {is{status: Ready, in: Running, silent: time.Hour, up: 9 * time.Minute}, doNothing},
		"ready, silent since we listen":         {is{status: Ready, in: Running, silent: time.Hour, up: 11*time.Minute + 30*time.Second}, doFindLost},
		"ready, not silent since we listen":     {is{status: Ready, in: Running, silent: time.Hour, up: 11*time.Minute + 29*time.Second}, doNothing},
		"deleting":                              {is{status: Deleting, in: Running, silent: time.Second}, doNothing},
		"deleting, synced":                      {is{status: Deleting, in: Running, silent: time.Second, final: true}, doFinish},
		"deleting, its machine confirmed gone":  {is{status: Deleting, in: Gone}, doFinish},
		"deleting, its machine on its way out":  {is{status: Deleting, in: Terminating}, doFinish},
		"deleting, no progress for 15 min":      {is{status: Deleting, in: Running, silent: time.Second, progress: 15 * time.Minute}, doGiveUp},
		"deleting, just some progress":          {is{status: Deleting, in: Running, silent: time.Second, progress: 15*time.Minute - 1}, doNothing},
		"deleting, we were down for an hour":    {is{status: Deleting, in: Running, silent: time.Hour, progress: time.Hour, up: time.Second}, doFindLost},
		"deleting, its agent says nothing":      {is{status: Deleting, in: Running, silent: 10 * time.Second}, doFindLost},
		"mounting, we were down for an hour":    {is{status: Mounting, in: Running, progress: time.Hour, up: time.Second}, doWatch},
		"starting, we were down for an hour":    {is{status: Starting, in: Running, since: time.Hour, up: time.Second}, doWatch},
		"deleting for hours, while bytes move":  {is{status: Deleting, in: Running, silent: time.Second, since: 9 * time.Hour}, doNothing},
		"deleting, silent":                      {is{status: Deleting, in: Running, silent: 90 * time.Second}, doFindLost},
		"switching off":                         {is{status: SwitchingOff, in: Running, silent: time.Second}, doNothing},
		"switching off, synced":                 {is{status: SwitchingOff, in: Running, final: true}, doFinish},
		"switching off, no progress for 15 min": {is{status: SwitchingOff, in: Running, silent: 1, progress: time.Hour}, doGiveUp},
		"deleted":                               {is{status: Deleted, in: Terminating}, doNothing},
		"deleted, its machine unclear":          {is{status: Deleted, in: Ambiguous}, doNothing},
	} {
		p := &Pod{Status: tt.is.status, StatusWallAt: ago(tt.is.since), ProgressWallAt: ago(tt.is.progress)}
		if tt.is.restored || tt.is.status == Ready || tt.is.status.Ending() {
			p.RestoredWallAt = ptr(ago(tt.is.progress))
		}
		if tt.is.final {
			p.FinalWallAt = ptr(wall)
		}
		var in *Instance
		if tt.is.in != "" {
			in = &Instance{State: tt.is.in, CreatedWallAt: ago(tt.is.inSince), StateWallAt: ago(tt.is.inSince)}
			if tt.is.silent > 0 {
				in.AgentSeenWallAt = ptr(ago(tt.is.silent))
			}
		}
		up := tt.is.up
		if up == 0 {
			up = 240 * time.Hour
		}
		limits := Limits{}.withDefaults()
		now := seen{wall: wall, nodeAlive: tt.is.node, since: ago(up), hears: ago(up - limits.HeartbeatBlind)}
		if got, after := decide(p, in, now, limits); got != tt.want || after < 0 {
			t.Errorf("%s: %s, again after %s; want %s", name, got, after, tt.want)
		}
	}
}

// Whatever the rows say: no machine is asked for while another may be had or
// the pod ends, none is given up for the next after ready, and every pod that
// lives is looked at again.
func TestDecisionsAreSafe(t *testing.T) {
	t.Parallel()
	states := []InstanceState{Intent, Ambiguous, Running, Terminating, Gone}
	statuses := []Status{Pending, Starting, Mounting, Ready, SwitchingOff, Deleting, Deleted}
	limits := Limits{}.withDefaults()
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Custom(func(t *rapid.T) time.Time {
			return ago(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "age")))
		})
		p := &Pod{
			Status:       rapid.SampledFrom(statuses).Draw(t, "status"),
			StatusWallAt: span.Draw(t, "since"), ProgressWallAt: span.Draw(t, "progress"),
		}
		if rapid.Bool().Draw(t, "restored") {
			p.RestoredWallAt = ptr(span.Draw(t, "restored at"))
		}
		if rapid.Bool().Draw(t, "final") {
			p.FinalWallAt = ptr(span.Draw(t, "final at"))
		}
		var in *Instance
		if p.Status != Pending && p.Status != Deleted || rapid.Bool().Draw(t, "tried") { // whatever was launched has one
			in = &Instance{
				State:         rapid.SampledFrom(states).Draw(t, "state"),
				CreatedWallAt: span.Draw(t, "made"), StateWallAt: span.Draw(t, "state since"),
			}
			if rapid.Bool().Draw(t, "spoke") {
				in.AgentSeenWallAt = ptr(span.Draw(t, "seen"))
			}
		}
		open := in != nil && (in.State == Intent || in.State == Ambiguous || in.State == Running)
		now := seen{wall: wall, nodeAlive: rapid.Bool().Draw(t, "alive"), since: span.Draw(t, "up since"), hears: span.Draw(t, "hears")}
		act, after := decide(p, in, now, limits)
		switch {
		case act == doLaunch && (open || p.Status != Pending):
			t.Fatalf("asks for a machine: %s, %+v", p.Status, in)
		case act == doNextOffer && !p.Status.SettingUp():
			t.Fatalf("the next offer after %s", p.Status)
		case (act == doFinish || act == doGiveUp) && !p.Status.Ending():
			t.Fatalf("%s in %s", act, p.Status)
		case act == doFindLost && !p.Status.Ending() && p.Status != Ready:
			t.Fatalf("lost in %s", p.Status)
		case act == doProbe && (p.Status != Mounting || p.RestoredWallAt == nil):
			t.Fatalf("probes in %s", p.Status)
		case p.Status == Deleted && act != doNothing:
			t.Fatalf("%s after the end", act)
		case after < 0 || act == doNothing && p.Status != Deleted && after == 0:
			t.Fatalf("%s, again after %s", act, after)
		}
	})
}

func TestBackoffGrowsToItsMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tries := rapid.IntRange(0, 1<<30).Draw(t, "tries")
		got, next := backoff(tries, time.Second, 5*time.Minute), backoff(tries+1, time.Second, 5*time.Minute)
		if got < time.Second || got > 5*time.Minute || next < got {
			t.Fatalf("%s, then %s", got, next)
		}
	})
	if got := backoff(0, time.Second, 5*time.Minute); got != time.Second {
		t.Errorf("the first is %s", got)
	}
	if got := backoff(9, time.Second, 5*time.Minute); got != 5*time.Minute {
		t.Errorf("the tenth is %s", got)
	}
}
