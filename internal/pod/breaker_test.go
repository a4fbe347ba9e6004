package pod_test

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// A cloud without our money loses one launch, not one per pod: the next pods go
// straight to an equal offer. What runs there runs on and can be ended.
func TestCloudWithoutFundsIsLeftByNewPodsOnly(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	runs := h.rent(scope)
	h.work()
	agent := h.boot(h.a.one())
	agent.mount()
	h.work()
	h.is(scope, runs, pod.Ready)
	h.a.script(play{err: provider.ErrFunds}, play{err: provider.ErrFunds}, play{err: provider.ErrFunds})
	second := h.team(team.Hobby, 10*money.Dollar)
	p := h.rent(second)
	h.work()
	if p = h.is(second, p, pod.Starting); p.Provider != "borealis" || p.StatusDetail != "" {
		t.Errorf("it starts at %s: %q", p.Provider, p.StatusDetail)
	}
	third := h.team(team.Hobby, 10*money.Dollar)
	q := h.rent(third)
	h.work()
	if q = h.is(third, q, pod.Starting); q.Provider != "borealis" || q.Attempts != 1 || h.a.count("launch") != 2 {
		t.Errorf("the next starts at %s after %d attempts and %d launches", q.Provider, q.Attempts, h.a.count("launch"))
	}
	h.is(scope, runs, pod.Ready)
	h.must(h.Delete(t.Context(), scope, runs.ID))
	h.must(agent.sync(true))
	h.work()
	h.is(scope, runs, pod.Deleted)
	if left := h.a.names(); len(left) != 0 {
		t.Errorf("machines are left where there is no money: %q", left)
	}
	h.ok()
}

// A pod whose only offer is of a cloud that stopped working waits for it as long
// as a pod may be pending, and asks it for nothing meanwhile.
func TestPodWaitsForItsBrokenCloud(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.sells(h.b, func(o *provider.Offer) { o.Country = "CA" }) // no equal offer
	scope := h.team(team.Hobby, 10*money.Dollar)
	breaks := func() {
		for range 5 {
			h.must(h.offers.NoteCall(t.Context(), "a", offer.CallOther, errCut))
		}
	}
	p := h.rent(scope)
	breaks()
	h.work()
	if p = h.is(scope, p, pod.Pending); p.StatusDetail == "" || h.a.count("launch") != 0 {
		t.Errorf("it says %q after %d launches", p.StatusDetail, h.a.count("launch"))
	}
	h.pass(3 * time.Minute) // with it a probe
	h.is(scope, p, pod.Starting)
	if n := h.a.count("launch"); n != 1 {
		t.Errorf("%d launches", n)
	}

	other := h.team(team.Hobby, 10*money.Dollar)
	q := h.rent(other)
	breaks()
	for range 62 { // nobody asks for its list any more
		h.advance(5 * time.Second)
		h.work()
	}
	h.failedSetup(other, q, pod.ReasonSetup)
	if n := h.a.count("launch"); n != 1 {
		t.Errorf("%d launches at a cloud that does not work", n)
	}
}

// sells changes what a cloud sells, and lets what it sold before be forgotten.
func (h *harbour) sells(c *cloud, change func(o *provider.Offer)) {
	h.t.Helper()
	change(&c.offers[0])
	h.advance(offer.VisibleFor)
	h.must(h.offers.Refresh(h.t.Context()))
}
