package pod_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/dns"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// A pod's host name leads somewhere from its readiness until its machine is gone.
func TestHostNameGoesWithTheMachine(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	hosts := filepath.Join(t.TempDir(), "hosts")
	h.must(os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o600))
	h.DNS = &dns.HostsFile{Path: hosts}
	named := func(p *pod.Pod) bool {
		text, err := os.ReadFile(hosts)
		h.must(err)
		return strings.Contains(string(text), "127.0.0.1 "+id.First(p.ID)+"."+h.Host+"\n")
	}
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	if !named(p) {
		t.Fatal("a ready pod has no name")
	}
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.work()
	if !named(p) {
		t.Error("the name is gone before the machine is")
	}
	h.must(a.sync(true))
	h.pass(time.Minute)
	h.is(scope, p, pod.Deleted)
	if named(p) {
		t.Error("an ended pod keeps its name")
	}
}

var errNamesAway = errors.New("the name server is away")

// brokenNames publishes nothing while it is broken.
type brokenNames struct {
	dns.Names
	broken bool
}

func (b *brokenNames) Remove(ctx context.Context, name string) error {
	if b.broken {
		return errNamesAway
	}
	return b.Names.Remove(ctx, name)
}

// slowNames lets something happen before its next change is made.
type slowNames struct {
	dns.Names
	add, remove func() error
}

func (s *slowNames) Add(ctx context.Context, name, address string) error {
	if meanwhile := s.add; meanwhile != nil {
		s.add = nil
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return s.Names.Add(ctx, name, address)
}

func (s *slowNames) Remove(ctx context.Context, name string) error {
	if meanwhile := s.remove; meanwhile != nil {
		s.remove = nil
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return s.Names.Remove(ctx, name)
}

// A pod that is started again while the name server is slow to forget its name
// keeps it for as long as it lives, and no longer.
func TestASlowNameServerTakesNoNameFromASuccessor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gone bool                                      // another node ends the machine meanwhile
		add  func(end func()) (meanwhile func() error) // when the name is given back
		ends bool                                      // so that the successor has ended
	}{
		"slow":                           {},
		"another node was faster":        {gone: true},
		"and then the name server fails": {add: func(func()) func() error { return func() error { return errNamesAway } }},
		"it fails, another node was faster": {
			gone: true,
			add:  func(func()) func() error { return func() error { return errNamesAway } },
		},
		"the successor ends meanwhile": {
			add:  func(end func()) func() error { return func() error { end(); return nil } },
			ends: true,
		},
	} {
		h := newHarbour(t, hearing)
		hosts := filepath.Join(t.TempDir(), "hosts")
		h.must(os.WriteFile(hosts, nil, 0o600))
		names := &slowNames{Names: &dns.HostsFile{Path: hosts}}
		h.DNS = names
		scope := h.team(team.Pro, 100*money.Dollar)
		p, a := h.running(scope)
		a.live(5 * time.Second)
		var next *pod.Pod
		var guest *agent
		names.remove = func() error {
			again := h.ask(scope)
			again.VolumeID, again.RelaunchOf = p.VolumeID, p.ID
			var err error
			next, err = h.Create(t.Context(), scope, again)
			h.must(err)
			h.work()
			guest = h.boot(h.a.one())
			guest.mount()
			h.work()
			next = h.is(scope, next, pod.Ready)
			if tt.gone {
				h.pass(5 * time.Second)
			}
			if tt.add != nil {
				names.add = tt.add(func() { h.end(scope, next, guest) })
			}
			return nil
		}
		h.a.vanish(a.machine.Name)
		h.pass(3 * time.Minute)
		if next == nil {
			t.Fatalf("%s: the name was not taken back", name)
		}
		named := func() bool {
			text, err := os.ReadFile(hosts)
			h.must(err)
			return strings.Contains(string(text), " "+id.First(next.ID)+"."+h.Host+"\n")
		}
		if id.First(next.ID) != id.First(p.ID) || named() == tt.ends {
			t.Errorf("%s: the successor is %s, its name leads to it: %t", name, next.Status, named())
		}
		if !tt.ends {
			h.end(scope, next, guest)
		}
		if named() {
			t.Errorf("%s: the name is there after the end", name)
		}
	}
}

// end deletes a pod whose agent has nothing left to sync.
func (h *harbour) end(scope team.Scope, p *pod.Pod, a *agent) {
	h.t.Helper()
	h.must(h.Delete(h.t.Context(), scope, p.ID))
	h.work()
	_, err := a.lease(agentapi.PhaseDone, 0)
	h.must(err)
	h.pass(time.Minute)
	h.is(scope, p, pod.Deleted)
}

// A name that cannot be taken back is tried again until it is: its address will
// be somebody else's.
func TestANameThatStaysKeepsItsMachineOpen(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	hosts := filepath.Join(t.TempDir(), "hosts")
	h.must(os.WriteFile(hosts, nil, 0o600))
	names := &brokenNames{Names: &dns.HostsFile{Path: hosts}, broken: true}
	h.DNS = names
	named := func() bool {
		text, err := os.ReadFile(hosts)
		h.must(err)
		return len(text) > 0
	}
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	h.must(h.Delete(t.Context(), scope, p.ID))
	h.work()
	h.must(a.sync(true))
	h.pass(time.Minute)
	if !named() {
		t.Fatal("a broken name server forgot a name")
	}
	names.broken = false
	h.pass(10 * time.Minute)
	if named() {
		t.Error("the name is still there after the name server came back")
	}
}
