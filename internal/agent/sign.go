//go:build linux

package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/clock"
)

const (
	signWait   = 2 * time.Millisecond // for others to join a call
	signMargin = 30 * time.Second     // a grant is not used so close to its end
	maxCached  = 4096                 // read grants
)

// errGrants occurs when the control plane answered with too few grants.
var errGrants = errors.New("the grants do not match the operations")

// signer asks for grants, many in one call, and keeps those for reading.
type signer struct {
	ctx   context.Context // of the agent: a call serves many callers
	node  *client
	clock *clock.Clock
	epoch int64

	mu     sync.Mutex
	open   *batch // takes operations
	cached map[string]cachedGrant
}

type cachedGrant struct {
	grant agentapi.Grant
	until time.Time
}

// batch is one call of Sign in the making.
type batch struct {
	ops  []agentapi.Op
	full chan struct{} // closed when no more operations fit
	done chan struct{} // closed when the rest is set
	got  []agentapi.Grant
	err  error
}

func newSigner(ctx context.Context, node *client, c *clock.Clock, epoch int64) *signer {
	return &signer{ctx: ctx, node: node, clock: c, epoch: epoch, cached: map[string]cachedGrant{}}
}

// sign returns a grant for op, one that is at hand for a read.
func (s *signer) sign(ctx context.Context, op agentapi.Op) (agentapi.Grant, error) {
	s.mu.Lock()
	if c, ok := s.cached[op.Object.ID]; ok && !op.Put && s.clock.Wall().Before(c.until) {
		s.mu.Unlock()
		return c.grant, nil
	}
	b, leads := s.join(op)
	i := len(b.ops) - 1
	s.mu.Unlock()
	if leads {
		s.send(b)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return agentapi.Grant{}, context.Cause(ctx)
	}
	if b.err != nil {
		return agentapi.Grant{}, b.err
	}
	return b.got[i], nil
}

// join adds op to the open batch and says whether the caller is to send it.
func (s *signer) join(op agentapi.Op) (*batch, bool) {
	b, leads := s.open, false
	if b == nil {
		b, leads = &batch{full: make(chan struct{}), done: make(chan struct{})}, true
		s.open = b
	}
	b.ops = append(b.ops, op)
	if len(b.ops) == agentapi.MaxSignOps {
		s.open = nil
		close(b.full)
	}
	return b, leads
}

// send makes the call once others had their chance to join.
func (s *signer) send(b *batch) {
	timer := time.NewTimer(signWait)
	select {
	case <-timer.C:
	case <-b.full:
	}
	timer.Stop()
	s.mu.Lock()
	if s.open == b {
		s.open = nil
	}
	s.mu.Unlock()

	var grants agentapi.Grants
	b.err = s.node.post(s.ctx, agentapi.PathSign, callTimeout, agentapi.Sign{Epoch: s.epoch, Ops: b.ops}, &grants)
	if b.err == nil && len(grants.Grants) != len(b.ops) {
		b.err = errGrants
	}
	if b.err == nil {
		b.got = grants.Grants
		s.keep(b.ops, grants)
	}
	close(b.done)
}

// keep remembers grants for reading.
func (s *signer) keep(ops []agentapi.Op, g agentapi.Grants) {
	until := g.ExpiresAt.Add(-signMargin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cached)+len(ops) > maxCached {
		clear(s.cached)
	}
	for i, op := range ops {
		if !op.Put {
			s.cached[op.Object.ID] = cachedGrant{g.Grants[i], until}
		}
	}
}

// forget drops a grant that did not work.
func (s *signer) forget(op agentapi.Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cached, op.Object.ID)
}
