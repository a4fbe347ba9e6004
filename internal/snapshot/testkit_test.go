//go:build linux

package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/snapshot"
)

const (
	prefix   = "v/volume"
	password = "emergency"
)

var chunkerKey = bytes.Repeat([]byte{7}, 32)

// A volume plays the control plane: it keeps the head and the list of what was
// committed.
type volume struct {
	t     testing.TB
	store *dir.Store
	key   snapshot.Key

	mu      sync.Mutex
	head    *snapshot.Head
	indexes []snapshot.Object
	stored  map[snapshot.ID]snapshot.Object // uploaded
	done    map[snapshot.ID]bool            // committed
	puts    int64                           // bytes
	gets    int64
	fail    func(op string, o snapshot.Object) error // may refuse an operation
}

// thorough says that bars are being measured: the tests of faults go the whole
// length that the bars ask for.
func thorough() bool { return os.Getenv("HOMEPORT_BENCH") == "full" }

// times is how often to try: for a bar, or every day.
func times(bar, daily int) int {
	if thorough() {
		return bar
	}
	return daily
}

// measured tells the report what a test of a bar counted.
func measured(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Attr("measured", fmt.Sprintf(format, args...))
}

func newVolume(t testing.TB) *volume {
	t.Helper()
	store, err := dir.New(t.TempDir(), []byte("0123456789abcdef"), time.Now)
	must(t, err)
	v := &volume{t: t, store: store, key: snapshot.NewKey(), stored: map[snapshot.ID]snapshot.Object{}, done: map[snapshot.ID]bool{}}
	must(t, snapshot.CreateRepository(t.Context(), store, prefix, v.key, password))
	return v
}

func (v *volume) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	if v.fail != nil {
		if err := v.fail("get", snapshot.Object{ID: id, Kind: kind}); err != nil {
			return nil, err
		}
	}
	r, err := v.store.Get(ctx, snapshot.ObjectKey(prefix, kind, id), offset, length)
	if err != nil {
		return nil, err
	}
	return &counted{ReadCloser: r, v: v}, nil
}

type counted struct {
	io.ReadCloser
	v *volume
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.v.mu.Lock()
	c.v.gets += int64(n)
	c.v.mu.Unlock()
	return n, err
}

func (v *volume) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	if v.fail != nil {
		if err := v.fail("put", o); err != nil {
			return err
		}
	}
	err := v.store.Put(ctx, snapshot.ObjectKey(prefix, o.Kind, o.ID), body)
	if err != nil && !errors.Is(err, blob.ErrExists) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stored[o.ID] = o
	v.puts += o.Size
	return nil
}

// resume lists what was uploaded and not committed.
func (v *volume) resume() []snapshot.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []snapshot.Object
	for id, o := range v.stored {
		if !v.done[id] {
			list = append(list, o)
		}
	}
	return list
}

// commit moves the head, as the control plane does.
func (v *volume) commit(c *snapshot.Change) error {
	s, err := snapshot.DecodeSnapshot(v.key, c.Snapshot)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.head != nil && v.head.Snapshot != c.Parent || v.head == nil && !c.Parent.IsZero() {
		return errors.New("parent moved")
	}
	for _, o := range c.Objects {
		if _, ok := v.stored[o.ID]; !ok {
			return fmt.Errorf("object %s was never stored", o.ID)
		}
		v.done[o.ID] = true
		if o.Kind == snapshot.KindIndex {
			v.indexes = append(v.indexes, o)
		}
	}
	if err := v.store.Put(v.t.Context(), snapshot.KeyOf(prefix, c.SnapshotID), c.Snapshot); err != nil {
		return err
	}
	v.head = &snapshot.Head{Snapshot: c.SnapshotID, Tree: c.Tree, Time: s.Time}
	return nil
}

func (v *volume) syncerOptions(root, state string) snapshot.SyncerOptions {
	return snapshot.SyncerOptions{
		Objects: v, Key: v.key, ChunkerKey: chunkerKey, Root: root, State: state,
		Head: v.head, Indexes: v.indexes, Resume: v.resume(), Hostname: "pod", Now: time.Now,
	}
}

func (v *volume) syncer(root, state string, edit func(*snapshot.SyncerOptions)) *snapshot.Syncer {
	v.t.Helper()
	o := v.syncerOptions(root, state)
	if edit != nil {
		edit(&o)
	}
	s, err := snapshot.NewSyncer(v.t.Context(), o)
	must(v.t, err)
	return s
}

// sync runs until nothing differs, and returns the last change.
func (v *volume) sync(s *snapshot.Syncer) *snapshot.Change {
	v.t.Helper()
	var last *snapshot.Change
	for range 100 {
		c, err := s.Run(v.t.Context(), snapshot.RunOptions{})
		must(v.t, err)
		if c == nil {
			return last
		}
		must(v.t, v.commit(c))
		s.Committed(c)
		last = c
		if !c.Partial {
			return last
		}
	}
	v.t.Fatal("sync does not come to an end")
	return nil
}

func (v *volume) restoreOptions(root, state string) snapshot.RestoreOptions {
	return snapshot.RestoreOptions{
		Objects: v, Key: v.key, Head: *v.head, Indexes: v.indexes, Root: root, State: state, Devices: true, Now: time.Now,
	}
}

func (v *volume) restore(root, state string) snapshot.RestoreResult {
	v.t.Helper()
	res, err := snapshot.Restore(v.t.Context(), v.restoreOptions(root, state))
	must(v.t, err)
	return res
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// restic runs Debian's restic on the volume: the judge that is not ours.
func (v *volume) restic(args ...string) string {
	v.t.Helper()
	path, err := exec.LookPath("restic")
	if err != nil {
		v.t.Fatal("restic is not installed: run scripts/need-tools")
	}
	cmd := exec.CommandContext(v.t.Context(), path, append([]string{"-r", v.store.Path(prefix), "--no-cache"}, args...)...)
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("restic %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// fill makes a tree of so many small files, and a few large ones.
func fill(t testing.TB, root string, files int, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i%7), fmt.Sprintf("e%d", i%31))
		must(t, os.MkdirAll(dir, 0o755))
		b := bytes.Repeat(fmt.Appendf(nil, "line %d of %d\n", rnd.Uint64()%50, i), rnd.IntN(200))
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), b, 0o644))
	}
}

// random writes a file of n random bytes.
func random(t testing.TB, path string, n int, seed uint64) []byte {
	t.Helper()
	b := make([]byte, n)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	_, _ = rand.NewChaCha8(key).Read(b)
	must(t, os.WriteFile(path, b, 0o644))
	return b
}
