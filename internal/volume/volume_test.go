package volume_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

func TestSizesAndPrices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bytes int64
		gb    string
		rate  money.Rate // micro-USD per hour
	}{
		{0, "0", 0},
		{1, "0", 0},
		{4_999_999, "0", 0},
		{5_000_000, "0.01", 2},
		{14_999_999, "0.01", 2},
		{15_000_000, "0.02", 4},
		{1_000_000_000, "1", 200},
		{123_456_789_012, "123.46", 24_692},
		{500_000_000_000, "500", 100_000},
	} {
		v := volume.Volume{SizeBytes: tt.bytes}
		if v.SizeGB() != tt.gb || v.Rate() != tt.rate {
			t.Errorf("%d bytes: %s GB at %d, want %s at %d", tt.bytes, v.SizeGB(), v.Rate(), tt.gb, tt.rate)
		}
	}
}

func TestQuotaNotices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bytes   int64
		percent int
		says    string
	}{
		{0, 0, ""},
		{449_999_999_999, 89, ""},
		{450_000_000_000, 90, "90 % full"},
		{499_999_999_999, 99, "99 % full"},
		{500_000_000_000, 100, "is full"},
		{525_000_000_000, 105, "is full"},
		{525_000_000_001, 105, "paused"},
	} {
		v := volume.Volume{SizeBytes: tt.bytes, Name: "data"}
		notice := v.QuotaNotice()
		if v.QuotaPercent() != tt.percent || (notice == "") != (tt.says == "") || !strings.Contains(notice, tt.says) {
			t.Errorf("%d bytes: %d %%, %q", tt.bytes, v.QuotaPercent(), notice)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"  data ", "data", nil},
		{" \n", "Untitled", nil},
		{"", "Untitled", nil},
		{"a\tb", "a b", nil},
		{strings.Repeat("é", 80), strings.Repeat("é", 80), nil},
		{strings.Repeat("é", 81), "", volume.ErrName},
		{"data", "data", nil},
	} {
		v, err := h.Create(t.Context(), scope, tt.name, idem.Request{})
		if !errors.Is(err, tt.err) || v.Name != tt.want {
			t.Errorf("%q: %q, %v", tt.name, v.Name, err)
		}
	}
}

func TestHobbyHasOneVolume(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby)
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, err := h.Create(t.Context(), scope, "", idem.Request{})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, volume.ErrPlanLimit):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || refused.Load() != 63 {
		t.Errorf("%d made, %d refused", made.Load(), refused.Load())
	}
	list, err := h.List(t.Context(), scope)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	h.must(h.Delete(t.Context(), scope, list[0].ID))
	if _, err := h.Create(t.Context(), scope, "", idem.Request{}); err != nil {
		t.Errorf("after the first was deleted: %v", err)
	}
	if _, err := h.Restore(t.Context(), scope, list[0].ID, idem.Request{}); !errors.Is(err, volume.ErrPlanLimit) {
		t.Errorf("restoring a second one: %v", err)
	}
}

func TestOneKeyCreatesOneVolume(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	once := idem.Request{Scope: "s", Key: "k", BodyHash: id.Hash("body"), Wall: h.clock.Wall()}
	var wg sync.WaitGroup
	ids := make([]uuid.UUID, 32)
	for i := range ids {
		wg.Go(func() {
			v, err := h.Create(t.Context(), scope, "data", once)
			if err != nil {
				t.Error(err)
			}
			ids[i] = v.ID
		})
	}
	wg.Wait()
	list, err := h.List(t.Context(), scope)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d volumes, %v", len(list), err)
	}
	for _, got := range ids {
		if got != list[0].ID {
			t.Errorf("an answer names %s", got)
		}
	}
	once.BodyHash = id.Hash("other")
	if _, err := h.Create(t.Context(), scope, "other", once); !errors.Is(err, idem.ErrMismatch) {
		t.Errorf("another body: %v", err)
	}
}

func TestOnePodGetsTheVolume(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			a, err := h.attach(scope, v.ID)
			switch {
			case err == nil && a.Epoch == 1:
				won.Add(1)
			case errors.Is(err, volume.ErrInUse):
				lost.Add(1)
			default:
				t.Error(a, err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 63 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

func TestReleaseRaisesTheEpochOnce(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	first, err := h.attach(scope, v.ID)
	h.must(err)
	if got := h.find(scope, v.ID); !got.CurrentlyUsed || *got.PodID != first.PodID {
		t.Errorf("attached: %+v", got)
	}
	h.release(first)
	h.release(first)
	if got := h.find(scope, v.ID); got.CurrentlyUsed || got.Epoch != 2 {
		t.Errorf("released twice: %+v", got)
	}
	second, err := h.attach(scope, v.ID)
	h.must(err)
	h.release(first) // of another pod: nothing
	if got := h.find(scope, v.ID); !got.CurrentlyUsed || got.Epoch != second.Epoch || second.Epoch != 3 {
		t.Errorf("released by a former pod: %+v", got)
	}
	err = h.tx(func(tx pgx.Tx) error { return h.MarkRestoredTx(t.Context(), tx, v.ID, first.Epoch) })
	if !errors.Is(err, volume.ErrFenced) {
		t.Errorf("a former pod reports its restore: %v", err)
	}
}

// A refused attachment leaves the caller's transaction usable.
func TestRefusedAttachmentKeepsTheTransaction(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	_, err := h.attach(scope, v.ID)
	h.must(err)
	h.must(h.tx(func(tx pgx.Tx) error {
		if _, err := h.AttachTx(t.Context(), tx, scope, v.ID, id.New(), h.clock.Now()); !errors.Is(err, volume.ErrInUse) {
			t.Errorf("attach: %v", err)
		}
		_, err := h.FindTx(t.Context(), tx, scope, v.ID)
		return err
	}))
}

func TestForeignVolumesLookLikeNone(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	mine, other := h.team(team.Pro), h.team(team.Pro)
	foreign := h.create(other)
	deleted := h.create(other)
	h.must(h.Delete(t.Context(), other, deleted.ID))
	for name, volumeID := range map[string]uuid.UUID{"foreign": foreign.ID, "deleted": deleted.ID, "random": id.New()} {
		for op, try := range map[string]func() error{
			"find":     func() error { _, err := h.Find(t.Context(), mine, volumeID); return err },
			"delete":   func() error { return h.Delete(t.Context(), mine, volumeID) },
			"restore":  func() error { _, err := h.Restore(t.Context(), mine, volumeID, idem.Request{}); return err },
			"attach":   func() error { _, err := h.attach(mine, volumeID); return err },
			"segments": func() error { _, err := h.Segments(t.Context(), mine, volumeID); return err },
			"find in a transaction": func() error {
				return h.tx(func(tx pgx.Tx) error { _, err := h.FindTx(t.Context(), tx, mine, volumeID); return err })
			},
		} {
			if err := try(); err == nil || err.Error() != volume.ErrNotFound.Error() {
				t.Errorf("%s a %s volume: %v", op, name, err)
			}
		}
	}
	if _, err := h.attach(other, deleted.ID); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("attach a deleted volume: %v", err)
	}
}

func TestWhoMayDelete(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	admin := h.team(team.Pro)
	owner := teamtest.Join(t, h.Pool, admin.TeamID(), team.Member)
	member := teamtest.Join(t, h.Pool, admin.TeamID(), team.Member)
	viewer := teamtest.Join(t, h.Pool, admin.TeamID(), team.Viewer)
	for _, tt := range []struct {
		name  string
		scope team.Scope
		want  error
	}{
		{"another member", member, volume.ErrNotYours},
		{"a viewer", viewer, team.ErrForbidden},
		{"the owner", owner, nil},
		{"an admin", admin, nil},
	} {
		v := h.create(owner)
		if err := h.Delete(t.Context(), tt.scope, v.ID); !errors.Is(err, tt.want) {
			t.Errorf("%s deletes: %v", tt.name, err)
		}
		if tt.want == nil {
			if err := h.Delete(t.Context(), tt.scope, v.ID); !errors.Is(err, volume.ErrNotFound) {
				t.Errorf("%s deletes again: %v", tt.name, err)
			}
			continue
		}
		h.must(h.Delete(t.Context(), owner, v.ID))
		if _, err := h.Restore(t.Context(), tt.scope, v.ID, idem.Request{}); !errors.Is(err, tt.want) {
			t.Errorf("%s restores: %v", tt.name, err)
		}
	}
	if _, err := h.Create(t.Context(), viewer, "", idem.Request{}); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a viewer creates: %v", err)
	}
}

func TestUsedVolumeIsNotDeleted(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a, err := h.attach(scope, v.ID)
	h.must(err)
	if err := h.Delete(t.Context(), scope, v.ID); !errors.Is(err, volume.ErrInUse) {
		t.Errorf("delete while used: %v", err)
	}
	h.release(a)
	h.must(h.Delete(t.Context(), scope, v.ID))
}

// Of a delete and an attach at the same time one wins, and never both.
func TestDeleteAndAttachExcludeEachOther(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	for range 30 {
		v := h.create(scope)
		var deleted, attached error
		var wg sync.WaitGroup
		wg.Go(func() { deleted = h.Delete(t.Context(), scope, v.ID) })
		wg.Go(func() { _, attached = h.attach(scope, v.ID) })
		wg.Wait()
		if (deleted == nil) == (attached == nil) {
			t.Fatalf("delete: %v, attach: %v", deleted, attached)
		}
	}
}

func TestTrash(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	h.must(h.Delete(t.Context(), scope, v.ID))
	if list, err := h.List(t.Context(), scope); err != nil || list == nil || len(list) != 0 {
		t.Errorf("the list has %#v, %v", list, err)
	}
	trash, err := h.ListDeleted(t.Context(), scope)
	if err != nil || len(trash) != 1 || !trash[0].Deleted {
		t.Fatalf("the trash has %+v, %v", trash, err)
	}
	if at := trash[0]; at.PurgeAt == nil || !at.PurgeAt.Equal(at.DeletedAt.Add(volume.TrashFor)) {
		t.Errorf("deleted at %v it is kept until %v", at.DeletedAt, at.PurgeAt)
	}
	h.clock.Advance(volume.TrashFor - time.Microsecond)
	back, err := h.Restore(t.Context(), scope, v.ID, idem.Request{})
	if err != nil || back.Deleted || back.PurgeAt != nil {
		t.Fatalf("restore: %+v, %v", back, err)
	}
	if _, err := h.Restore(t.Context(), scope, v.ID, idem.Request{}); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("restore what is not deleted: %v", err)
	}
	h.must(h.Delete(t.Context(), scope, v.ID))
	h.clock.Advance(volume.TrashFor)
	if trash, err := h.ListDeleted(t.Context(), scope); err != nil || len(trash) != 0 {
		t.Errorf("after its time the trash has %+v, %v", trash, err)
	}
	if _, err := h.Restore(t.Context(), scope, v.ID, idem.Request{}); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("restore after its time: %v", err)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	var want []uuid.UUID
	for range 3 {
		want = append([]uuid.UUID{h.create(scope).ID}, want...)
		h.clock.Advance(time.Second)
	}
	list, err := h.List(t.Context(), scope)
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for i, v := range list {
		if v.ID != want[i] {
			t.Errorf("place %d has %s", i, v.ID)
		}
	}
}

func TestFrozenVolumes(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, used := h.create(scope), h.create(scope)
	_, err := h.attach(scope, used.ID)
	h.must(err)
	h.must(h.tx(func(tx pgx.Tx) error { return h.FreezeTx(t.Context(), tx, scope.TeamID(), h.clock.Now()) }))
	if _, err := h.attach(scope, v.ID); !errors.Is(err, volume.ErrFrozen) {
		t.Errorf("attach a frozen volume: %v", err)
	}
	if !h.find(scope, used.ID).Frozen {
		t.Error("a volume whose pod still ends was left out: it would be charged for ever")
	}
	h.must(h.tx(func(tx pgx.Tx) error { return h.ThawTx(t.Context(), tx, scope.TeamID(), h.clock.Now()) }))
	if _, err := h.attach(scope, v.ID); err != nil {
		t.Errorf("attach a thawed volume: %v", err)
	}
	if got := h.find(scope, used.ID); got.Frozen || !got.CurrentlyUsed {
		t.Errorf("after the payment: frozen %v, in use %v", got.Frozen, got.CurrentlyUsed)
	}
}

func segments(h *harbour, scope team.Scope, volumeID uuid.UUID) []wallet.Segment {
	h.t.Helper()
	s, err := h.Segments(h.t.Context(), scope, volumeID)
	h.must(err)
	return s
}
