package pod_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// The main job, from the click to the end, by the figures that users see.
func TestLifeOfAPod(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	p := h.rent(scope)
	if p.Status != pod.Pending || p.ReadyAt != nil || !h.volume(scope, p).CurrentlyUsed || len(h.a.names()) != 0 {
		t.Fatalf("just rented: %+v", p)
	}
	h.work()
	h.is(scope, p, pod.Starting)
	a := h.boot(h.a.one())
	if want := "hp-" + h.env4() + "-" + p.ID.String()[:8] + "-1"; a.machine.Name != want {
		t.Errorf("the machine is called %s, want %s", a.machine.Name, want)
	}
	h.must(a.hello())
	h.is(scope, p, pod.Mounting)
	if a.welcome.Phase != agentapi.PhaseMounting || !cmp.Equal(a.welcome.AuthorizedKeys, []string{userKey}) ||
		a.welcome.Hostname != p.ID.String()[:8] {
		t.Errorf("welcome: %+v", a.welcome)
	}
	h.pass(time.Minute)
	h.must(a.report())
	h.pass(time.Minute) // SSH does not answer yet
	if got := h.is(scope, p, pod.Mounting); got.ReadyAt != nil || h.spent(scope) != 0 {
		t.Errorf("charged before it can be reached: %+v, %s", got, h.spent(scope).Decimal())
	}
	a.open()
	h.pass(5 * time.Second)
	p = h.is(scope, p, pod.Ready)
	if !p.ReadyAt.Equal(h.clock.Now()) || p.SSHPort != a.machine.SSHPort || p.Progress != 100 {
		t.Errorf("ready: %+v", p)
	}
	a.write("train.py", "print(1)\n")
	for range 60 {
		h.clock.Advance(time.Minute)
		h.must(h.Beat(t.Context()))
		_, err := a.lease(agentapi.PhaseServing, 0)
		h.must(err)
		h.work()
	}
	if got, want := h.spent(scope), money.Cost(p.Rate, 0, time.Hour.Microseconds()); got != want || got != money.USD(2_184_000) {
		t.Errorf("an hour costs %s, want %s", got.Decimal(), want.Decimal())
	}
	h.must(a.sync(false))
	if got := h.find(scope, p); got.SyncedAt == nil || !got.SyncedAt.Equal(h.clock.Now()) {
		t.Errorf("synced at %v", got.SyncedAt)
	}
	h.must(h.Delete(t.Context(), scope, p.ID))
	orders, err := a.lease(agentapi.PhaseServing, 0)
	if err != nil || orders.Command != agentapi.CommandFinal {
		t.Errorf("orders after the DELETE: %+v, %v", orders, err)
	}
	h.clock.Advance(5 * time.Second)
	a.write("last.txt", "bye\n")
	h.must(a.sync(true))
	h.work()
	p = h.is(scope, p, pod.Deleted)
	if got := h.spent(scope); got != 2_184_000 || !p.StoppedAt.Equal(*p.DeleteRequestedAt) || p.StatusReason != pod.ReasonUser {
		t.Errorf("ended: %s spent, %+v", got.Decimal(), p)
	}
	if v := h.volume(scope, p); v.CurrentlyUsed || v.HeadSeq != 2 {
		t.Errorf("volume after the end: %+v", v)
	}
	if left := h.a.names(); len(left) != 0 || h.a.count("launch") != 1 || h.a.count("terminate") != 1 {
		t.Errorf("machines left: %q, log %+v", left, h.a.log)
	}
	if _, err := a.right(); !errors.Is(err, pod.ErrFenced) {
		t.Errorf("the token after the end: %v", err)
	}
	h.ok()
}
