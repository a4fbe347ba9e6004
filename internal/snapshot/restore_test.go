//go:build linux

package snapshot_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"homeport.dev/homeport/internal/snapshot"
)

func TestRestoreOverAnOlderCopyFetchesTheDifference(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	for i := range 100 {
		random(t, filepath.Join(root, fmt.Sprint(i)), 100<<10, uint64(i))
	}
	random(t, filepath.Join(root, "large"), 8<<20, 200)
	v.sync(v.syncer(root, t.TempDir(), nil))
	older := t.TempDir()
	v.restore(older, t.TempDir())

	for i := range 10 {
		random(t, filepath.Join(root, fmt.Sprint(i)), 100<<10, uint64(i+1000))
	}
	must(t, os.Remove(filepath.Join(root, "50")))
	must(t, os.Mkdir(filepath.Join(root, "50"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "50", "inside"), []byte("x"), 0o600))
	f, err := os.OpenFile(filepath.Join(root, "large"), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 1000), 4<<20)
	must(t, err)
	must(t, f.Truncate(9<<20))
	must(t, f.Close())
	v.sync(v.syncer(root, t.TempDir(), nil))

	// What lies in the way, or outside, must neither be followed nor kept.
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "victim"), []byte("precious"), 0o644))
	must(t, os.Remove(filepath.Join(older, "60")))
	must(t, os.Symlink(filepath.Join(outside, "victim"), filepath.Join(older, "60")))
	must(t, os.Link(filepath.Join(outside, "victim"), filepath.Join(older, "70.new")))
	must(t, os.Rename(filepath.Join(older, "70.new"), filepath.Join(older, "70")))
	must(t, os.Symlink(outside, filepath.Join(older, "extra")))
	must(t, os.MkdirAll(filepath.Join(older, "more/below"), 0o755))

	kept, err := os.Stat(filepath.Join(older, "80"))
	must(t, err)
	res := v.restore(older, t.TempDir())
	compare(t, facts(t, root), facts(t, older), nil)
	if res.Fetched > 5<<20 {
		t.Errorf("fetched %d bytes of 19 MB, want a quarter at most", res.Fetched)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "victim")); err != nil || string(b) != "precious" {
		t.Errorf("a file outside became %q, %v", b, err)
	}
	again, err := os.Stat(filepath.Join(older, "80"))
	must(t, err)
	if !os.SameFile(kept, again) {
		t.Error("a file that was right was made anew")
	}
}

func TestRestoreTrustsTheStateOfTheSyncer(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, state := t.TempDir(), t.TempDir()
	fill(t, root, 200, 1)
	v.sync(v.syncer(root, state, nil))
	settle()
	want := facts(t, root)
	random(t, filepath.Join(root, "d1", "stray"), 1000, 1)
	res := v.restore(root, state)
	compare(t, want, facts(t, root), nil)
	if res.Kept == 0 || res.Kept != res.Bytes {
		t.Errorf("kept %d of %d bytes", res.Kept, res.Bytes)
	}
}

func TestHardLinksStayTogetherAcrossMachines(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	for _, d := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(root, d), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(root, "a/one"), []byte("shared"), 0o644))
	must(t, os.Link(filepath.Join(root, "a/one"), filepath.Join(root, "b/two")))
	v.sync(v.syncer(root, t.TempDir(), nil))
	for i := range 3 {
		next, state := t.TempDir(), t.TempDir()
		v.restore(next, state)
		compare(t, facts(t, root), facts(t, next), nil)
		root = next
		// Only one of the two folders is written anew.
		must(t, os.WriteFile(filepath.Join(root, "a", fmt.Sprintf("file-%d", i)), []byte("x"), 0o644))
		v.sync(v.syncer(root, state, nil))
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 200, 1)
	v.sync(v.syncer(root, t.TempDir(), nil))
	o := v.restoreOptions(t.TempDir(), t.TempDir())
	var last snapshot.Progress
	calls := 0
	at := time.Unix(0, 0)
	o.Now = func() time.Time { at = at.Add(time.Second); return at }
	o.Progress = func(p snapshot.Progress) {
		if p.BytesDone < last.BytesDone || p.BytesDone > p.BytesTotal {
			t.Errorf("progress went from %+v to %+v", last, p)
		}
		last, calls = p, calls+1
	}
	_, err := snapshot.Restore(t.Context(), o)
	must(t, err)
	if calls < 10 || last.BytesDone != last.BytesTotal || last.FilesDone != last.FilesTotal || last.FilesDone < 200 {
		t.Errorf("after %d calls the progress is %+v", calls, last)
	}
}
