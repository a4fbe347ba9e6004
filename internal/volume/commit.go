package volume

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/wallet"
)

// A proposal is a commit that was read and found consistent in itself.
type proposal struct {
	id       snapshot.ID
	tree     snapshot.ID
	parent   snapshot.ID // zero: none
	stored   []byte
	objects  []object
	final    bool
	skipped  int64
	unstable int64
	// found on the server
	timeNS   int64
	measured snapshot.Measured
}

// Commit moves the volume's head to a new snapshot, if the attachment still
// holds the volume, has restored it, and builds on the head. Everything that
// counts is checked here: the objects are in the store, the snapshot is of
// this volume and later than the head, its size is measured. One statement
// moves the head; the snapshot object is published after it. final says that
// the pod's last sync is committed and published. A repeated commit answers
// as the first did. The faults are ErrFenced, ErrNotRestored, ErrParent,
// ErrCommit and ErrQuota.
func (s *Service) Commit(ctx context.Context, a Attachment, in agentapi.Commit) (out agentapi.Committed, final bool, err error) {
	p, err := parseCommit(a, in)
	if err != nil {
		return agentapi.Committed{}, false, err
	}
	done, err := s.findCommitted(ctx, a, p.id)
	if err == nil {
		return s.finish(ctx, a, done, p)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return agentapi.Committed{}, false, err
	}
	refused := s.move(ctx, a, p)
	if refused != nil && !fenced(refused) {
		return agentapi.Committed{}, false, refused
	}
	done, err = s.findCommitted(ctx, a, p.id)
	if errors.Is(err, pgx.ErrNoRows) && refused != nil {
		return agentapi.Committed{}, false, refused // another commit was first, and it was not this one
	}
	if err != nil {
		return agentapi.Committed{}, false, fmt.Errorf("read what was committed of volume %s: %w", a.VolumeID, err)
	}
	fail.Point("volume.commit.committed")
	return s.finish(ctx, a, done, p)
}

// move checks a proposal, stages it and moves the head to it.
func (s *Service) move(ctx context.Context, a Attachment, p proposal) error {
	v, err := findHeld(ctx, s.Pool, sqlFindState, a)
	if err != nil {
		return err
	}
	if err := s.check(ctx, v, &p); err != nil {
		return s.unlessCollected(ctx, a, v, err)
	}
	if err := s.stage(ctx, v.ID, p); err != nil {
		return err
	}
	fail.Point("volume.commit.staged")
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.commitTx(ctx, tx, a, v, p) })
}

// unlessCollected is a refusal of a proposal, unless a collection replaced packs
// while it was looked at: what was read then is of two generations, and the agent
// has to say hello again.
func (s *Service) unlessCollected(ctx context.Context, a Attachment, v state, refused error) error {
	if !errors.Is(refused, ErrCommit) {
		return refused
	}
	now, err := findHeld(ctx, s.Pool, sqlFindState, a)
	if err != nil {
		return err
	}
	if now.Generation != v.Generation {
		return ErrParent.Because(refused)
	}
	return refused
}

// fenced says whether a refusal may come from an equal commit that was faster.
func fenced(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrParent) || errors.Is(err, ErrNotRestored)
}

// finish publishes what is committed and answers. A background snapshot that
// cannot be published now is left to PublishDue; a final one is not done.
func (s *Service) finish(ctx context.Context, a Attachment, c committed, p proposal) (agentapi.Committed, bool, error) {
	if p.final && !c.Final {
		var err error
		if c.Final, err = s.makeFinal(ctx, a, c); err != nil {
			return agentapi.Committed{}, false, err
		}
	}
	if c.PublishedAt == nil {
		err := s.publish(ctx, c, p.stored)
		if err != nil && c.Final {
			return agentapi.Committed{}, false, err
		}
		if err != nil {
			s.Logger.WarnContext(ctx, "a snapshot is committed and not published yet", "volume", c.VolumeID, "seq", c.Seq, "err", err)
		}
	}
	fail.Point("volume.commit.published")
	return c.wire(), c.Final, nil
}

const sqlMakeFinal = `
update volume_snapshot s set final = true
from volume v
where s.volume_id = @volume and s.seq = @seq and v.id = s.volume_id
  and v.head_seq = s.seq and v.epoch = @epoch and v.pod_id = @pod`

// makeFinal makes a background snapshot the final one: the pod began to end
// after it, and nothing differs from it. It says whether that is so.
func (s *Service) makeFinal(ctx context.Context, a Attachment, c committed) (bool, error) {
	tag, err := s.Pool.Exec(ctx, sqlMakeFinal, pgx.NamedArgs{
		"volume": a.VolumeID, "seq": c.Seq, "epoch": a.Epoch, "pod": a.PodID,
	})
	if err != nil {
		return false, fmt.Errorf("make snapshot %d of volume %s final: %w", c.Seq, a.VolumeID, err)
	}
	return tag.RowsAffected() == 1, nil
}

// parseCommit checks what a commit says of itself. The faults are ErrFenced
// and ErrCommit.
func parseCommit(a Attachment, in agentapi.Commit) (proposal, error) {
	p := proposal{stored: in.Snapshot, final: in.Final && a.Final, skipped: in.Skipped, unstable: in.Unstable}
	if in.Epoch != a.Epoch {
		return p, ErrFenced
	}
	var err error
	if p.id, err = snapshot.ParseID(in.SnapshotID); err != nil {
		return p, ErrCommit.Because(err)
	}
	if p.tree, err = snapshot.ParseID(in.Tree); err != nil {
		return p, ErrCommit.Because(err)
	}
	if in.Parent != "" {
		if p.parent, err = snapshot.ParseID(in.Parent); err != nil {
			return p, ErrCommit.Because(err)
		}
	}
	if len(in.Snapshot) == 0 || len(in.Snapshot) > agentapi.MaxSnapshot || in.Skipped < 0 || in.Unstable < 0 {
		return p, ErrCommit
	}
	if sha256.Sum256(in.Snapshot) != p.id {
		return p, ErrCommit.With("The snapshot does not have the bytes its id names.")
	}
	seen := make(map[snapshot.ID]bool, len(in.Objects))
	for _, o := range in.Objects {
		parsed, err := parseObject(o, true)
		if err != nil {
			return p, err
		}
		if seen[snapshot.ID(parsed.ID)] {
			return p, ErrCommit.With("An object is named twice.")
		}
		seen[snapshot.ID(parsed.ID)] = true
		p.objects = append(p.objects, parsed)
	}
	return p, nil
}

const sqlMoveHead = `
update volume set head_snapshot = @snapshot, head_tree = @tree, head_seq = head_seq + 1, head_time_ns = @time,
  size_bytes = @size, entries = @entries, last_commit_at = @now, metered = (metered or @rated) and frozen_at is null
where id = @volume and epoch = @epoch and pod_id = @pod and restored
  and head_snapshot is not distinct from @parent and generation = @generation
returning head_seq, frozen_at is not null`

const sqlInsertSnapshot = `
insert into volume_snapshot (volume_id, seq, snapshot_id, tree_id, parent_id, time_ns, epoch, pod_id,
  final, size_bytes, entries, skipped, unstable, created_at)
values (@volume, @seq, @snapshot, @tree, @parent, @time, @epoch, @pod,
  @final, @size, @entries, @skipped, @unstable, @now)`

const sqlCommitObjects = `
update volume_pack set committed_seq = $3
where volume_id = $1 and id = any($2::bytea[]) and committed_seq is null`

// commitTx is the commit itself. The pod is locked by the hook, then the
// volume, then the wallet.
func (s *Service) commitTx(ctx context.Context, tx pgx.Tx, a Attachment, v state, p proposal) error {
	now := s.Clock.Now()
	if s.OnCommitTx != nil {
		if err := s.OnCommitTx(ctx, tx, a.VolumeID, a.PodID, p.final, now); err != nil {
			return err
		}
	}
	var parent []byte
	if !p.parent.IsZero() {
		parent = p.parent[:]
	}
	args := pgx.NamedArgs{
		"volume": a.VolumeID, "epoch": a.Epoch, "pod": a.PodID, "snapshot": p.id[:], "tree": p.tree[:],
		"parent": parent, "time": p.timeNS, "size": p.measured.Bytes, "entries": p.measured.Entries, "now": now,
		"final": p.final, "skipped": p.skipped, "unstable": p.unstable, "rated": RateOf(p.measured.Bytes) > 0,
		"generation": v.Generation,
	}
	var seq int64
	var frozen bool
	err := tx.QueryRow(ctx, sqlMoveHead, args).Scan(&seq, &frozen)
	if errors.Is(err, pgx.ErrNoRows) {
		return whyNot(ctx, tx, a, p)
	}
	if err != nil {
		return fmt.Errorf("move the head of volume %s: %w", a.VolumeID, err)
	}
	args["seq"] = seq
	if _, err := tx.Exec(ctx, sqlInsertSnapshot, args); err != nil {
		return fmt.Errorf("record a snapshot of volume %s: %w", a.VolumeID, err)
	}
	ids := make([][]byte, len(p.objects))
	for i, o := range p.objects {
		ids[i] = o.ID
	}
	if _, err := tx.Exec(ctx, sqlCommitObjects, a.VolumeID, ids, seq); err != nil {
		return fmt.Errorf("commit objects of volume %s: %w", a.VolumeID, err)
	}
	if frozen { // kept without charge
		return nil
	}
	return s.rerateTx(ctx, tx, v, p.measured.Bytes, now)
}

// whyNot says why the guarded statement did not move the head.
func whyNot(ctx context.Context, tx pgx.Tx, a Attachment, p proposal) error {
	v, err := findHeld(ctx, tx, sqlFindState, a)
	switch {
	case err != nil:
		return err
	case !v.Restored:
		return ErrNotRestored
	case !v.headIs(p.parent), v.collected():
		return ErrParent
	}
	return ErrFenced // it changed in between; the agent asks again
}

// rerateTx opens a new rate segment when the figure that is charged changes.
// The head is locked at the parent that v was read with, so v's size is the
// one before.
func (s *Service) rerateTx(ctx context.Context, tx pgx.Tx, v state, size int64, now time.Time) error {
	rate := RateOf(size)
	if rate == RateOf(v.SizeBytes) {
		return nil
	}
	err := s.Wallet.RerateTx(ctx, tx, v.ID, rate, now)
	if errors.Is(err, wallet.ErrNotMetered) {
		return s.startTx(ctx, tx, v.TeamID, v.ID, v.Name, rate, now)
	}
	return err
}

// committed is a snapshot's row.
type committed struct {
	VolumeID    uuid.UUID
	Seq         int64
	SnapshotID  []byte
	TreeID      []byte
	TimeNS      int64 `db:"time_ns"`
	PodID       uuid.UUID
	Final       bool
	SizeBytes   int64
	PublishedAt *time.Time
	Stored      []byte // the object itself, of a restored version that is not published
}

func (c committed) wire() agentapi.Committed {
	return agentapi.Committed{
		Head: agentapi.Head{
			Snapshot: snapshot.ID(c.SnapshotID).String(), Tree: snapshot.ID(c.TreeID).String(),
			Seq: c.Seq, Time: time.Unix(0, c.TimeNS).UTC(),
		},
		SizeBytes: c.SizeBytes,
	}
}

const sqlFindSnapshot = `
select volume_id, seq, snapshot_id, tree_id, time_ns, pod_id, final, size_bytes, published_at, stored
from volume_snapshot
where volume_id = $1 and snapshot_id = $2 and epoch = $3 and pod_id = $4`

// findCommitted returns the row of a snapshot that this attachment committed.
// The error is pgx.ErrNoRows.
func (s *Service) findCommitted(ctx context.Context, a Attachment, snapshotID snapshot.ID) (committed, error) {
	rows, err := s.Pool.Query(ctx, sqlFindSnapshot, a.VolumeID, snapshotID[:], a.Epoch, a.PodID)
	if err != nil {
		return committed{}, fmt.Errorf("find a snapshot of volume %s: %w", a.VolumeID, err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[committed])
}
