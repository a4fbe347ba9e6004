//go:build linux

package snapshot_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"homeport.dev/homeport/internal/snapshot"
)

func TestIndexesMustAddUpToTheirPacks(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 200, 1)
	random(t, filepath.Join(root, "large"), 3<<20, 1)
	c := v.sync(v.syncer(root, t.TempDir(), func(o *snapshot.SyncerOptions) { o.Limits.PackSize = 1 << 20 }))
	truth := func(id snapshot.ID) (int64, bool) { o, ok := v.stored[id]; return o.Size, ok }
	for _, o := range c.Objects {
		if o.Kind != snapshot.KindIndex {
			continue
		}
		r, err := v.store.Get(t.Context(), snapshot.ObjectKey(prefix, o.Kind, o.ID), 0, -1)
		must(t, err)
		stored, err := io.ReadAll(r)
		must(t, err)
		must(t, r.Close())
		must(t, snapshot.CheckIndex(v.key, stored, truth))
		for name, size := range map[string]func(snapshot.ID) (int64, bool){
			"a pack that is not there": func(snapshot.ID) (int64, bool) { return 0, false },
			"a pack with more in it":   func(id snapshot.ID) (int64, bool) { n, ok := truth(id); return n + 1, ok },
			"a pack with less in it":   func(id snapshot.ID) (int64, bool) { n, ok := truth(id); return n - 1, ok },
		} {
			if err := snapshot.CheckIndex(v.key, stored, size); !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("%s: CheckIndex = %v, want ErrDamaged", name, err)
			}
		}
		if err := snapshot.CheckIndex(snapshot.NewKey(), stored, truth); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("with another key CheckIndex = %v, want ErrDamaged", err)
		}
	}
}
