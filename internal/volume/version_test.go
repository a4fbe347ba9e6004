package volume_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// numbers lists the versions that are kept.
func (h *harbour) numbers(scope team.Scope, v volume.Volume) []int64 {
	h.t.Helper()
	versions, err := h.Versions(h.t.Context(), scope, v.ID)
	h.must(err)
	var out []int64
	for _, one := range versions {
		out = append(out, one.Seq)
	}
	return out
}

// The newest stays for ever, and of the others those that the rule names. The
// collector is told the same.
func TestVersionsAreKeptByTheRule(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.Retention = usual
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	start := h.clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
	for _, at := range []time.Duration{ // seq 1 to 12
		0, time.Hour, 23 * time.Hour, // the first day
		30 * time.Hour, // the second
		8 * 24 * time.Hour, 8*24*time.Hour + 10*time.Minute, 8*24*time.Hour + 20*time.Minute, 8*24*time.Hour + 70*time.Minute,
		8*24*time.Hour + 71*time.Minute, 8*24*time.Hour + 72*time.Minute, 8*24*time.Hour + 73*time.Minute, 8*24*time.Hour + 74*time.Minute,
	} {
		h.clock.Advance(start.Add(at).Sub(h.clock.Now()))
		_, err := a.commit(a.draft(1000))
		h.must(err)
	}
	for _, tt := range []struct {
		later time.Duration
		want  []int64
	}{
		{0, []int64{12, 11, 10, 9, 7, 4}},           // 7 is the last of its hour, 4 of its day
		{23 * time.Hour, []int64{12, 11, 10, 9, 7}}, // 4 is over 7 days old
		{25 * time.Hour, []int64{12, 11, 10, 9}},
		{2000 * time.Hour, []int64{12, 11, 10, 9}},
	} {
		h.clock.Advance(start.Add(8*24*time.Hour + 74*time.Minute + tt.later).Sub(h.clock.Now()))
		if got := h.numbers(scope, v); !slices.Equal(got, tt.want) {
			t.Errorf("after %v: %v, want %v", tt.later, got, tt.want)
		}
		k, err := h.Kept(t.Context(), v.ID)
		h.must(err)
		if k.HeadSeq != 12 || len(k.Roots) != len(tt.want) || len(k.Roots)+len(k.Expired) != 12 || slices.Contains(k.Expired, 12) {
			t.Errorf("after %v: %+v", tt.later, k)
		}
		for _, seq := range k.Expired {
			if slices.Contains(tt.want, seq) {
				t.Errorf("version %d is listed and expired", seq)
			}
		}
	}
	if _, err := h.OpenVersion(t.Context(), scope, v.ID, "7"); !errors.Is(err, volume.ErrNoVersion) {
		t.Errorf("a version that is not kept: %v", err)
	}
}

func TestRetentionsAreRead(t *testing.T) {
	t.Parallel()
	if r, err := volume.ParseRetention("3, 24,7"); err != nil || r != usual {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{"", "3", "3,24", "3,24,7,1", "-1,0,0", "a,b,c", "1001,0,0", "3;24;7"} {
		if r, err := volume.ParseRetention(text); err == nil || !strings.Contains(err.Error(), "3,24,7") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

// A restore that the store could not publish is published by the next sweep.
func TestARestoreOutlivesTheStore(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.Retention = usual
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	for range 2 {
		_, err := a.commit(a.draft(1000))
		h.must(err)
	}
	h.release(a.Attachment)
	h.store.setFail(func(op, _ string) error {
		if op == "put" {
			return blob.ErrUnavailable
		}
		return nil
	})
	got, err := h.RestoreVersion(t.Context(), scope, v.ID, "1", idem.Request{})
	h.must(err)
	object := snapshot.KeyOf("v/"+v.ID.String(), snapshot.ID(got.SnapshotID))
	if keys := h.store.keys(object); len(keys) != 0 {
		t.Fatalf("stored %v", keys)
	}
	h.must(h.SweepStaging(t.Context()))
	if err := h.PublishDue(t.Context()); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("published by a store that is down: %v", err)
	}
	h.store.setFail(nil)
	h.must(h.PublishDue(t.Context()))
	h.must(h.PublishDue(t.Context()))
	if keys := h.store.keys(object); len(keys) != 1 {
		t.Errorf("stored %v", keys)
	}
	if len(h.finals) != 0 {
		t.Errorf("pods %v were told of it", h.finals)
	}
	b := h.boot(scope, v.ID) // and the agent builds on it
	if b.head != snapshot.ID(got.SnapshotID).String() {
		t.Errorf("the next pod finds %s", b.head)
	}
	if _, err := b.commit(b.draft(5000)); err != nil {
		t.Errorf("a commit on a restored version: %v", err)
	}
}

// A zombie of before the restore commits nothing, and is signed nothing.
func TestARestoreFencesWhoCameBefore(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.Retention = usual
	scope := h.team(team.Pro)
	v := h.create(scope)
	zombie := h.boot(scope, v.ID)
	for range 2 {
		_, err := zombie.commit(zombie.draft(1000))
		h.must(err)
	}
	d := zombie.draft(2000)
	h.must(zombie.upload(d))
	h.release(zombie.Attachment)
	_, err := h.RestoreVersion(t.Context(), scope, v.ID, "1", idem.Request{})
	h.must(err)
	if _, err := zombie.send(zombie.propose(d)); !errors.Is(err, volume.ErrFenced) {
		t.Errorf("a zombie commits: %v", err)
	}
	if _, err := zombie.sign(d); !errors.Is(err, volume.ErrFenced) {
		t.Errorf("a zombie is signed: %v", err)
	}
	if got := h.find(scope, v.ID).HeadSeq; got != 3 {
		t.Errorf("the head is %d", got)
	}
}

// Of a restore and an attach at the same time the pod begins with the one head
// or the restore is refused: never both, never neither.
func TestARestoreAgainstAnAttach(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.Retention = usual
	scope := h.team(team.Pro)
	refused, done := 0, 0
	for range 20 {
		v := h.create(scope)
		a := h.boot(scope, v.ID)
		for range 2 {
			_, err := a.commit(a.draft(1000))
			h.must(err)
		}
		h.release(a.Attachment)
		var wg sync.WaitGroup
		var restored, attached error
		var seq int64
		wg.Go(func() {
			_, restored = h.RestoreVersion(t.Context(), scope, v.ID, "1", idem.Request{})
		})
		wg.Go(func() {
			attached = h.tx(func(tx pgx.Tx) error {
				if _, err := h.AttachTx(t.Context(), tx, scope, v.ID, id.New(), h.clock.Now()); err != nil {
					return err
				}
				now, err := h.FindTx(t.Context(), tx, scope, v.ID)
				seq = now.HeadSeq
				return err
			})
		})
		wg.Wait()
		h.must(attached)
		switch {
		case restored == nil && seq == 3:
			done++
		case errors.Is(restored, volume.ErrInUse) && seq == 2:
			refused++
		default:
			t.Errorf("restored: %v; the pod began with %d", restored, seq)
		}
		if now := h.find(scope, v.ID); now.HeadSeq != seq {
			t.Errorf("the head is %d, the pod began with %d", now.HeadSeq, seq)
		}
	}
	t.Logf("%d restored, %d refused", done, refused)
}
