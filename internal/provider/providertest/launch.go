package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/provider"
)

func launchedIsFound(t *testing.T, k kit) {
	m := k.launch(t, "hp-test-00000001-1")
	found, there := k.find(t, m.Name)
	if !there || found.Ref != m.Ref {
		t.Fatalf("launched %+v, found %+v", m, found)
	}
	eventually(t, "the machine runs and says where", func() bool {
		found, there = k.find(t, m.Name)
		return there && found.State == provider.Running && found.Host != "" && found.SSHPort > 0
	})
	if found.CreatedAt.IsZero() {
		t.Error("the machine has no age")
	}
	k.holds(t, 1)
	k.end(t, m.Ref)
}

func findKeepsToPrefix(t *testing.T, k kit) {
	one := k.launch(t, "hp-test-00000001-1")
	two := k.launch(t, "hp-othr-00000001-1")
	list, err := k.Find(t.Context(), "hp-test-")
	if err != nil || len(list) != 1 || list[0].Name != one.Name {
		t.Errorf("find hp-test-: %+v, %v", list, err)
	}
	if err := k.Terminate(t.Context(), one.Ref); err != nil {
		t.Error(err)
	}
	k.end(t, two.Ref)
}

func launchesSideBySide(t *testing.T, k kit) {
	const n = 4
	var wg sync.WaitGroup
	refs := make([]string, n)
	for i := range n {
		l := k.request(t, fmt.Sprintf("hp-test-%08d-1", i))
		wg.Go(func() {
			m, err := k.Launch(t.Context(), l)
			if err != nil {
				t.Error(err)
			}
			refs[i] = m.Ref
		})
	}
	wg.Wait()
	k.holds(t, n)
	if slices.Sort(refs); len(slices.Compact(slices.Clone(refs))) != n {
		t.Errorf("references repeat: %v", refs)
	}
	for _, ref := range refs {
		if err := k.Terminate(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "all are gone", func() bool { return len(k.control.Machines(t)) == 0 })
}

func refusedLaunch(t *testing.T, k kit) {
	for kind, want := range map[string]error{
		"no_capacity": provider.ErrNoCapacity, "price_moved": provider.ErrPriceMoved, "refused": provider.ErrRefused,
		"funds": provider.ErrFunds, "rate_limited": provider.ErrRateLimited,
	} {
		if !k.control.Inject(t, "launch", kind, 1) {
			continue
		}
		_, err := k.Launch(t.Context(), k.request(t, "hp-test-00000001-1"))
		if !errors.Is(err, want) || !provider.NoMachine(err) {
			t.Errorf("%s: %v", kind, err)
		}
		k.holds(t, 0)
		k.control.Clear(t)
	}
	k.end(t, k.launch(t, "hp-test-00000001-1").Ref) // the name is still free
}

func launchLongName(t *testing.T, k kit) {
	limit := k.Capabilities().MaxName
	if limit < len("hp-abcd-12345678-123") {
		t.Errorf("the cloud takes names of %d only", limit)
	}
	if _, err := k.Launch(t.Context(), k.request(t, "hp-"+strings.Repeat("x", limit))); !provider.NoMachine(err) {
		t.Errorf("launch with a name that is too long: %v", err)
	}
	k.holds(t, 0)
}

// ambiguousLaunch: an error is not the end of the matter.
func ambiguousLaunch(t *testing.T, k kit) {
	for i, kind := range []string{"error_after", "late", "malformed"} {
		if !k.control.Inject(t, "launch", kind, 1) {
			continue
		}
		name := fmt.Sprintf("hp-test-%08d-1", i)
		if _, err := k.Launch(t.Context(), k.request(t, name)); err == nil || provider.NoMachine(err) {
			t.Errorf("%s: %v", kind, err)
		}
		var m provider.Machine
		eventually(t, kind+": the machine is found", func() (there bool) {
			m, there = k.find(t, name)
			return there && m.State == provider.Running
		})
		k.end(t, m.Ref)
		k.control.Clear(t)
	}
}

// hungLaunch: a caller who is tired of waiting knows nothing.
func hungLaunch(t *testing.T, k kit) {
	for i, kind := range []string{"hang_after", "slow_body"} {
		if k.control.Inject(t, "launch", kind, 1) {
			hung(t, k, fmt.Sprintf("hp-test-%08d-1", i), kind)
		}
		k.control.Clear(t)
	}
}

func hung(t *testing.T, k kit, name, kind string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := k.request(t, name)
	failed := make(chan error, 1)
	go func() { _, err := k.Launch(ctx, l); failed <- err }()
	var m provider.Machine
	eventually(t, "the machine is found", func() (there bool) {
		m, there = k.find(t, l.Name)
		return there && m.State == provider.Running
	})
	select {
	case err := <-failed:
		t.Errorf("%s: the call did not hang: %v", kind, err)
	default:
		cancel()
		if err := <-failed; err == nil || provider.NoMachine(err) {
			t.Errorf("%s: a call that was given up: %v", kind, err)
		}
	}
	k.end(t, m.Ref)
}

func rateLimited(t *testing.T, k kit) {
	for kind, said := range map[string]bool{"rate_limited": true, "rate_limited_unsaid": false} {
		if !k.control.Inject(t, "launch", kind, 1) {
			continue
		}
		_, err := k.Launch(t.Context(), k.request(t, "hp-test-00000001-1"))
		if !errors.Is(err, provider.ErrRateLimited) || fault.Of(err).RetryAfter > 0 != said {
			t.Errorf("%s: %v", kind, err)
		}
		k.holds(t, 0)
		k.control.Clear(t)
	}
}

// withoutAddress: whoever is told that a machine runs is told where, too.
func withoutAddress(t *testing.T, k kit) {
	k.inject(t, "launch", "no_address")
	m := k.launch(t, "hp-test-00000001-1")
	eventually(t, "the machine runs", func() bool {
		found, there := k.find(t, m.Name)
		if there && found.State == provider.Running && (found.Host == "" || found.SSHPort == 0) {
			t.Fatalf("it runs nowhere: %+v", found)
		}
		return there && found.State == provider.Running
	})
	k.end(t, m.Ref)
}

func deadlineMoves(t *testing.T, k kit) {
	keeper, ok := k.Adapter.(provider.Keeper)
	if ok != k.Capabilities().AutoDelete {
		t.Errorf("the capabilities say auto-delete: %t, and the adapter keeps machines: %t", k.Capabilities().AutoDelete, ok)
	}
	if !ok {
		t.Skip("this cloud does not end machines by itself")
	}
	m := k.launch(t, "hp-test-00000001-1")
	if err := keeper.Keep(t.Context(), m.Ref, time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Errorf("keep: %v", err)
	}
	k.end(t, m.Ref)
	if err := keeper.Keep(t.Context(), m.Ref, time.Date(2100, 1, 3, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("a machine that is gone is kept")
	}
}

func errorBefore(t *testing.T, k kit) {
	k.inject(t, "launch", "error_before")
	if _, err := k.Launch(t.Context(), k.request(t, "hp-test-00000001-1")); err == nil || provider.NoMachine(err) {
		t.Errorf("an error that says nothing: %v", err)
	}
	k.holds(t, 0)
}

func buildingEnds(t *testing.T, k kit) {
	k.inject(t, "launch", "never_boots")
	m := k.launch(t, "hp-test-00000001-1")
	if found, there := k.find(t, m.Name); !there || found.State != provider.Building {
		t.Errorf("a machine that does not boot: %+v", found)
	}
	k.holds(t, 1)
	k.end(t, m.Ref)
}

func failedEnds(t *testing.T, k kit) {
	k.inject(t, "launch", "boot_fails")
	m := k.launch(t, "hp-test-00000001-1")
	eventually(t, "the machine failed", func() bool {
		found, there := k.find(t, m.Name)
		return there && found.State == provider.Failed && found.Reason != ""
	})
	k.end(t, m.Ref)
}

func findFails(t *testing.T, k kit) {
	m := k.launch(t, "hp-test-00000001-1")
	for _, kind := range []string{"error", "malformed", "rate_limited"} {
		if !k.control.Inject(t, "find", kind, 1) {
			continue
		}
		if list, err := k.Find(t.Context(), m.Name); err == nil {
			t.Errorf("find, %s: %+v and no error", kind, list)
		}
	}
	if _, there := k.find(t, m.Name); !there {
		t.Error("the machine is not found again")
	}
	k.end(t, m.Ref)
}

func findShowsTooLittle(t *testing.T, k kit) {
	m := k.launch(t, "hp-test-00000001-1")
	for _, kind := range []string{"empty", "lag"} {
		if !k.control.Inject(t, "find", kind, 1) {
			continue
		}
		if found, there := k.find(t, m.Name); there {
			t.Errorf("%s: found %+v", kind, found)
		}
		if _, there := k.find(t, m.Name); !there {
			t.Errorf("%s: the machine is not found again", kind)
		}
	}
	k.end(t, m.Ref)
}

func terminateTwice(t *testing.T, k kit) {
	m := k.launch(t, "hp-test-00000001-1")
	for range 3 {
		k.end(t, m.Ref)
	}
	if found, there := k.find(t, m.Name); there {
		t.Errorf("an ended machine is %+v", found)
	}
}

func terminateNothing(t *testing.T, k kit) {
	for _, ref := range []string{"hp-test-00000001-1.00000000", "no-such-machine", "", "../.."} {
		if err := k.Terminate(t.Context(), ref); err != nil {
			t.Errorf("terminate %q: %v", ref, err)
		}
	}
}

// terminateGone: the cloud ended the machine and says that it knows none.
func terminateGone(t *testing.T, k kit) {
	k.inject(t, "terminate", "gone")
	m := k.launch(t, "hp-test-00000001-1")
	k.end(t, m.Ref)
}

func terminateRefused(t *testing.T, k kit) {
	m := k.launch(t, "hp-test-00000001-1")
	if k.control.Inject(t, "terminate", "refused_not_yet", 1) {
		if err := k.Terminate(t.Context(), m.Ref); !errors.Is(err, provider.ErrNotYet) {
			t.Errorf("refused for now: %v", err)
		}
		k.holds(t, 1)
	}
	for _, kind := range []string{"error", "rate_limited"} {
		if !k.control.Inject(t, "terminate", kind, 1) {
			continue
		}
		if err := k.Terminate(t.Context(), m.Ref); err == nil {
			t.Errorf("%s: a failed call says it worked", kind)
		}
		k.holds(t, 1)
	}
	k.end(t, m.Ref)
}

func terminateSlow(t *testing.T, k kit) {
	k.inject(t, "terminate", "slow")
	m := k.launch(t, "hp-test-00000001-1")
	if err := k.Terminate(t.Context(), m.Ref); err != nil {
		t.Fatal(err)
	}
	k.holds(t, 1)
	if found, there := k.find(t, m.Name); there && found.State != provider.Terminating {
		t.Errorf("on its way out it is %+v", found)
	}
	eventually(t, "the machine is gone", func() bool { return len(k.control.Machines(t)) == 0 })
}
