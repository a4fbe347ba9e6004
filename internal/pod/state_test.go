package pod_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/pod"
)

var (
	allStatuses = []pod.Status{
		pod.Pending, pod.Starting, pod.Mounting, pod.Ready, pod.SwitchingOff, pod.Deleting, pod.Deleted,
	}
	allEvents = []pod.Event{
		pod.Launched, pod.AgentIn, pod.Reached, pod.NextTry, pod.UserEnd, pod.Stop, pod.Finished,
	}
)

// Server rule 9, written a second time: every pair that is not here is refused.
func TestTransitions(t *testing.T) {
	t.Parallel()
	type pair struct {
		from pod.Status
		what pod.Event
	}
	want := map[pair]pod.Status{
		{pod.Pending, pod.Launched}: pod.Starting,
		{pod.Starting, pod.AgentIn}: pod.Mounting,
		{pod.Mounting, pod.Reached}: pod.Ready,
		{pod.Starting, pod.NextTry}: pod.Pending,
		{pod.Mounting, pod.NextTry}: pod.Pending,

		{pod.Pending, pod.UserEnd}:  pod.Deleting,
		{pod.Starting, pod.UserEnd}: pod.Deleting,
		{pod.Mounting, pod.UserEnd}: pod.Deleting,
		{pod.Ready, pod.UserEnd}:    pod.Deleting,

		{pod.Pending, pod.Stop}:  pod.SwitchingOff,
		{pod.Starting, pod.Stop}: pod.SwitchingOff,
		{pod.Mounting, pod.Stop}: pod.SwitchingOff,
		{pod.Ready, pod.Stop}:    pod.SwitchingOff,

		{pod.Deleting, pod.Finished}:     pod.Deleted,
		{pod.SwitchingOff, pod.Finished}: pod.Deleted,
	}
	for _, from := range append(allStatuses, "no such status") {
		for _, what := range append(allEvents, "no such event") {
			to, ok := want[pair{from, what}]
			got, err := from.After(what)
			if ok && (err != nil || got != to) {
				t.Errorf("%s after %s is %s, %v; want %s", from, what, got, err, to)
			}
			if !ok && (!errors.Is(err, pod.ErrTransition) || got != from) {
				t.Errorf("%s after %s is %s, %v; want a refusal", from, what, got, err)
			}
		}
	}
}

// Whatever happens in whatever order: nothing leaves deleted, what ends never
// comes back, and a pod that its user ended never switches off.
func TestHistoriesOfAPodEndForGood(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		status := pod.Pending
		var ended pod.Status
		for _, what := range rapid.SliceOf(rapid.SampledFrom(allEvents)).Draw(t, "events") {
			next, err := status.After(what)
			if err != nil {
				continue
			}
			if status == pod.Deleted {
				t.Fatalf("%s left deleted for %s", what, next)
			}
			if ended != "" && next != ended && next != pod.Deleted {
				t.Fatalf("%s became %s", ended, next)
			}
			if next.Ending() {
				ended = next
			}
			status = next
		}
	})
}
