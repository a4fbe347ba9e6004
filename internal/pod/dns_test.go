package pod_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// brokenNames publishes nothing while it is broken.
type brokenNames struct {
	dns.Names
	broken bool
}

func (b *brokenNames) Remove(ctx context.Context, name string) error {
	if b.broken {
		return errors.New("the name server is away")
	}
	return b.Names.Remove(ctx, name)
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
