package volume_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// A slow store lets something else happen before each of its deletions.
type slow struct {
	*memory
	before func(key string)
}

func (s slow) Delete(ctx context.Context, key string) error {
	s.before(key)
	return s.memory.Delete(ctx, key)
}

func (s slow) Purge(ctx context.Context, prefix string) error {
	for _, key := range s.keys(prefix) {
		if err := s.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// purger is a node that purges, with something happening before each deletion.
func (h *harbour) purger(before func(key string)) *volume.Service {
	d := h.Deps
	d.Store = slow{h.store, before}
	return volume.New(d)
}

// trashed makes a volume with data whose time in the trash is over.
func (h *harbour) trashed(scope team.Scope) volume.Volume {
	h.t.Helper()
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(1))
	h.release(a.Attachment)
	h.must(h.Delete(h.t.Context(), scope, v.ID))
	return v
}

// behind is a node whose clock is a second behind, for which no time in the
// trash is over yet.
func (h *harbour) behind() *volume.Service {
	d := h.Deps
	d.Clock = clock.Fixed(h.clock.Now().Add(-time.Second)).Clock
	return volume.New(d)
}

// A restored database does not know who took a volume out of the trash since:
// nothing is purged before the operator has said that it was looked through.
func TestARestoredDatabasePurgesNothing(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	v := h.trashed(h.team(team.Pro))
	h.clock.Advance(volume.TrashFor)
	since := h.clock.Now()
	restored := &since
	d := h.Deps
	d.RestoredAt = func(context.Context) (*time.Time, error) { return restored, nil }
	node := volume.New(d)
	before := len(h.store.keys("v/" + v.ID.String()))
	h.must(node.PurgeDue(t.Context()))
	if after := len(h.store.keys("v/" + v.ID.String())); after != before || before == 0 {
		t.Errorf("%d of %d objects are left", after, before)
	}
	restored = nil
	h.must(node.PurgeDue(t.Context()))
	if left := h.store.keys("v/" + v.ID.String()); len(left) != 0 {
		t.Errorf("after the operator confirmed %q are left", left)
	}
}

// What is taken out of the trash in time keeps all its bytes, what is being
// purged stays in: also when the one happens in the middle of the other, on
// nodes whose clocks differ.
func TestARestoreAndAPurgeNeverShareAVolume(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]func(h *harbour, scope team.Scope, volumeID uuid.UUID) bool{
		"by a user": func(h *harbour, scope team.Scope, volumeID uuid.UUID) bool {
			_, err := h.behind().Restore(t.Context(), scope, volumeID, idem.Request{})
			if err != nil && !errors.Is(err, volume.ErrNotFound) {
				t.Error(err)
			}
			return err == nil
		},
		"by a payment": func(h *harbour, scope team.Scope, volumeID uuid.UUID) bool {
			h.must(h.tx(func(tx pgx.Tx) error {
				return h.RedeemTx(t.Context(), tx, scope.TeamID(), h.clock.Now().Add(-time.Second))
			}))
			return !h.find(scope, volumeID).Deleted
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t)
			scope := h.team(team.Pro)
			one, two := h.trashed(scope), h.trashed(scope)
			_, err := h.Pool.Exec(t.Context(), `update volume set deleted_by = $1`, uuid.Nil)
			if name == "by a user" {
				_, err = h.Pool.Exec(t.Context(), `update volume set deleted_by = $1`, scope.UserID())
			}
			h.must(err)
			h.clock.Advance(volume.TrashFor)
			var first, second string // which is purged first is the database's choice
			back := false
			whole := map[string]int{}
			for _, v := range []volume.Volume{one, two} {
				whole[v.ID.String()] = len(h.store.keys("v/" + v.ID.String()))
			}
			node := h.purger(func(key string) {
				if first != "" {
					return
				}
				first, second = one.ID.String(), two.ID.String()
				if strings.Contains(key, second) {
					first, second = second, first
				}
				if restore(h, scope, uuid.MustParse(first)) {
					t.Error("a volume that is being purged came out of the trash")
				}
				back = restore(h, scope, uuid.MustParse(second))
			})
			h.must(node.PurgeDue(t.Context()))
			if !back {
				t.Error("a volume whose purge had not begun could not be taken out of the trash")
			}
			if got := len(h.store.keys("v/" + first)); got != 0 {
				t.Errorf("%d objects of the purged volume are left", got)
			}
			if got := len(h.store.keys("v/" + second)); got != whole[second] || got == 0 {
				t.Errorf("the restored volume has %d of %d objects", got, whole[second])
			}
			if v := h.find(scope, uuid.MustParse(second)); v.Deleted || v.HeadSeq == 0 {
				t.Errorf("the restored volume: deleted %v, head %d", v.Deleted, v.HeadSeq)
			}
		})
	}
}

func TestTwoNodesPurgeAVolumeOnce(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.trashed(scope)
	h.clock.Advance(volume.TrashFor)
	var mu sync.Mutex
	told := map[uuid.UUID]int{}
	h.OnPurgeTx = func(_ context.Context, _ pgx.Tx, p volume.Purged) error {
		mu.Lock()
		defer mu.Unlock()
		told[p.VolumeID]++
		return nil
	}
	var once sync.Once
	slowNode := h.purger(func(string) {
		once.Do(func() { h.must(h.PurgeDue(t.Context())) }) // the other one, start to end
	})
	h.must(slowNode.PurgeDue(t.Context()))
	if told[v.ID] != 1 {
		t.Errorf("the purge was recorded %d times", told[v.ID])
	}
	if keys := h.store.keys("v/" + v.ID.String()); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

// A purge that died between its claim and its end is finished by the next.
func TestAClaimedPurgeIsFinishedLater(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.trashed(scope)
	h.clock.Advance(volume.TrashFor)
	ctx, cancel := context.WithCancel(t.Context())
	if err := h.purger(func(string) { cancel() }).PurgeDue(ctx); err == nil {
		t.Fatal("the purge did not die")
	}
	if _, err := h.behind().Restore(t.Context(), scope, v.ID, idem.Request{}); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("restore of a half purged volume: %v", err)
	}
	h.must(h.PurgeDue(t.Context()))
	if keys := h.store.keys("v/" + v.ID.String()); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}
