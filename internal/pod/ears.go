package pod

import (
	"sync"
	"time"
)

// ears remember since when this node works without a break: it was up, and the
// database took its beats. What did not happen before that may just not have
// been seen (server rule 14).
type ears struct {
	mu    sync.Mutex
	last  time.Time // the last beat
	since time.Time // no beat is missing since then
	hears time.Time // an agent's silence counts from then on
}

// open begins a node's life. After a start agents get some time to find the
// node again.
func (e *ears) open(wall time.Time, blind time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last, e.since, e.hears = wall, wall, wall.Add(blind)
}

// beat says that the node works at wall.
func (e *ears) beat(wall time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if wall.Sub(e.last) > nodeTTL {
		e.since = wall
		if e.hears.Before(wall) {
			e.hears = wall
		}
	}
	e.last = wall
}

// seen is what the node can say at wall. When a beat is missing right now, it
// has seen nothing.
func (s *Service) seen(wall time.Time) seen {
	e := &s.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	now := seen{wall: wall, since: e.since, hears: e.hears}
	if wall.Sub(e.last) > nodeTTL {
		now.since = wall
		if now.hears.Before(wall) {
			now.hears = wall
		}
	}
	return now
}
