//go:build linux

package snapshot_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/snapshot"
)

// TestNoFlippedBitIsRestored flips one bit of the stored objects after the
// other: every restore must either refuse, or be right, as where the bit lies
// in what a restore does not read.
func TestNoFlippedBitIsRestored(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 60, 1)
	random(t, filepath.Join(root, "large"), 1<<20, 1)
	v.sync(v.syncer(root, t.TempDir(), nil))
	want := facts(t, root)
	var objects []string
	must(t, filepath.WalkDir(v.store.Path(prefix), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (filepath.Base(filepath.Dir(path)) == "index" || len(filepath.Base(filepath.Dir(path))) == 2) {
			objects = append(objects, path)
		}
		return err
	}))
	rnd := rand.New(rand.NewPCG(4, 5))
	refused, unread := 0, 0
	for i := range 100 {
		path := objects[i%len(objects)]
		b, err := os.ReadFile(path)
		must(t, err)
		bit := rnd.IntN(8 * len(b))
		header := len(b) - 4 - int(binary.LittleEndian.Uint32(b[len(b)-4:])) // of a pack
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, b, 0o600))
		out := filepath.Join(t.TempDir(), "out")
		must(t, os.Mkdir(out, 0o755))
		_, err = snapshot.Restore(t.Context(), v.restoreOptions(out, t.TempDir()))
		switch {
		case errors.Is(err, snapshot.ErrDamaged):
			refused++
			checkNoWrongByte(t, want, facts(t, out))
		case err != nil:
			t.Errorf("flip %d: %v, want ErrDamaged", i, err)
		case bit/8 < header || !strings.Contains(path, "/data/"):
			t.Errorf("flip %d: byte %d of %d of %s is wrong, and nobody noticed", i, bit/8, len(b), path)
		default:
			unread++
			compare(t, want, facts(t, out), nil)
		}
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, b, 0o600))
		must(t, os.RemoveAll(out))
	}
	if refused < 80 {
		t.Errorf("only %d of 100 flips were noticed", refused)
	}
	measured(t, "%d of 100 reported, %d in pack headers that no restore reads; 0 wrong bytes", refused, unread)
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, want, facts(t, out), nil)
}

// checkNoWrongByte allows files to be missing or unfinished, but not to look
// finished with other bytes.
func checkNoWrongByte(t *testing.T, want, got map[string]fact) {
	t.Helper()
	for name, g := range got {
		w, ok := want[name]
		if !ok {
			t.Errorf("%q was never there", name)
		}
		if g.size == w.size && g.sec == w.sec && g.nsec == w.nsec && g.sum != w.sum {
			t.Errorf("%q has wrong bytes", name)
		}
	}
}

func TestBlobDamagedOnTheWayIsFetchedOnceMore(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	random(t, filepath.Join(root, "large"), 3<<20, 1)
	v.sync(v.syncer(root, t.TempDir(), nil))
	want := facts(t, root)
	o := v.restoreOptions(t.TempDir(), t.TempDir())
	bad := &flaky{Objects: v}
	o.Objects = bad
	_, err := snapshot.Restore(t.Context(), o)
	must(t, err)
	compare(t, want, facts(t, o.Root), nil)
	if bad.flipped.Load() == 0 {
		t.Error("nothing was damaged")
	}
}

// flaky damages the first answer of each data pack.
type flaky struct {
	snapshot.Objects
	flipped atomic.Int64
	seen    atomic.Int64
}

func (f *flaky) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	r, err := f.Objects.Get(ctx, kind, id, offset, length)
	if err != nil || kind != snapshot.KindData || f.seen.Add(1) > 1 {
		return r, err
	}
	f.flipped.Add(1)
	return flip{r}, nil
}

type flip struct{ io.ReadCloser }

func (f flip) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		p[n/2] ^= 1
	}
	return n, err
}

func TestMissingPackIsDamage(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	random(t, filepath.Join(root, "large"), 1<<20, 1)
	c := v.sync(v.syncer(root, t.TempDir(), nil))
	for _, o := range c.Objects {
		if o.Kind == snapshot.KindData {
			must(t, v.store.Delete(t.Context(), snapshot.ObjectKey(prefix, o.Kind, o.ID)))
		}
	}
	_, err := snapshot.Restore(t.Context(), v.restoreOptions(t.TempDir(), t.TempDir()))
	if !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("Restore = %v, want ErrDamaged", err)
	}
}

func TestStoreThatFailsForAWhileDelaysARestore(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	random(t, filepath.Join(root, "large"), 1<<20, 1)
	v.sync(v.syncer(root, t.TempDir(), nil))
	var n atomic.Int64
	v.fail = func(op string, _ snapshot.Object) error {
		if op == "get" && n.Add(1)%2 == 1 {
			return fault.New(fault.Unavailable, "store_unavailable", "Later.")
		}
		return nil
	}
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, facts(t, root), facts(t, out), nil)
}

func TestSyncGoesOnAfterAFailedUpload(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	for i := range 20 {
		random(t, filepath.Join(root, fmt.Sprint(i)), 300<<10, uint64(i))
	}
	s := v.syncer(root, t.TempDir(), func(o *snapshot.SyncerOptions) { o.Limits.PackSize = 256 << 10 })
	var n atomic.Int64
	down := errors.New("down")
	v.fail = func(op string, _ snapshot.Object) error {
		if op == "put" && n.Add(1) > 8 {
			return down
		}
		return nil
	}
	if _, err := s.Run(t.Context(), snapshot.RunOptions{}); !errors.Is(err, down) {
		t.Fatalf("Run = %v, want the store's error", err)
	}
	sent := v.puts
	v.fail = nil
	v.sync(s)
	if total := v.puts; total > 20*300<<10+1<<20 {
		t.Errorf("%d bytes were sent in all, %d before the failure", total, sent)
	}
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, facts(t, root), facts(t, out), nil)
	v.restic("check", "--read-data")
}
