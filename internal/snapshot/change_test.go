//go:build linux

package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/snapshot"
)

func TestNothingChangedMeansNothingDone(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, state := t.TempDir(), t.TempDir()
	fill(t, root, 300, 1)
	s := v.syncer(root, state, nil)
	v.sync(s)
	settle()
	puts := v.puts
	for range 3 {
		if c, err := s.Run(t.Context(), snapshot.RunOptions{}); c != nil || err != nil {
			t.Fatalf("Run = %+v, %v, want nothing", c, err)
		}
	}
	s.Close()
	again := v.syncer(root, state, nil)
	if c, err := again.Run(t.Context(), snapshot.RunOptions{}); c != nil || err != nil {
		t.Fatalf("Run of a new syncer = %+v, %v, want nothing", c, err)
	}
	lost := v.syncer(root, t.TempDir(), nil) // without its state it reads all, and finds the same
	if c, err := lost.Run(t.Context(), snapshot.RunOptions{}); c != nil || err != nil {
		t.Fatalf("Run without state = %+v, %v, want nothing", c, err)
	}
	if v.puts != puts {
		t.Errorf("%d bytes were stored", v.puts-puts)
	}
	c, err := again.Run(t.Context(), snapshot.RunOptions{Force: true})
	must(t, err)
	if c == nil || c.Tree != v.head.Tree || c.Parent != v.head.Snapshot || len(c.Objects) != 0 {
		t.Errorf("forced Run = %+v, want a snapshot of the same tree", c)
	}
	must(t, v.commit(c))
}

// settle waits until the coarse clock of the file system has moved on.
func settle() {
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		_ = start
	}
}

func TestEveryKindOfChangeIsSeen(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 100, 1)
	p := func(name string) string { return filepath.Join(root, name) }
	random(t, p("a"), 1000, 1)
	must(t, os.Mkdir(p("dir"), 0o755))
	s := v.syncer(root, t.TempDir(), nil)
	v.sync(s)
	stamp := time.Unix(1700000000, 123)
	steps := []struct {
		name string
		do   func() error
	}{
		{"write of the same size and time", func() error {
			must(t, os.Chtimes(p("a"), stamp, stamp))
			v.sync(s)
			random(t, p("a"), 1000, 2)
			return os.Chtimes(p("a"), stamp, stamp)
		}},
		{"mode", func() error { return os.Chmod(p("a"), 0o600) }},
		{"time", func() error { return os.Chtimes(p("a"), time.Time{}, stamp.Add(1)) }},
		{"time of a folder", func() error { return os.Chtimes(p("dir"), time.Time{}, stamp) }},
		{"new file", func() error { return os.WriteFile(p("dir/new"), []byte("x"), 0o644) }},
		{"rename", func() error { return os.Rename(p("dir/new"), p("dir/newer")) }},
		{"rename of a folder", func() error { return os.Rename(p("d1"), p("dir/d1")) }},
		{"file becomes folder", func() error { must(t, os.Remove(p("a"))); return os.Mkdir(p("a"), 0o755) }},
		{"folder becomes link", func() error { must(t, os.Remove(p("a"))); return os.Symlink("dir", p("a")) }},
		{"link becomes file", func() error { must(t, os.Remove(p("a"))); return os.WriteFile(p("a"), nil, 0o644) }},
		{"hard link", func() error { return os.Link(p("dir/newer"), p("b")) }},
		{"write to a hard link", func() error { return os.WriteFile(p("b"), []byte("both"), 0o644) }},
		{"one name removed", func() error { return os.Remove(p("b")) }},
		{"removal", func() error { return os.RemoveAll(p("dir")) }},
		{"time of the root", func() error { return os.Chtimes(root, time.Time{}, stamp) }},
	}
	for _, step := range steps {
		must(t, step.do())
		if c := v.sync(s); c == nil {
			t.Errorf("%s: not seen", step.name)
			continue
		}
		out := t.TempDir()
		v.restore(out, t.TempDir())
		if compare(t, facts(t, root), facts(t, out), nil); t.Failed() {
			t.Fatalf("after %s", step.name)
		}
	}
	v.restic("check", "--read-data")
}

func TestOwnFolderOfTheAgentIsLeftAlone(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	own := filepath.Join(root, ".homeport")
	must(t, os.Mkdir(own, 0o700))
	must(t, os.WriteFile(filepath.Join(root, "file"), []byte("x"), 0o644))
	s := v.syncer(root, own, nil)
	if c := v.sync(s); c.Entries != 2 {
		t.Errorf("%d entries, want the root and the file", c.Entries)
	}
	must(t, os.WriteFile(filepath.Join(own, "more"), []byte("x"), 0o644))
	settle()
	if c := v.sync(s); c != nil {
		t.Errorf("a change in .homeport made a snapshot: %+v", c)
	}
	must(t, os.Remove(filepath.Join(root, "file")))
	v.restore(root, own)
	if _, err := os.Stat(filepath.Join(own, "more")); err != nil {
		t.Errorf("the restore touched .homeport: %v", err)
	}
}

func TestShiftAndRenameUploadLittle(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	big := random(t, filepath.Join(root, "big"), 48<<20, 1)
	fill(t, root, 500, 2)
	s := v.syncer(root, t.TempDir(), nil)
	v.sync(s)

	before := v.puts
	shifted := append(append(append([]byte(nil), big[:5<<20]...), bytes.Repeat([]byte("new"), 333)...), big[5<<20:]...)
	must(t, os.WriteFile(filepath.Join(root, "big"), shifted, 0o644))
	v.sync(s)
	if n := v.puts - before; n > 4<<20 {
		t.Errorf("an insertion of 1 kB into 48 MB uploaded %d bytes", n)
	}

	before = v.puts
	must(t, os.Rename(filepath.Join(root, "d1"), filepath.Join(root, "renamed")))
	v.sync(s)
	if n := v.puts - before; n > 64<<10 {
		t.Errorf("renaming a folder uploaded %d bytes", n)
	}
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, facts(t, root), facts(t, out), nil)
}

func TestEarlyChangesHoldOnlyWholeFiles(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "old"), []byte("old"), 0o644))
	s := v.syncer(root, t.TempDir(), func(o *snapshot.SyncerOptions) {
		o.Limits = snapshot.Limits{PackSize: 1 << 20, PartialBytes: 3 << 20, Workers: 2}
	})
	v.sync(s)
	must(t, os.WriteFile(filepath.Join(root, "old"), []byte("newer"), 0o644))
	for i := range 20 {
		random(t, filepath.Join(root, fmt.Sprintf("small-%d", i)), 400<<10, uint64(i))
	}
	random(t, filepath.Join(root, "large"), 12<<20, 99)
	want := facts(t, root)
	partial, before := 0, v.puts
	for {
		c, err := s.Run(t.Context(), snapshot.RunOptions{})
		must(t, err)
		if c == nil {
			break
		}
		must(t, v.commit(c))
		s.Committed(c)
		if !c.Partial {
			break
		}
		partial++
		if s.DirtyBytes() == 0 {
			t.Error("a partial change leaves nothing dirty")
		}
		out := t.TempDir()
		v.restore(out, t.TempDir())
		for name, g := range facts(t, out) {
			if w := want[name]; name != "." && name != "/old" && g != w {
				t.Errorf("%s is not whole: %+v", name, g)
			}
		}
	}
	if partial < 2 {
		t.Errorf("%d early changes, want some", partial)
	}
	if n := v.puts - before; n > 22<<20 {
		t.Errorf("%d bytes were uploaded for 20 MiB", n)
	}
	if s.DirtyBytes() != 0 {
		t.Errorf("%d bytes are dirty at the end", s.DirtyBytes())
	}
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, want, facts(t, out), nil)
}

// TestSnapshotNeverHoldsAMix rewrites a file in place, without end, while it
// is synced: what a snapshot holds is one of the versions, or flagged.
func TestSnapshotNeverHoldsAMix(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	version := func(n byte) []byte { return bytes.Repeat([]byte{n}, 2<<20) }
	inPlace, renamed := filepath.Join(root, "in-place"), filepath.Join(root, "renamed")
	must(t, os.WriteFile(inPlace, version(0), 0o644))
	must(t, os.WriteFile(renamed, version(0), 0o644))
	s := v.syncer(root, t.TempDir(), nil)
	v.sync(s)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := byte(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			f, err := os.OpenFile(inPlace, os.O_WRONLY, 0)
			if err == nil {
				_, _ = f.WriteAt(version(n), 0)
				f.Close()
			}
			_ = os.WriteFile(renamed+".new", version(n), 0o644)
			_ = os.Rename(renamed+".new", renamed)
		}
	})
	mixes, held, unstable := 0, 0, int64(0)
	for i := 0; i < 40 || thorough() && held < 200 && i < 1000; i++ {
		c, err := s.Run(t.Context(), snapshot.RunOptions{})
		must(t, err)
		if c == nil {
			continue
		}
		must(t, v.commit(c))
		s.Committed(c)
		unstable += c.Unstable
		held++
		out := t.TempDir()
		v.restore(out, t.TempDir())
		for _, name := range []string{"in-place", "renamed"} {
			b, err := os.ReadFile(filepath.Join(out, name))
			must(t, err)
			if len(b) != 2<<20 || !bytes.Equal(b, version(b[0])) {
				mixes++
				t.Errorf("%s is a mix of versions", name)
			}
		}
	}
	close(stop)
	writer.Wait()
	if held < times(200, 1) {
		t.Errorf("only %d snapshots were made", held)
	}
	measured(t, "%d mixes in %d snapshots; %d torn reads flagged or left for later", mixes, held, unstable)
	v.sync(s)
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compare(t, facts(t, root), facts(t, out), nil)
}

func TestChangeThatWasNotCommittedComesAgain(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 50, 1)
	s := v.syncer(root, t.TempDir(), nil)
	first, err := s.Run(t.Context(), snapshot.RunOptions{})
	must(t, err)
	puts := v.puts
	second, err := s.Run(t.Context(), snapshot.RunOptions{})
	must(t, err)
	if second == nil || second.Tree != first.Tree || len(second.Objects) < len(first.Objects) {
		t.Fatalf("second change %+v, want the first again", second)
	}
	if v.puts != puts {
		t.Errorf("%d bytes were uploaded again", v.puts-puts)
	}
	must(t, v.commit(second))
	s.Committed(second)
	if err := v.commit(first); err == nil {
		t.Error("two snapshots of one parent were committed")
	}
	if c := v.sync(s); c != nil {
		t.Errorf("after the commit %+v, want nothing", c)
	}
	if _, err := snapshot.DecodeSnapshot(snapshot.NewKey(), first.Snapshot); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("with another key DecodeSnapshot = %v, want ErrDamaged", err)
	}
}

// TestStoresThroughAMappingAreSeen changes a mapped file again and again; the
// file's times move only at the first store to a clean page.
func TestStoresThroughAMappingAreSeen(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	path := filepath.Join(root, "mapped")
	must(t, os.WriteFile(path, make([]byte, 8192), 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	defer func() { must(t, unix.Munmap(m)) }()
	s := v.syncer(root, t.TempDir(), nil)
	for i := range byte(5) {
		m[0] = i + 1 // dirties the page
		settle()
		v.sync(s)
		m[1] = i + 1 // the page may be dirty already
		settle()
		v.sync(s)
		out := t.TempDir()
		v.restore(out, t.TempDir())
		b, err := os.ReadFile(filepath.Join(out, "mapped"))
		must(t, err)
		if b[0] != i+1 || b[1] != i+1 {
			t.Fatalf("round %d: the snapshot has %d and %d", i, b[0], b[1])
		}
	}
}
