//go:build linux

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/snapshot"
)

// collect drops packs that are half empty, as the control plane does for a
// volume that is attached nowhere.
func (v *volume) collect() {
	v.t.Helper()
	ctx := v.t.Context()
	roots := []snapshot.ID{v.head.Tree}
	usages, err := snapshot.Usages(ctx, v.reader(), v.key, roots)
	must(v.t, err)
	var drop []snapshot.ID
	for _, u := range usages {
		if 2*u.Live < u.Total {
			drop = append(drop, u.Pack)
		}
	}
	res, err := snapshot.Repack(ctx, v.reader(), v.key, roots, drop, func(ctx context.Context, o snapshot.Object, body []byte) error {
		err := v.store.Put(ctx, snapshot.ObjectKey(prefix, o.Kind, o.ID), body)
		if errors.Is(err, blob.ErrExists) {
			return nil
		}
		return err
	})
	must(v.t, err)
	keep := map[string]bool{}
	for _, x := range res.Indexes {
		keep[snapshot.ObjectKey(prefix, x.Kind, x.ID)] = true
	}
	for _, x := range v.indexes {
		if key := snapshot.ObjectKey(prefix, x.Kind, x.ID); !keep[key] {
			must(v.t, v.store.Delete(ctx, key))
		}
	}
	v.indexes = res.Indexes
	for _, id := range drop {
		must(v.t, v.store.Delete(ctx, snapshot.ObjectKey(prefix, snapshot.KindData, id)))
	}
	must(v.t, v.store.List(ctx, prefix+"/snapshots/", func(i blob.Info) error {
		if i.Key != snapshot.KeyOf(prefix, v.head.Snapshot) {
			return v.store.Delete(ctx, i.Key)
		}
		return nil
	}))
}

// TestRandomHistoryWithRepackStaysClean syncs a folder that changes at random,
// and collects garbage now and then.
func TestRandomHistoryWithRepackStaysClean(t *testing.T) {
	t.Parallel()
	seeds, syncs := times(10, 1), times(50, 30)
	var clean atomic.Int64
	t.Cleanup(func() { measured(t, "clean after %d syncs with repacks, %d of %d seeds", syncs, clean.Load(), seeds) })
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if !t.Failed() {
					clean.Add(1)
				}
			})
			staysClean(t, rand.New(rand.NewPCG(6, 6+seed)), syncs)
		})
	}
}

func staysClean(t *testing.T, rnd *rand.Rand, syncs int) {
	t.Helper()
	v := newVolume(t)
	root, state := t.TempDir(), t.TempDir()
	s := v.syncer(root, state, func(o *snapshot.SyncerOptions) { o.Limits.PackSize = 256 << 10 })
	for round := range syncs {
		for range 10 {
			dir := filepath.Join(root, fmt.Sprint("d", rnd.IntN(5)))
			path := filepath.Join(dir, fmt.Sprint("f", rnd.IntN(20)))
			must(t, os.MkdirAll(dir, 0o755))
			switch rnd.IntN(4) {
			case 0:
				must(t, os.RemoveAll(path))
			case 1:
				must(t, os.RemoveAll(dir))
			default:
				random(t, path, rnd.IntN(100<<10), rnd.Uint64())
			}
		}
		v.sync(s)
		if round%10 == 9 {
			v.collect()
			s = v.syncer(root, state, func(o *snapshot.SyncerOptions) { o.Limits.PackSize = 256 << 10 })
			if out := v.restic("check", "--read-data"); !strings.Contains(out, "no errors were found") {
				t.Fatalf("round %d: restic check: %s", round, out)
			}
			out := t.TempDir()
			v.restore(out, t.TempDir())
			compare(t, facts(t, root), facts(t, out), nil)
		}
	}
	live := v.measure(nil).Bytes
	stored := int64(0)
	must(t, v.store.List(t.Context(), prefix, func(i blob.Info) error { stored += i.Size; return nil }))
	if stored > live*13/10+512<<10 {
		t.Errorf("%d bytes are stored for %d", stored, live)
	}
}

func TestListTreeShowsAFolder(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "dir"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "dir", "file\xff"), []byte("12345"), 0o640))
	v.sync(v.syncer(root, t.TempDir(), nil))
	at := v.head.Tree
	for _, want := range []string{"workspace", "dir", "file\xff"} {
		nodes, err := snapshot.ListTree(t.Context(), v.reader(), v.key, at)
		must(t, err)
		if len(nodes) != 1 || nodes[0].Name != want {
			t.Fatalf("listed %+v, want %q", nodes, want)
		}
		if want == "file\xff" && (nodes[0].Size != 5 || nodes[0].Mode != 0o640) {
			t.Errorf("listed %+v", nodes[0])
		}
		at = nodes[0].Subtree
	}
}
