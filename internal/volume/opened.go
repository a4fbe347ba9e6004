package volume

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/snapshot"
)

// opened are the volumes with a key of their team's that this node opened, so
// that it forgets them when they are locked, and whoever reads them ends. It is
// safe for concurrent use.
type opened struct {
	mu     sync.Mutex
	of     map[uuid.UUID]*openedVolume
	forget func(key snapshot.Key) // takes what was read with a key out of the caches
}

// An openedVolume is one, with those who read it now.
type openedVolume struct {
	key     snapshot.Key
	locked  bool
	readers map[*reading]bool
}

// A reading is what one caller reads of a volume.
type reading struct{ end context.CancelCauseFunc }

func newOpened(forget func(key snapshot.Key)) *opened {
	return &opened{of: map[uuid.UUID]*openedVolume{}, forget: forget}
}

// note remembers that a volume was opened by its key.
func (o *opened) note(volumeID uuid.UUID, key snapshot.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[volumeID] == nil {
		o.of[volumeID] = &openedVolume{key: key, readers: map[*reading]bool{}}
	}
}

// begin gives whoever reads a volume that was opened a context which ends, by
// ErrLocked, with the volume's being locked. Call done when nothing is read any
// more.
func (o *opened) begin(ctx context.Context, v state) (_ context.Context, done func()) {
	if !v.TeamKey {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.of[v.ID]
	if of == nil { // locked since it was opened
		end(ErrLocked)
		return ctx, func() {}
	}
	r := &reading{end}
	of.readers[r] = true
	return ctx, func() {
		end(nil)
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(of.readers, r)
		if of.locked && len(of.readers) == 0 { // what it read last may have come after the lock
			o.forget(of.key)
		}
	}
}

// lock ends all who read a volume, and forgets it.
func (o *opened) lock(volumeID uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.of[volumeID]
	if of == nil {
		return
	}
	delete(o.of, volumeID)
	of.locked = true
	for r := range of.readers {
		r.end(ErrLocked)
	}
	o.forget(of.key)
}

// list names the volumes that are open here.
func (o *opened) list() []uuid.UUID {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []uuid.UUID
	for id := range o.of {
		ids = append(ids, id)
	}
	return ids
}

// becauseLocked is why reading failed: a context that ended with a lock says so
// itself nowhere.
func becauseLocked(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrLocked) {
		return ErrLocked
	}
	return err
}

const sqlListUnlocked = `select id from volume where id = any($1) and key_sealed is not null`

// FollowLocks ends what this node reads of volumes that were locked, on whatever
// node, and forgets what it knows of them. Call it every second or two.
func (s *Service) FollowLocks(ctx context.Context) error {
	open := s.opened.list()
	if len(open) == 0 {
		return nil
	}
	rows, err := s.Pool.Query(ctx, sqlListUnlocked, open)
	if err != nil {
		return fmt.Errorf("list unlocked volumes: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list unlocked volumes: %w", err)
	}
	unlocked := map[uuid.UUID]bool{}
	for _, id := range ids {
		unlocked[id] = true
	}
	for _, id := range open {
		if !unlocked[id] {
			s.opened.lock(id)
		}
	}
	return nil
}
