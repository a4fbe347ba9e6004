package pod

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
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

// stallLooks is how long nothing moves before the store is looked at.
const stallLooks = time.Minute

const sqlExcuseStall = `update pod set progress_wall_at = $2 where id = $1`

// excuse keeps a restore or a last sync from being given up while it is our own
// store that fails: nothing can move then (server rule 10).
func (s *Service) excuse(ctx context.Context, p *Pod, now seen) error {
	if p.Status != Mounting && !p.Status.Ending() || p.FinalWallAt != nil || now.still(p.ProgressWallAt) < stallLooks {
		return nil
	}
	_, err := s.Volumes.Store.Stat(ctx, "health") // no volume's key
	if errors.Is(err, blob.ErrNotFound) {
		err = nil
	}
	if err == nil && p.Status.Ending() && now.still(p.ProgressWallAt) >= s.Limits.FinalStall {
		err = s.tryStore(ctx)
	}
	if err == nil {
		return nil
	}
	s.Logger.ErrorContext(ctx, "the volume store fails: a pod waits for it", "pod", p.ID, "err", err)
	if _, err := s.Pool.Exec(ctx, sqlExcuseStall, p.ID, now.wall); err != nil {
		return fmt.Errorf("excuse the stall of pod %s: %w", p.ID, err)
	}
	p.ProgressWallAt = now.wall
	return nil
}

// What is written to see whether the store takes anything: as much as a pack. The
// bytes are shared, and nobody changes them.
const (
	tryPrefix = "health/"
	tryFor    = time.Minute
)

var tryBody = make([]byte, 16<<20)

// tryStore writes an object and removes it: a store whose disk is full, or whose
// key may only read by now, answers as if all were well.
func (s *Service) tryStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	if err := s.Volumes.Store.Put(ctx, tryPrefix+id.New().String(), tryBody); err != nil {
		return fmt.Errorf("write to the volume store: %w", err)
	}
	if err := s.Volumes.Store.Purge(ctx, tryPrefix); err != nil { // also what a node left that died
		s.Logger.WarnContext(ctx, "what was written to try the store is still there", "err", err)
	}
	return nil
}
