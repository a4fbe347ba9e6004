package pod_test

import (
	"errors"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// errNoTurn and errNoRoute are a cloud that takes no call: nothing was sent.
var (
	errNoTurn  = provider.ErrRateLimited.Because(errors.New("the next turn is in 9 s"))
	errNoRoute = provider.ErrUnreachable.Because(errors.New("connection refused"))
)

// A cloud that takes no call for a while costs a pod its time, not one of its
// offers: the chosen one is asked for again, more and more seldom.
func TestCloudThatTakesNoCallIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, said := range []error{errNoTurn, errNoRoute} {
		h := newHarbour(t)
		scope := h.team(team.Hobby, 10*money.Dollar)
		for range 4 { // a fifth time it could not be reached it would be off sale
			h.a.script(play{err: said})
		}
		p := h.rent(scope)
		h.work()
		waiting := h.is(scope, p, pod.Pending)
		if waiting.StatusDetail == "" || h.a.count("launch") != 1 {
			t.Errorf("%v: %q after %d launches", said, waiting.StatusDetail, h.a.count("launch"))
		}
		h.pass(2 * time.Minute)
		p = h.is(scope, p, pod.Starting)
		if p.Provider != "aurora" || h.b.count("launch") != 0 || h.a.count("launch") != 5 {
			t.Errorf("%v: at %s after %d and %d launches", said, p.Provider, h.a.count("launch"), h.b.count("launch"))
		}
		a := h.boot(h.a.one())
		a.mount()
		h.work()
		if p = h.is(scope, p, pod.Ready); p.StatusDetail != "" {
			t.Errorf("%v: the card still says %q", said, p.StatusDetail)
		}
		h.ok()
	}
}

// After the five minutes of pending an equal offer is tried, and with none left
// the pod ends. A busy cloud is not called without a pause.
func TestCloudThatTakesNoCallForLongIsLeft(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	for range 100 {
		h.a.script(play{err: errNoTurn})
	}
	p := h.rent(scope)
	h.pass(5*time.Minute - 10*time.Second)
	h.is(scope, p, pod.Pending)
	if n := h.a.count("launch"); n < 8 || n > 20 {
		t.Errorf("%d calls in five minutes", n)
	}
	h.pass(20 * time.Second)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("it starts at %s", p.Provider)
	}
	h.ok()

	for range 100 {
		h.b.script(play{err: errNoTurn})
	}
	other := h.team(team.Hobby, 10*money.Dollar)
	q := h.rent(other)
	h.pass(10*time.Minute - 20*time.Second)
	h.is(other, q, pod.Pending)
	h.pass(40 * time.Second)
	h.failedSetup(other, q, pod.ReasonSetup)
}

// How long a cloud wants to be left alone is its own word, within the pod's time.
func TestBusyCloudSaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 10*money.Dollar)
	h.a.script(play{err: provider.ErrRateLimited.After(90)}, play{err: provider.ErrRateLimited.After(3600)})
	p := h.rent(scope)
	h.pass(85 * time.Second)
	if n := h.a.count("launch"); n != 1 {
		t.Errorf("%d launches before the cloud's time", n)
	}
	h.pass(10 * time.Second)
	if n := h.a.count("launch"); n != 2 {
		t.Errorf("%d launches after it", n)
	}
	h.pass(4 * time.Minute)
	if p = h.is(scope, p, pod.Starting); p.Provider != "borealis" {
		t.Errorf("it starts at %s", p.Provider)
	}
	if err := h.Delete(t.Context(), scope, p.ID); err != nil {
		t.Error(err)
	}
	h.work()
	h.is(scope, p, pod.Deleted)
}
