//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/snapshot"
)

// How often the volume is synced in the background: the processor time of one
// look at the files, stretched so that looking costs at most a twentieth.
const (
	syncStretch   = 20
	syncEager     = 60 * time.Second
	syncLazy      = 10 * time.Minute
	syncRetryMost = time.Minute // between tries of what failed
)

const (
	maxPartials = 1 << 16 // commits of one round; a bound, not a limit
	maxMoved    = 3       // times in one round that the head is not what it was
)

// syncInterval is the rest after a look that took so much processor time.
func syncInterval(cpu time.Duration) time.Duration {
	return min(max(syncStretch*cpu, syncEager), syncLazy)
}

// syncUntilFinal syncs in the background until the last sync is asked for.
// What fails is tried again; only the end of the attachment is an error.
func (a *agent) syncUntilFinal(ctx context.Context) error {
	failed := newBackoff(syncEager/4, syncLazy, a.welcome.PodID)
	rest := syncEager
	for {
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-a.final:
			timer.Stop()
			return nil
		case <-a.syncNow:
			timer.Stop()
		case <-timer.C:
		}
		before := cpuTime()
		err := a.syncRound(ctx)
		rest = syncInterval(cpuTime() - before)
		switch {
		case err == nil:
			failed.reset()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case over(err):
			a.end(err)
			return err
		case errors.Is(err, ErrQuota):
			rest = syncLazy // nothing goes in until something is deleted
		default:
			rest = failed.next()
		}
	}
}

// syncRound looks at the files and commits until nothing differs any more, and
// keeps the note in step.
func (a *agent) syncRound(ctx context.Context) error {
	moved := 0
	for range maxPartials {
		change, err := a.syncOnce(ctx, false, false)
		if errors.Is(err, ErrParent) && !errors.Is(err, ErrAway) && moved < maxMoved {
			moved++ // another head, or other packs, are taken over: go on from there
			continue
		}
		if err != nil {
			a.noteSync(err)
			return err
		}
		if change == nil || !change.Partial || a.ending() {
			break // the rest is the final sync's, which leaves the machine to nobody
		}
	}
	a.status.setNote("")
	return nil
}

// ending says whether the final sync was asked for.
func (a *agent) ending() bool {
	select {
	case <-a.final:
		return true
	default:
		return false
	}
}

// syncOnce looks at the files once and commits what differs; it returns what
// it committed, or nil. last says that the pod ends, so that nobody is to be left
// the machine; frozen, that nobody can write any more.
func (a *agent) syncOnce(ctx context.Context, last, frozen bool) (*snapshot.Change, error) {
	if a.syncer == nil {
		if err := a.makeSyncer(ctx); err != nil {
			return nil, err
		}
	}
	change, err := a.syncer.Run(ctx, snapshot.RunOptions{Background: !last, Progress: a.status.setProgress})
	a.status.setDirty(a.syncer.DirtyBytes())
	if err != nil {
		if fault.Of(err) == nil && ctx.Err() == nil {
			a.syncer = nil // its folder may be gone, or the disk full: begin anew
		}
		return nil, err
	}
	if change == nil {
		return nil, nil
	}
	final := frozen && !change.Partial && change.Unstable == 0
	if err := a.commit(ctx, change, final); err != nil {
		return nil, err
	}
	a.status.setDirty(a.syncer.DirtyBytes())
	return change, nil
}

// commit moves the head. An answer that was lost is asked for again with the
// same snapshot; a head that moved without us is taken over by a new Hello.
func (a *agent) commit(ctx context.Context, c *snapshot.Change, final bool) error {
	m := agentapi.Commit{
		Epoch: a.welcome.Volume.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String(),
		Final: final, Skipped: c.Skipped, Unstable: c.Unstable, Objects: make([]agentapi.Object, 0, len(c.Objects)),
	}
	if !c.Parent.IsZero() {
		m.Parent = c.Parent.String()
	}
	for _, o := range c.Objects {
		m.Objects = append(m.Objects, wireObject(o))
	}
	var done agentapi.Committed
	err := a.client.persist(ctx, agentapi.PathCommit, commitTimeout, m, &done)
	if errors.Is(err, ErrParent) {
		return errors.Join(err, a.rehello(ctx))
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", c.SnapshotID, err)
	}
	a.syncer.Committed(c)
	a.moveHead(done.Head, m.Objects)
	a.log.Info("committed", "snapshot", c.SnapshotID.String(), "seq", done.Head.Seq, "bytes", c.Bytes,
		"skipped", c.Skipped, "unstable", c.Unstable, "partial", c.Partial, "final", final)
	return nil
}

// moveHead keeps what a new syncer would begin from in step with the commits.
func (a *agent) moveHead(head agentapi.Head, objects []agentapi.Object) {
	v := &a.welcome.Volume
	v.Head, v.Resume = &head, nil
	for _, o := range objects {
		if o.Kind == agentapi.KindIndex {
			v.Indexes = append(v.Indexes, o)
		}
	}
}

// rehello takes over the volume's head as it is now. An epoch that is not ours
// means that the attachment is over.
func (a *agent) rehello(ctx context.Context) error {
	epoch := a.welcome.Volume.Epoch
	a.syncer = nil
	if err := a.hello(ctx, true); err != nil {
		return err
	}
	if a.welcome.Volume.Epoch != epoch {
		return ErrFenced
	}
	return nil
}

// makeSyncer begins from the head that the last Hello told.
func (a *agent) makeSyncer(ctx context.Context) error {
	v := a.welcome.Volume
	head, err := parseHead(v.Head)
	if err != nil {
		return err
	}
	indexes, err := parseObjects(v.Indexes)
	if err != nil {
		return err
	}
	resume, err := parseObjects(v.Resume)
	if err != nil {
		return err
	}
	state := engineDir(a.cfg.StateDir)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("prepare the engine's folder: %w", err)
	}
	a.syncer, err = snapshot.NewSyncer(ctx, snapshot.SyncerOptions{
		Objects: a.store, Key: a.key, ChunkerKey: v.ChunkerKey, Root: a.cfg.Workspace, State: state,
		Head: head, Indexes: indexes, Resume: resume, Hostname: a.welcome.Hostname, Now: a.cfg.Clock.Wall,
		Limits: snapshot.Limits{Workers: syncWorkers(runtime.NumCPU())},
	})
	return err
}

// noteSync tells the control plane, in words for the card, why a sync failed.
func (a *agent) noteSync(err error) {
	a.log.Warn("the sync failed", "error", err)
	note := "The last sync failed; trying again."
	switch {
	case errors.Is(err, ErrQuota):
		note = "The volume is over its quota: nothing more is synced until something is deleted."
	case errors.Is(err, ErrParent):
		note = ""
	case errors.Is(err, snapshot.ErrTooLarge):
		note = snapshot.ErrTooLarge.Detail
	}
	a.status.setNote(note)
}

// syncWorkers bounds what syncing takes from the user's programs: two cores or
// a tenth of them.
func syncWorkers(cores int) int { return min(cores, max(2, cores/10)) }

// cpuTime is the processor time this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
