package pod_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// asSold is what the agent of a good machine finds.
func asSold() agentapi.Checked {
	return agentapi.Checked{
		GPUs: []agentapi.GPU{{Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559}}, Driver: "570.86.10", CUDA: true,
		DiskRate: 900_000_000, NetRate: 200_000_000,
	}
}

// knock is the hello of an agent that can look its machine over.
func (a *agent) knock() {
	a.t.Helper()
	right, err := a.right()
	a.must(err)
	a.welcome, err = a.Hello(a.t.Context(), right, agentapi.Hello{Version: "test", Checks: true})
	a.must(err)
}

func (a *agent) tell(found agentapi.Checked) error {
	a.t.Helper()
	right, err := a.right()
	if err != nil {
		return err
	}
	found.Epoch = a.welcome.Volume.Epoch
	return a.Checked(a.t.Context(), right, found)
}

// A machine that is not what was sold is swapped for one at the next equal
// offer: nothing is charged, the reason is kept, and it counts against its cloud.
func TestBadHostIsSwappedFreeOfCharge(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(c *agentapi.Checked)
		why    string
	}{
		"no GPU":        {func(c *agentapi.Checked) { c.GPUs, c.GPUError = nil, "nvidia-smi is not there" }, "No GPU was found in it."},
		"another model": {func(c *agentapi.Checked) { c.GPUs[0] = agentapi.GPU{Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920} }, "It has an A100 80GB instead of an H100 80GB."},
		"less memory":   {func(c *agentapi.Checked) { c.GPUs[0] = agentapi.GPU{Name: "NVIDIA Quantum", MemoryMiB: 40960} }, "A GPU of it has 40 GB of memory instead of 80."},
		"no CUDA":       {func(c *agentapi.Checked) { c.CUDAError = "cuInit: error 802" }, "CUDA does not start on it: cuInit: error 802."},
		"slow disk":     {func(c *agentapi.Checked) { c.DiskRate = 39_999_999 }, "Its disk writes 39.9 MB a second only."},
		"slow network":  {func(c *agentapi.Checked) { c.NetRate = 90_000 }, "Its network moves 0.0 MB a second only."},
	} {
		h := newHarbour(t)
		scope := h.team(team.Hobby, 10*money.Dollar)
		p := h.rent(scope)
		h.work()
		bad := h.boot(h.a.one())
		if bad.knock(); bad.welcome.Check == nil || bad.welcome.Check.DiskBytes == 0 || bad.welcome.Check.Seconds == 0 {
			t.Fatalf("%s: it is to look at %+v", name, bad.welcome.Check)
		}
		found := asSold()
		tt.change(&found)
		h.must(bad.tell(found))
		h.work()
		if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
			t.Errorf("%s: it goes on at %s", name, p.Provider)
		}
		if err := bad.tell(found); !errors.Is(err, pod.ErrFenced) {
			t.Errorf("%s: the bad machine says it again: %v", name, err)
		}
		if left := h.a.names(); len(left) != 0 {
			t.Errorf("%s: the bad machine is still rented: %q", name, left)
		}
		var reason string
		h.must(h.pool.QueryRow(t.Context(), "select reason from instance where pod_id = $1 and attempt = 1", p.ID).Scan(&reason))
		if want := "The machine did not pass its check. " + tt.why; reason != want {
			t.Errorf("%s: the reason is %q, want %q", name, reason, want)
		}
		good := h.boot(h.b.one())
		good.knock()
		h.must(good.tell(asSold()))
		h.must(good.report())
		good.open()
		h.work()
		h.is(scope, p, pod.Ready)
		if got := h.score("a"); got.BadHosts != 1 || h.score("b").Ready != 1 {
			t.Errorf("%s: the scores are %+v and %+v", name, got, h.score("b"))
		}
		if got := h.spent(scope); got != 0 {
			t.Errorf("%s: charged %s", name, got.Decimal())
		}
		h.ok()
	}
}

// A pod whose agent was asked to look is not ready before it answered; agents of
// the release before, that cannot look, and those that look no more are not held up.
func TestPodIsReadyOnceItsMachineWasLookedOver(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	h.work()
	a := h.boot(h.a.one())
	a.knock()
	h.must(a.report())
	a.open()
	h.pass(10 * time.Second)
	h.is(scope, p, pod.Mounting)
	a.knock() // it was started again
	if a.welcome.Check != nil {
		t.Error("it is to look after it restored")
	}
	h.must(a.tell(asSold()))
	h.must(a.tell(asSold()))
	h.pass(5 * time.Second)
	h.is(scope, p, pod.Ready)
	if a.knock(); a.welcome.Check != nil {
		t.Error("it is to look again")
	}
}

// What an agent of another pod finds, or one of before, changes nothing.
func TestCheckOfAnotherAttachmentIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	h.work()
	a := h.boot(h.a.one())
	a.knock()
	right, err := a.right()
	h.must(err)
	found := agentapi.Checked{Epoch: a.welcome.Volume.Epoch - 1}
	if err := a.Checked(t.Context(), right, found); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("another epoch: %v", err)
	}
	h.is(scope, p, pod.Mounting)
}

// Where the operator wants no look, or a cloud's GPUs are simulated, none is made.
func TestChecksCanBeLeftOut(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.Preflight.Off = true })
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	h.work()
	a := h.boot(h.a.one())
	if a.knock(); a.welcome.Check != nil {
		t.Error("it is asked to look")
	}
	h.must(a.report())
	a.open()
	h.work()
	h.is(scope, p, pod.Ready)

	h = newHarbour(t, func(l *pod.Limits) { l.Preflight.NetMin = -1 })
	h.a.caps.NoGPUs = true
	scope = h.team(team.Pro, 100*money.Dollar)
	p = h.rent(scope)
	h.work()
	a = h.boot(h.a.one())
	if a.knock(); a.welcome.Check.NetBytes != 0 || a.welcome.Check.DiskBytes == 0 {
		t.Errorf("it is to look at %+v", a.welcome.Check)
	}
	h.must(a.tell(agentapi.Checked{GPUError: "nvidia-smi is not there", NetRate: 1}))
	h.must(a.report())
	a.open()
	h.work()
	h.is(scope, p, pod.Ready)
	if d := h.find(scope, p).StatusDetail; strings.Contains(d, "check") {
		t.Errorf("the card says %q", d)
	}
}
