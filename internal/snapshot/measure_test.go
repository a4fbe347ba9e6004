//go:build linux

package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/snapshot"
)

func (v *volume) reader() snapshot.Reader {
	var ids []snapshot.ID
	for _, x := range v.indexes {
		ids = append(ids, x.ID)
	}
	return snapshot.StoreReader(v.store, prefix, ids)
}

func (v *volume) measure(cache *snapshot.MeasureCache) snapshot.Measured {
	v.t.Helper()
	m, err := snapshot.Measure(v.t.Context(), v.reader(), v.key, v.head.Tree, cache)
	must(v.t, err)
	return m
}

func TestMeasureCountsDataButNoHolesAndLinksOnce(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	s := v.syncer(root, t.TempDir(), nil)
	cache := snapshot.NewMeasureCache(1000)
	step := func(name string, bytes, entries int64) {
		t.Helper()
		c := v.sync(s)
		for _, cache := range []*snapshot.MeasureCache{cache, nil, snapshot.NewMeasureCache(1)} {
			if m := v.measure(cache); m.Bytes != bytes || m.Entries != entries {
				t.Errorf("%s: measured %+v, want %d bytes, %d entries", name, m, bytes, entries)
			}
		}
		if c.Bytes != bytes {
			t.Errorf("%s: the syncer counts %d bytes, want %d", name, c.Bytes, bytes)
		}
	}
	must(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	random(t, filepath.Join(root, "a/b/one"), 3<<20, 1)
	random(t, filepath.Join(root, "a/two"), 1000, 2)
	step("two files", 3<<20+1000, 4)
	must(t, os.Link(filepath.Join(root, "a/b/one"), filepath.Join(root, "linked")))
	must(t, os.Link(filepath.Join(root, "a/b/one"), filepath.Join(root, "a/linked")))
	step("hard links", 3<<20+1000, 6)
	f, err := os.Create(filepath.Join(root, "sparse"))
	must(t, err)
	must(t, f.Truncate(77<<20+4321))
	step("a hole", 3<<20+1000, 7)
	_, err = f.WriteAt(make([]byte, 1), 10<<20) // one block of data that is zero
	must(t, err)
	must(t, f.Close())
	must(t, os.Remove(filepath.Join(root, "a/two")))
	step("removed", 3<<20, 6)
	must(t, os.RemoveAll(filepath.Join(root, "a")))
	step("one name left", 3<<20, 2)
}

func TestMeasureReadsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 2000, 3)
	s := v.syncer(root, t.TempDir(), nil)
	v.sync(s)
	cache := snapshot.NewMeasureCache(10000)
	src := &counting{Reader: v.reader()}
	_, err := snapshot.Measure(t.Context(), src, v.key, v.head.Tree, cache)
	must(t, err)
	whole := src.gets
	must(t, os.WriteFile(filepath.Join(root, "d0", "new"), []byte("x"), 0o644))
	v.sync(s)
	src = &counting{Reader: v.reader()}
	m, err := snapshot.Measure(t.Context(), src, v.key, v.head.Tree, cache)
	must(t, err)
	if src.gets > 2 {
		t.Errorf("measuring one change read %d objects (all: %d), want its index and its trees", src.gets, whole)
	}
	if again := v.measure(nil); again != m {
		t.Errorf("with the cache %+v, without %+v", m, again)
	}
}

type counting struct {
	snapshot.Reader
	gets int
}

func (c *counting) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	c.gets++
	return c.Reader.Get(ctx, kind, id, offset, length)
}

// A leaving reader gives a volume's first index and is called off before the
// others, as by a browser that goes away.
type leaving struct {
	snapshot.Reader
	first snapshot.ID
	given chan struct{}
	leave func()
}

func (l *leaving) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	if id == l.first {
		r, err := l.Reader.Get(ctx, kind, id, offset, length)
		return closing{r, l.given}, err
	}
	<-l.given
	l.leave()
	return nil, context.Canceled
}

type closing struct {
	io.ReadCloser
	closed chan struct{}
}

func (c closing) Close() error {
	close(c.closed)
	return c.ReadCloser.Close()
}

// What a read that was called off left in the cache is not read again, and goes
// with the packs that a collection replaces: nothing stale is found there.
func TestAReadThatWasCalledOffLeavesNothingStale(t *testing.T) {
	t.Parallel()
	for name, vanished := range map[string]bool{"into an empty cache": false, "when indexes had vanished": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolume(t)
			root, state, cache := t.TempDir(), t.TempDir(), snapshot.NewMeasureCache(10000)
			must(t, os.MkdirAll(filepath.Join(root, "stays"), 0o755))
			want := random(t, filepath.Join(root, "stays", "file"), 10<<10, 1)
			for i := range 20 {
				dir := filepath.Join(root, "goes", fmt.Sprint(i))
				must(t, os.MkdirAll(dir, 0o755))
				random(t, filepath.Join(dir, "file"), 20<<10, uint64(10+i))
			}
			s := v.syncer(root, state, nil)
			v.sync(s)
			if vanished {
				v.measure(cache)
				v.collect()
				s = v.syncer(root, state, nil)
			}
			random(t, filepath.Join(root, "later"), 10<<10, 2)
			v.sync(s)
			ctx, cancel := context.WithCancel(t.Context())
			src := &leaving{Reader: v.reader(), first: v.indexes[0].ID, given: make(chan struct{}), leave: cancel}
			if _, err := snapshot.OpenView(ctx, src, v.key, v.head.Tree, cache, nil); !errors.Is(err, context.Canceled) {
				t.Fatalf("a read that was called off: %v", err)
			}

			must(t, os.RemoveAll(filepath.Join(root, "goes")))
			v.sync(s)
			v.collect()
			view, err := snapshot.OpenView(t.Context(), v.reader(), v.key, v.head.Tree, cache, nil)
			must(t, err)
			if nodes, _, err := view.List(t.Context(), "stays", 0, 10); err != nil || len(nodes) != 1 {
				t.Errorf("listed %d entries, %v", len(nodes), err)
			}
			f, err := view.OpenFile(t.Context(), "stays/file")
			must(t, err)
			defer f.Close()
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			if got := v.measure(cache); got != v.measure(nil) {
				t.Errorf("with the cache %+v, without %+v", got, v.measure(nil))
			}
		})
	}
}

func TestAReadThatWasCalledOffIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, cache := t.TempDir(), snapshot.NewMeasureCache(10000)
	s := v.syncer(root, t.TempDir(), nil)
	for i := range 2 {
		random(t, filepath.Join(root, fmt.Sprint(i)), 10<<10, uint64(i))
		v.sync(s)
	}
	first := v.indexes[0].ID
	ctx, cancel := context.WithCancel(t.Context())
	src := &leaving{Reader: v.reader(), first: first, given: make(chan struct{}), leave: cancel}
	if _, err := snapshot.Measure(ctx, src, v.key, v.head.Tree, cache); !errors.Is(err, context.Canceled) {
		t.Fatalf("a read that was called off: %v", err)
	}
	must(t, v.store.Delete(t.Context(), snapshot.ObjectKey(prefix, snapshot.KindIndex, first)))
	if _, err := snapshot.Measure(t.Context(), v.reader(), v.key, v.head.Tree, cache); err != nil {
		t.Errorf("the index that had arrived is read again: %v", err)
	}
}

func TestMeasureRefusesATreeWhoseBlobsAreNotThere(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 10, 3)
	v.sync(v.syncer(root, t.TempDir(), nil))
	v.indexes = nil
	if _, err := snapshot.Measure(t.Context(), v.reader(), v.key, v.head.Tree, nil); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("Measure = %v, want ErrDamaged", err)
	}
}

func TestCreateRepositoryIsRepeatable(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	must(t, snapshot.CreateRepository(t.Context(), v.store, prefix, v.key, password))
	err := snapshot.CreateRepository(t.Context(), v.store, prefix, snapshot.NewKey(), password)
	if !errors.Is(err, snapshot.ErrKey) {
		t.Errorf("with another key CreateRepository = %v, want ErrKey", err)
	}
	n := 0
	must(t, v.store.List(t.Context(), prefix, func(blob.Info) error { n++; return nil }))
	if n != 2 {
		t.Errorf("the repository has %d objects, want config and one key", n)
	}
	v.restic("snapshots")
}
