package volume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

func TestCommitsMoveTheHeadAndThePrice(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	type step struct {
		size int64
		rate money.Rate
		gb   string
	}
	var want []wallet.Segment
	for i, s := range []step{
		{4_000_000, 0, "0"},                 // too little to be charged: no segment
		{3_000_000_000, 600, "3"},           // the first one
		{3_004_000_000, 600, "3"},           // the same figure: the segment goes on
		{3_010_000_000, 602, "3.01"},        // another
		{0, 0, "0"},                         // empty again: metered at no cost
		{123_456_789_012, 24_692, "123.46"}, // and back
	} {
		h.clock.Advance(time.Minute)
		var blobs []int64
		for left := s.size; left > 0; left -= min(left, 1_000_000_000) {
			blobs = append(blobs, min(left, 1_000_000_000))
		}
		out, err := a.commit(a.draft(blobs...))
		if err != nil {
			t.Fatalf("commit %d: %v", i+1, err)
		}
		if out.SizeBytes != s.size || out.Head.Seq != int64(i+1) {
			t.Errorf("commit %d: %+v", i+1, out)
		}
		now := h.clock.Now()
		if got := h.find(scope, v.ID); got.SizeGB() != s.gb || got.Rate() != s.rate || !got.LastCommitAt.Equal(now) {
			t.Errorf("commit %d: %+v", i+1, got)
		}
		if n := len(want); s.rate > 0 && n == 0 || n > 0 && want[n-1].Rate != s.rate {
			if n > 0 {
				want[n-1].To = &now
			}
			want = append(want, wallet.Segment{From: now, Rate: s.rate})
		}
		if diff := cmp.Diff(want, segments(h, scope, v.ID)); diff != "" && len(want) > 0 {
			t.Errorf("commit %d: %s", i+1, diff)
		}
	}
	if got := len(h.store.keys("v/" + v.ID.String() + "/snapshots/")); got != 6 {
		t.Errorf("%d snapshots are published", got)
	}
	if got := h.store.keys("staging/"); len(got) != 0 {
		t.Errorf("staged: %v", got)
	}
	h.clock.Advance(time.Hour)
	h.release(a.Attachment)
	h.must(h.Delete(t.Context(), scope, v.ID))
	end := segments(h, scope, v.ID)
	if last := end[len(end)-1]; last.To == nil || !last.To.Equal(h.clock.Now()) {
		t.Errorf("the meter of a deleted volume: %+v", last)
	}
}

func TestRepeatedCommitIsOneCommit(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	d := a.draft(1_000_000_000)
	h.must(a.upload(d))
	c := a.propose(d)
	var wg sync.WaitGroup
	outs := make([]agentapi.Committed, 32)
	for i := range outs {
		wg.Go(func() {
			out, final, err := h.Commit(t.Context(), a.Attachment, c)
			if err != nil || final {
				t.Error(final, err)
			}
			outs[i] = out
		})
	}
	wg.Wait()
	h.clock.Advance(time.Hour)
	again, _, err := h.Commit(t.Context(), a.Attachment, c)
	h.must(err)
	for _, out := range append(outs, again) {
		if diff := cmp.Diff(outs[0], out); diff != "" || out.Head.Seq != 1 || out.Head.Snapshot != c.SnapshotID {
			t.Fatalf("%+v %s", out, diff)
		}
	}
	if s := segments(h, scope, v.ID); len(s) != 1 {
		t.Errorf("segments %+v", s)
	}
}

// Of several commits on one head one is accepted.
func TestOneOfManyCommitsOnAHead(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	commits := make([]agentapi.Commit, 16)
	for i := range commits {
		d := a.draft(int64(i+1) * 100_000_000)
		h.must(a.upload(d))
		commits[i] = a.propose(d)
	}
	errs := make([]error, len(commits))
	var wg sync.WaitGroup
	for i, c := range commits {
		wg.Go(func() { _, _, errs[i] = h.Commit(t.Context(), a.Attachment, c) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, volume.ErrParent):
			t.Errorf("commit %d: %v", i, err)
		}
	}
	got := h.find(scope, v.ID)
	if won < 0 || got.HeadSeq != 1 || got.SizeBytes != int64(won+1)*100_000_000 {
		t.Errorf("won %d, volume %+v", won, got)
	}
}

func TestRefusedCommits(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, foreign := h.create(scope), h.create(scope)
	a, stranger := h.boot(scope, v.ID), h.boot(scope, foreign.ID)
	_, err := a.commit(a.draft(1_000_000_000))
	h.must(err)
	head := a.head
	snapAt := func(at time.Time, d draft) map[string]any {
		return map[string]any{"time": at, "tree": d.tree, "parent": head}
	}
	for name, tt := range map[string]struct {
		change func(d draft, c agentapi.Commit) agentapi.Commit
		want   error
	}{
		"an older epoch":    {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Epoch--; return c }, volume.ErrFenced},
		"a newer epoch":     {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Epoch++; return c }, volume.ErrFenced},
		"no parent":         {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Parent = ""; return c }, volume.ErrParent},
		"another parent":    {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Parent = c.SnapshotID; return c }, volume.ErrParent},
		"a parent like tar": {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Parent = "x"; return c }, volume.ErrCommit},
		"bytes and id differ": {func(_ draft, c agentapi.Commit) agentapi.Commit {
			c.Snapshot = append(bytes.Clone(c.Snapshot), 0)
			return c
		}, volume.ErrCommit},
		"another tree": {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Tree = c.SnapshotID; return c }, volume.ErrCommit},
		"another volume's key": {func(d draft, c agentapi.Commit) agentapi.Commit {
			other := stranger.proposeSnapshot(d, snapAt(a.at.Add(time.Second), d))
			c.Snapshot, c.SnapshotID = other.Snapshot, other.SnapshotID
			return c
		}, volume.ErrCommit},
		"the head's time": {func(d draft, c agentapi.Commit) agentapi.Commit {
			return a.proposeSnapshot(d, snapAt(a.at, d))
		}, volume.ErrCommit},
		"an earlier time": {func(d draft, c agentapi.Commit) agentapi.Commit {
			return a.proposeSnapshot(d, snapAt(a.at.Add(-time.Nanosecond), d))
		}, volume.ErrCommit},
		"a snapshot of another parent": {func(d draft, c agentapi.Commit) agentapi.Commit {
			return a.proposeSnapshot(d, map[string]any{"time": a.at.Add(time.Second), "tree": d.tree, "parent": d.tree})
		}, volume.ErrCommit},
		"an object twice": {func(_ draft, c agentapi.Commit) agentapi.Commit {
			c.Objects = append(c.Objects, c.Objects[0])
			return c
		}, volume.ErrCommit},
		"an object that was not granted": {func(_ draft, c agentapi.Commit) agentapi.Commit {
			c.Objects = append(c.Objects, agentapi.Object{ID: c.SnapshotID, Kind: agentapi.KindData, Size: 1})
			return c
		}, volume.ErrCommit},
		"an object of another volume": {func(d draft, c agentapi.Commit) agentapi.Commit {
			other := stranger.draft(1)
			h.must(stranger.upload(other))
			c.Objects = append(c.Objects, other.objects[0])
			return c
		}, volume.ErrCommit},
		"another size": {func(_ draft, c agentapi.Commit) agentapi.Commit {
			c.Objects[0].Size++
			return c
		}, volume.ErrCommit},
		"without its index": {func(_ draft, c agentapi.Commit) agentapi.Commit {
			c.Objects = c.Objects[:len(c.Objects)-1]
			return c
		}, volume.ErrCommit},
		"an index that says less than its pack holds": {func(draft, agentapi.Commit) agentapi.Commit {
			a.lie = func(entry map[string]any) { entry["length"] = 39 }
			d := a.draft(2_000_000_000)
			a.lie = nil
			h.must(a.upload(d))
			return a.propose(d)
		}, volume.ErrCommit},
		"counts below zero":  {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Skipped = -1; return c }, volume.ErrCommit},
		"an empty snapshot":  {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Snapshot = nil; return c }, volume.ErrCommit},
		"a snapshot of 1 MB": {func(_ draft, c agentapi.Commit) agentapi.Commit { c.Snapshot = make([]byte, 1<<20+1); return c }, volume.ErrCommit},
	} {
		d := a.draft(2_000_000_000)
		h.must(a.upload(d))
		if _, _, err := h.Commit(t.Context(), a.Attachment, tt.change(d, a.propose(d))); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if got := h.find(scope, v.ID); got.HeadSeq != 1 || got.SizeBytes != 1_000_000_000 {
			t.Fatalf("%s: the head moved: %+v", name, got)
		}
	}
	missing := a.draft(1)
	_, err = a.sign(missing)
	h.must(err)
	if _, err := a.send(a.propose(missing)); !errors.Is(err, volume.ErrCommit) {
		t.Errorf("objects that are not in the store: %v", err)
	}
	if _, err := a.commit(a.draft(1)); err != nil {
		t.Errorf("after all refusals: %v", err)
	}
}

func TestNothingIsCommittedBeforeTheRestoreIsReported(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.release(a.Attachment)
	next, err := h.attach(scope, v.ID)
	h.must(err)
	a.Attachment = next
	if _, err := a.commit(a.draft(1)); !errors.Is(err, volume.ErrNotRestored) {
		t.Errorf("before: %v", err)
	}
	h.restored(next)
	if _, err := a.commit(a.draft(1)); err != nil {
		t.Errorf("after: %v", err)
	}
}

// A pod that lost its volume can neither write nor commit, however its calls
// fall between those of the pod that has it now.
func TestZombieNeverGetsThrough(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	old := h.boot(scope, v.ID)
	base := old.draft(1_000_000)
	_, err := old.commit(base)
	h.must(err)
	base.objects = nil // later snapshots are of the same tree
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		commit := old.propose(base)
		late := old.propose(base)
		var next *agent
		var early error
		var wg sync.WaitGroup
		wg.Go(func() { _, _, early = h.Commit(t.Context(), old.Attachment, commit) })
		wg.Go(func() {
			_, err := old.Sign(t.Context(), old.Attachment, agentapi.Sign{Epoch: old.Epoch, Ops: []agentapi.Op{
				{Put: true, Object: agentapi.Object{ID: commit.SnapshotID, Kind: agentapi.KindData, Size: 1}},
			}})
			if err != nil && !errors.Is(err, volume.ErrFenced) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			h.release(old.Attachment)
			next = h.boot(scope, v.ID)
		})
		wg.Wait()
		if early != nil && !errors.Is(early, volume.ErrFenced) && !errors.Is(early, volume.ErrNotRestored) {
			t.Fatal(early)
		}
		if (early == nil) != (next.head == commit.SnapshotID) {
			t.Fatalf("round %d: the zombie got %v, the next pod found head %s", i, early, next.head)
		}
		_, err := old.Sign(t.Context(), old.Attachment, agentapi.Sign{Epoch: old.Epoch, Ops: []agentapi.Op{
			{Put: true, Object: agentapi.Object{ID: late.SnapshotID, Kind: agentapi.KindData, Size: 1}},
		}})
		if !errors.Is(err, volume.ErrFenced) {
			t.Fatalf("round %d: the zombie may write: %v", i, err)
		}
		if _, _, err := h.Commit(t.Context(), old.Attachment, late); !errors.Is(err, volume.ErrFenced) {
			t.Fatalf("round %d: the zombie may commit: %v", i, err)
		}
		if _, err := h.Grant(t.Context(), old.Attachment, true); !errors.Is(err, volume.ErrFenced) {
			t.Fatalf("round %d: the zombie gets the keys: %v", i, err)
		}
		old = next
	}
	t.Attr("measured", fmt.Sprintf("0 of %d calls got through in %d interleavings", 3*rounds, rounds))
}

// The node dies between the commit and the publication: a sweep heals it.
func TestUnpublishedSnapshotIsPublishedBySweep(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	down := func(op, key string) error {
		if op == "put" && strings.Contains(key, "/snapshots/") {
			return blob.ErrUnavailable
		}
		return nil
	}
	h.store.setFail(down)
	out, err := a.commit(a.draft(1_000_000_000))
	h.must(err)
	published := "v/" + v.ID.String() + "/snapshots/" + out.Head.Snapshot
	if keys := h.store.keys(published); len(keys) != 0 {
		t.Fatal("it is published")
	}
	if err := h.PublishDue(t.Context()); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("a sweep without a store: %v", err)
	}
	h.store.setFail(nil)
	var wg sync.WaitGroup
	for range 4 { // several nodes sweep
		wg.Go(func() {
			if err := h.PublishDue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys := h.store.keys(published); len(keys) != 1 {
		t.Error("it is not published")
	}
	if keys := h.store.keys("staging/"); len(keys) != 0 {
		t.Errorf("staged: %v", keys)
	}
}

func TestFinalCountsWhenItIsPublished(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	d := a.draft(1_000_000_000)
	h.must(a.upload(d))
	c := a.propose(d)
	c.Final = true
	if _, final, err := h.Commit(t.Context(), a.Attachment, c); err != nil || final {
		t.Fatalf("the agent's word alone ended the pod: %v, %v", final, err)
	}
	state := func() [2]bool {
		t.Helper()
		committed, published, err := h.FinalState(t.Context(), v.ID, a.PodID)
		h.must(err)
		return [2]bool{committed, published}
	}
	if state() != [2]bool{} {
		t.Error("it counts as final")
	}
	a.Final = true // now the pod is ending, and nothing differs from that snapshot
	if _, final, err := h.Commit(t.Context(), a.Attachment, c); err != nil || !final || state() != [2]bool{true, true} {
		t.Errorf("the same snapshot as the final one: %v, %v, %v", final, err, state())
	}

	a.head, a.at = c.SnapshotID, a.at.Add(time.Second)
	d = a.draft(2_000_000_000)
	h.must(a.upload(d))
	c = a.propose(d)
	c.Final = true
	h.store.setFail(func(op, key string) error {
		if op == "put" && strings.Contains(key, "/snapshots/") {
			return blob.ErrUnavailable
		}
		return nil
	})
	if _, final, err := h.Commit(t.Context(), a.Attachment, c); !errors.Is(err, blob.ErrUnavailable) || final {
		t.Errorf("a final commit that is not published: %v, %v", final, err)
	}
	if state() != [2]bool{true, false} {
		t.Errorf("state %v", state())
	}
	h.store.setFail(nil)
	h.must(h.PublishDue(t.Context()))
	if state() != [2]bool{true, true} || len(h.finals) != 1 || h.finals[0] != a.PodID {
		t.Errorf("state %v, told of %v", state(), h.finals)
	}
	if _, final, err := h.Commit(t.Context(), a.Attachment, c); err != nil || !final {
		t.Errorf("repeated: %v, %v", final, err)
	}
}

// The transaction fails after the snapshot was staged: nothing moved, the same
// commit may come again, and what is left over is swept.
func TestStagedAndNotCommitted(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	broken := errors.New("broken")
	fails := broken
	var told []uuid.UUID
	h.OnCommitTx = func(_ context.Context, _ pgx.Tx, volumeID, podID uuid.UUID, final bool, at time.Time) error {
		if volumeID != v.ID || podID != a.PodID || final || !at.Equal(h.clock.Now()) {
			t.Errorf("told of %s, %s, %v, %s", volumeID, podID, final, at)
		}
		told = append(told, podID)
		return fails
	}
	d := a.draft(1_000_000_000)
	h.must(a.upload(d))
	c := a.propose(d)
	if _, _, err := h.Commit(t.Context(), a.Attachment, c); !errors.Is(err, broken) {
		t.Fatalf("commit: %v", err)
	}
	if got := h.find(scope, v.ID); got.HeadSeq != 0 || len(segments(h, scope, v.ID)) != 0 {
		t.Errorf("the head moved: %+v", got)
	}
	if keys := h.store.keys("staging/"); len(keys) != 1 {
		t.Errorf("staged: %v", keys)
	}
	h.must(h.PublishDue(t.Context()))
	h.must(h.SweepStaging(t.Context()))
	if keys := h.store.keys("staging/"); len(keys) != 1 {
		t.Errorf("swept while the pod may commit: %v", keys)
	}
	fails = nil
	if _, _, err := h.Commit(t.Context(), a.Attachment, c); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	fails = broken
	a.head, a.at = c.SnapshotID, a.at.Add(time.Second)
	if _, err := a.commit(a.draft(1)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	h.release(a.Attachment)
	h.must(h.SweepStaging(t.Context()))
	if keys := h.store.keys("staging/"); len(keys) != 0 || len(told) != 3 {
		t.Errorf("staged: %v", keys)
	}
}
