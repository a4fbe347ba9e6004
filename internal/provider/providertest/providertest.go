// Package providertest is the contract of provider.Adapter as tests. Every
// adapter passes it, against the cloud's double that its Control steers. What
// went wrong is judged by what the cloud holds, never by the adapter's word.
package providertest

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
)

// A Control steers the cloud behind an adapter.
type Control interface {
	// Inject makes the next calls of an operation go wrong. It returns false
	// when this cloud cannot go wrong so; the test is skipped then.
	Inject(t *testing.T, op, kind string, times int) bool
	// Clear ends what Inject began.
	Clear(t *testing.T)
	// Machines lists the names of the machines that the cloud holds and would
	// charge for, seen past the adapter.
	Machines(t *testing.T) []string
}

// Setup makes an adapter on an empty cloud, and cleans up with the test.
type Setup func(t *testing.T) (provider.Adapter, Control)

// Run runs the contract, each test on a cloud of its own.
func Run(t *testing.T, setup Setup) {
	tests := []struct {
		name string
		run  func(t *testing.T, k kit)
	}{
		{"OffersAreWellFormed", offersAreWellFormed},
		{"OffersAreConstantUnasked", offersAreConstant},
		{"OffersFail", offersFail},
		{"EmptyOffersAreNoError", offersEmpty},
		{"SlowOffersHonourTheContext", offersSlow},
		{"LaunchedMachineIsFound", launchedIsFound},
		{"FindKeepsToItsPrefix", findKeepsToPrefix},
		{"LaunchesRunSideBySide", launchesSideBySide},
		{"RefusedLaunchMakesNothing", refusedLaunch},
		{"RateLimitedLaunchSaysHowLong", rateLimited},
		{"MachineWithoutAddressIsNotRunning", withoutAddress},
		{"DeadlineOfAMachineMoves", deadlineMoves},
		{"LaunchAboveTheMaximumMakesNothing", launchAboveMaximum},
		{"LaunchOfAnUnknownOfferMakesNothing", launchUnknownOffer},
		{"LaunchWithALongNameMakesNothing", launchLongName},
		{"AmbiguousLaunchIsFoundLater", ambiguousLaunch},
		{"HungLaunchIsFoundLater", hungLaunch},
		{"FailedLaunchMayHaveMadeNothing", errorBefore},
		{"BuildingMachineEnds", buildingEnds},
		{"FailedMachineSaysWhyAndEnds", failedEnds},
		{"FindThatFailsSaysNothing", findFails},
		{"FindMayShowTooLittleOnce", findShowsTooLittle},
		{"TerminateMayBeRepeated", terminateTwice},
		{"TerminateOfNothingIsNoError", terminateNothing},
		{"TerminateOfWhatIsGoneIsNoError", terminateGone},
		{"RefusedTerminateLeavesTheMachine", terminateRefused},
		{"SlowTerminateEndsLater", terminateSlow},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, control := setup(t)
			c.run(t, kit{Adapter: a, control: control})
		})
	}
}

// kit is what each test works with.
type kit struct {
	provider.Adapter
	control Control
}

// inject makes the next call go wrong, or skips the test.
func (k kit) inject(t *testing.T, op, kind string) {
	t.Helper()
	if !k.control.Inject(t, op, kind, 1) {
		t.Skipf("this cloud does not do %s of %s", kind, op)
	}
}

// offer is one that is on sale.
func (k kit) offer(t *testing.T) provider.Offer {
	t.Helper()
	list, err := k.Offers(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("offers: %d, %v", len(list), err)
	}
	return list[0]
}

// request asks for a machine of an offer that is on sale, kept until it is ended.
func (k kit) request(t *testing.T, name string) provider.Launch {
	t.Helper()
	l := Request(t, k.Adapter, 0)
	l.Name, l.KeepUntil = name, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}

// launch launches or fails the test.
func (k kit) launch(t *testing.T, name string) provider.Machine {
	t.Helper()
	m, err := k.Launch(t.Context(), k.request(t, name))
	if err != nil {
		t.Fatalf("launch %s: %v", name, err)
	}
	if m.Ref == "" || m.Name != name || m.State == "" {
		t.Fatalf("launch %s: %+v", name, m)
	}
	return m
}

// find returns the machine of that name, if listed and not ended.
func (k kit) find(t *testing.T, name string) (provider.Machine, bool) {
	t.Helper()
	list, err := k.Find(t.Context(), name)
	if err != nil {
		t.Fatalf("find %s: %v", name, err)
	}
	for _, m := range list {
		if m.Name == name && m.State != provider.Gone {
			return m, true
		}
	}
	return provider.Machine{}, false
}

// end terminates a machine and waits until the cloud holds it no more.
func (k kit) end(t *testing.T, ref string) {
	t.Helper()
	if err := k.Terminate(t.Context(), ref); err != nil {
		t.Fatalf("terminate: %v", err)
	}
	eventually(t, "the machine is gone", func() bool { return len(k.control.Machines(t)) == 0 })
}

// holds fails the test unless the cloud holds so many machines.
func (k kit) holds(t *testing.T, n int) {
	t.Helper()
	if list := k.control.Machines(t); len(list) != n {
		t.Errorf("the cloud holds %v, want %d machines", list, n)
	}
}

// Request asks for a machine of the offer that stands at an index of the list.
func Request(t testing.TB, a provider.Adapter, index int) provider.Launch {
	t.Helper()
	list, err := a.Offers(t.Context())
	if err != nil || len(list) <= index {
		t.Fatalf("%d offers, %v", len(list), err)
	}
	return provider.Launch{
		Name: "hp-test-00000001-1", Offer: list[index], MaxPrice: list[index].UpstreamPrice,
		Bootstrap: provider.Bootstrap{AgentURL: "https://homeport.example", Token: "token-of-the-instance", Hostname: "00000001"},
	}
}

// Journey makes every call of the contract once or twice, and is for tests that
// look at the calls themselves.
func Journey(t *testing.T, a provider.Adapter) {
	t.Helper()
	k := kit{Adapter: a}
	m := k.launch(t, "hp-test-00000001-1")
	eventually(t, "the machine runs", func() bool {
		found, there := k.find(t, m.Name)
		return there && found.State == provider.Running
	})
	if keeper, ok := a.(provider.Keeper); ok {
		if err := keeper.Keep(t.Context(), m.Ref, time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Errorf("keep: %v", err)
		}
	}
	for range 2 {
		if err := a.Terminate(t.Context(), m.Ref); err != nil {
			t.Errorf("terminate: %v", err)
		}
	}
	eventually(t, "the machine is gone", func() bool {
		_, there := k.find(t, m.Name)
		return !there
	})
}

// eventually waits until check holds, for a minute.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-limit.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}
