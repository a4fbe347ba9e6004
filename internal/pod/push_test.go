package pod_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// A pushing cloud starts no agent by itself.
type pushing struct {
	*cloud
	got []provider.Bootstrap
	err error
}

// Push implements provider.Pusher.
func (p *pushing) Push(_ context.Context, m provider.Machine, b provider.Bootstrap) error {
	if m.Host == "" || m.SSHPort == 0 {
		p.t.Errorf("the agent is brought to a machine without an address: %+v", m)
	}
	p.got = append(p.got, b)
	return p.err
}

// TestAgentIsBroughtWhereNoneStarts: once the machine runs, and again until the
// agent says hello, each time with a token that makes those before worthless.
func TestAgentIsBroughtWhereNoneStarts(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	k := &pushing{cloud: h.a, err: provider.ErrNotLetIn.Because(errors.New("connection refused"))}
	h.Adapters["a"] = k
	scope := h.team(team.Pro, 10*money.Dollar)
	h.a.script(play{builds: true})
	p := h.rent(scope)
	h.work()
	h.pass(5 * time.Minute)
	if len(k.got) != 0 {
		t.Fatalf("the agent was brought to a machine that is not there yet, %d times", len(k.got))
	}
	m := h.a.one()
	h.a.settle(m)
	h.pass(10 * time.Second)
	if len(k.got) < 2 {
		t.Errorf("a push that failed was tried %d times", len(k.got))
	}
	k.err = nil
	h.pass(5 * time.Second)
	brought := len(k.got)
	h.pass(2 * time.Minute)
	if len(k.got) != brought {
		t.Error("the agent was brought again while it may still start")
	}
	h.pass(5 * time.Minute)
	if len(k.got) != brought+1 {
		t.Errorf("an agent that says nothing was brought %d times more", len(k.got)-brought)
	}
	tokens := map[string]bool{m.launch.Bootstrap.Token: true}
	for i, b := range k.got {
		if tokens[b.Token] || b.AgentURL != m.launch.Bootstrap.AgentURL || b.Hostname != m.launch.Bootstrap.Hostname {
			t.Errorf("push %d brought %+v", i, b)
		}
		tokens[b.Token] = true
	}
	last := k.got[len(k.got)-1].Token
	k.err = provider.ErrNotLetIn.Because(errors.New("the agent is here: it lets nobody in by our key"))
	h.pass(7 * time.Minute)
	if n := len(k.got) - brought - 1; n < 1 || n > 2 {
		t.Errorf("where an agent was brought before it was tried %d times in 7 minutes", n)
	}
	for token := range tokens {
		a := h.boot(m)
		a.token = token
		if _, err := a.right(); (err == nil) != (token == last) {
			t.Errorf("a token that is the last: %t, proves: %v", token == last, err)
		}
	}
	a := h.boot(m)
	a.token = last
	h.must(a.hello())
	brought = len(k.got)
	h.is(scope, p, pod.Mounting)
	h.pass(10 * time.Minute)
	h.must(a.report())
	a.open()
	h.pass(10 * time.Second)
	h.is(scope, p, pod.Ready)
	if len(k.got) != brought {
		t.Error("the agent was brought to a machine that has it")
	}
}

// TestPushThatWasCutShortKeepsItsToken: what was brought may run all the same,
// and the machine lets nobody else in then. Nothing else is brought meanwhile.
func TestPushThatWasCutShortKeepsItsToken(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	k := &pushing{cloud: h.a, err: errors.New("the connection broke after the payload was sent")}
	h.Adapters["a"] = k
	scope := h.team(team.Pro, 10*money.Dollar)
	p := h.rent(scope)
	h.work()
	h.pass(time.Second)
	m := h.a.one()
	if len(k.got) != 1 {
		t.Fatalf("the agent was brought %d times", len(k.got))
	}
	k.err = provider.ErrNotLetIn
	h.pass(provider.PushLives)
	if len(k.got) != 1 {
		t.Errorf("the agent was brought %d times while one may still start", len(k.got)-1)
	}
	h.pass(7 * time.Minute)
	if len(k.got) == 1 {
		t.Error("the agent was not brought again")
	}
	a := h.boot(m)
	a.token = k.got[0].Token
	h.must(a.hello())
	h.is(scope, p, pod.Mounting)
}
