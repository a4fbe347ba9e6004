//go:build linux

package snapshot_test

import (
	"context"
	"errors"
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
