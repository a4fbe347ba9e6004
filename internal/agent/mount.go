//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/snapshot"
)

const diskSpare = 64 << 20 // bytes that must be left after a restore

// errForeign occurs when the folders hold another attachment's files.
var errForeign = errors.New("the folders belong to another attachment")

// mark is what the agent remembers across restarts: whose files the folders
// hold, and whether all of them are there. After that the workspace is ahead
// of the head, and must not be restored again.
type mark struct {
	Volume   string `json:"volume"`
	Epoch    int64  `json:"epoch"`
	Restored bool   `json:"restored"`
}

func markPath(stateDir string) string { return filepath.Join(stateDir, "attachment.json") }

// engineDir is where the engine keeps its journal and state.
func engineDir(stateDir string) string { return filepath.Join(stateDir, "engine") }

// readMark returns nil when this is the first run.
func readMark(stateDir string) (*mark, error) {
	b, err := os.ReadFile(markPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's state: %w", err)
	}
	var m mark
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read the agent's state: %w", err)
	}
	return &m, nil
}

// writeMark replaces the mark, durably.
func writeMark(stateDir string, m mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the agent's state: %w", err)
	}
	path := markPath(stateDir)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the agent's state: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the agent's state: %w", err)
	}
	return nil
}

// mount makes the workspace equal to the head. It returns false when the pod
// is to end before that was done. A restore that cannot be done is reported,
// and the agent then waits to be ended.
func (a *agent) mount(ctx context.Context, have *mark) (bool, error) {
	err := a.restore(ctx, have)
	if err == nil {
		return true, nil
	}
	select {
	case <-a.final:
		return false, nil
	default:
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	a.log.Error("the restore failed", "error", err)
	failed := agentapi.Failed{Epoch: a.welcome.Volume.Epoch, Code: failureCode(err), Detail: err.Error()}
	if err := a.client.persist(ctx, agentapi.PathFailed, callTimeout, failed, nil); err != nil {
		return false, err
	}
	<-ctx.Done()
	return false, context.Cause(ctx)
}

// failureCode names a failed restore for the control plane.
func failureCode(err error) string {
	switch {
	case errors.Is(err, snapshot.ErrDiskFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "disk_full"
	case errors.Is(err, snapshot.ErrDamaged), errors.Is(err, blob.ErrNotFound):
		return "damaged"
	default:
		return "internal"
	}
}

// restore restores, once, what this attachment begins with.
func (a *agent) restore(ctx context.Context, have *mark) error {
	v := a.welcome.Volume
	want := mark{Volume: v.ID, Epoch: v.Epoch}
	if have != nil {
		if have.Volume != want.Volume || have.Epoch != want.Epoch {
			return errForeign
		}
		if have.Restored {
			return nil
		}
	}
	if have == nil {
		if err := a.checkDisk(v.SizeBytes); err != nil {
			return err
		}
		if err := writeMark(a.cfg.StateDir, want); err != nil {
			return err
		}
	}
	if v.Head != nil {
		if err := a.restoreHead(ctx); err != nil {
			return err
		}
	}
	want.Restored = true
	return writeMark(a.cfg.StateDir, want)
}

// checkDisk refuses to begin what cannot end well.
func (a *agent) checkDisk(size int64) error {
	free, err := diskFree(a.cfg.Workspace)
	if err != nil {
		return err
	}
	if need := size + size/20 + diskSpare; size > 0 && free < need {
		return snapshot.ErrDiskFull.Because(fmt.Errorf("%d bytes are free, %d are needed", free, need))
	}
	return nil
}

// restoreHead fetches the head, as often as it takes while the store is away.
func (a *agent) restoreHead(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.wg.Go(func() {
		select {
		case <-a.final:
			cancel()
		case <-ctx.Done():
		}
	})
	head, err := parseHead(a.welcome.Volume.Head)
	if err != nil {
		return err
	}
	indexes, err := parseObjects(a.welcome.Volume.Indexes)
	if err != nil {
		return err
	}
	state := engineDir(a.cfg.StateDir)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("prepare the engine's folder: %w", err)
	}
	wait := newBackoff(retryFirst, syncRetryMost, a.welcome.PodID)
	for {
		result, err := snapshot.Restore(ctx, snapshot.RestoreOptions{
			Objects: a.store, Key: a.key, Head: *head, Indexes: indexes,
			Root: a.cfg.Workspace, State: state, Progress: a.status.setProgress, Devices: true, Now: a.cfg.Clock.Wall,
		})
		if err == nil {
			a.log.Info("restored the volume", "files", result.Files, "bytes", result.Bytes, "skipped", result.Skipped)
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, blob.ErrUnavailable) && !errors.Is(err, ErrAway) {
			return err
		}
		a.status.setNote("The volume store is not available; trying again.")
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// parseHead reads the wire's form of a head; nil is none.
func parseHead(h *agentapi.Head) (*snapshot.Head, error) {
	if h == nil {
		return nil, nil
	}
	id, err := snapshot.ParseID(h.Snapshot)
	if err != nil {
		return nil, err
	}
	tree, err := snapshot.ParseID(h.Tree)
	if err != nil {
		return nil, err
	}
	return &snapshot.Head{Snapshot: id, Tree: tree, Time: h.Time}, nil
}

func parseObjects(in []agentapi.Object) ([]snapshot.Object, error) {
	out := make([]snapshot.Object, 0, len(in))
	for _, o := range in {
		id, err := snapshot.ParseID(o.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, snapshot.Object{ID: id, Kind: snapshot.Kind(o.Kind), Size: o.Size})
	}
	return out, nil
}

func wireObject(o snapshot.Object) agentapi.Object {
	return agentapi.Object{ID: o.ID.String(), Kind: agentapi.Kind(o.Kind), Size: o.Size}
}
