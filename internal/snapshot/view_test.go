//go:build linux

package snapshot_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/snapshot"
)

func (v *volume) view() *snapshot.View {
	v.t.Helper()
	view, err := snapshot.OpenView(v.t.Context(), v.reader(), v.key, v.head.Tree, nil, nil)
	must(v.t, err)
	return view
}

// archive returns a folder of the head as tar.
func (v *volume) archive(path string) []byte {
	v.t.Helper()
	a, err := v.view().OpenArchive(v.t.Context(), path)
	must(v.t, err)
	var b bytes.Buffer
	must(v.t, a.WriteTo(v.t.Context(), &b))
	return b.Bytes()
}

// extract runs GNU tar on an archive.
func extract(t *testing.T, archive []byte, out string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tar", append([]string{"-xpf", "-", "--xattrs", "--xattrs-include=*", "--warning=no-timestamp", "-C", out}, args...)...)
	cmd.Stdin = bytes.NewReader(archive)
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Fatalf("tar: %v\n%s", err, text)
	}
}

// What comes out of an archive is field by field what was in the folder, as
// far as GNU tar takes it.
func TestAnArchiveGivesOddEntriesBack(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, out := t.TempDir(), t.TempDir()
	odd(t, root)
	want := facts(t, root)
	v.sync(v.syncer(root, t.TempDir(), nil))
	archive := v.archive("")
	if len(archive) > 80<<20 {
		t.Errorf("the archive has %d bytes: holes are written out", len(archive))
	}
	// GNU tar makes no path of more than 4,096 bytes.
	extract(t, archive, out, "--exclude=deepdeep*")
	got := facts(t, filepath.Join(out, "workspace"))
	compare(t, want, got, func(name string, want, got *fact) bool {
		if strings.HasPrefix(name, "/deepdeep") {
			return true
		}
		got.blocks = min(got.blocks, want.blocks)
		return *want == *got || name == "/zeros" && want.sum == got.sum
	})
	checkArchive(t, archive, want)
}

// checkArchive reads an archive with another reader, which knows no longest path.
func checkArchive(t *testing.T, archive []byte, want map[string]fact) {
	t.Helper()
	r, seen := tar.NewReader(bytes.NewReader(archive)), 0
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "workspace"), "/")
		w, ok := want[name]
		if name == "" {
			w, ok = want["."]
		}
		if !ok {
			t.Errorf("%q was never there", name)
			continue
		}
		seen++
		if h.Typeflag != tar.TypeLink && (h.ModTime.Unix() != w.sec || int64(h.ModTime.Nanosecond()) != w.nsec) {
			t.Errorf("%.100q is of %v, want %d.%09d", name, h.ModTime, w.sec, w.nsec)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		sum := sha256.New()
		n, err := io.Copy(sum, r)
		must(t, err)
		if n != w.size || [32]byte(sum.Sum(nil)) != w.sum {
			t.Errorf("%.100q has %d bytes of %d, or others", name, n, w.size)
		}
	}
	if seen != len(want) {
		t.Errorf("the archive has %d entries, want %d", seen, len(want))
	}
}

// Part of a volume is an archive of its own, by the folder's name.
func TestAnArchiveOfOneFolder(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, out := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "a/b\xff/c"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "a/b\xff/c/in"), []byte("in"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "a/out"), []byte("out"), 0o600))
	v.sync(v.syncer(root, t.TempDir(), nil))
	extract(t, v.archive("a/b\xff"), out)
	compare(t, facts(t, filepath.Join(root, "a/b\xff")), facts(t, filepath.Join(out, "b\xff")), nil)
	_, err := v.view().OpenArchive(t.Context(), "a/out")
	if !errors.Is(err, snapshot.ErrNotFolder) {
		t.Errorf("a file as an archive: %v", err)
	}
}

// A file reads as it was written, whole and from anywhere.
func TestAFileIsReadByteForByte(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	odd(t, root)
	random(t, filepath.Join(root, "large"), 30<<20+17, 9)
	must(t, os.WriteFile(filepath.Join(root, "text"), bytes.Repeat([]byte("the same line again\n"), 1<<20), 0o644))
	v.sync(v.syncer(root, t.TempDir(), nil))
	view, rnd := v.view(), rand.New(rand.NewPCG(1, 2))
	files := 0
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "deepdeep") {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		want, err := os.ReadFile(path)
		must(t, err)
		f, err := view.OpenFile(t.Context(), strings.TrimPrefix(path, root))
		must(t, err)
		defer f.Close()
		got, err := io.ReadAll(f)
		must(t, err)
		if !bytes.Equal(got, want) || f.Size != int64(len(want)) {
			t.Errorf("%s: read %d bytes, want %d, or others", path, len(got), len(want))
		}
		for range 5 {
			from, part := rnd.Int64N(f.Size+1), make([]byte, rnd.Int64N(1<<20))
			_, err := f.Seek(from, io.SeekStart)
			must(t, err)
			n, err := io.ReadFull(f, part)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			if rest := want[from:]; !bytes.Equal(part[:n], rest[:min(len(part), len(rest))]) {
				t.Errorf("%s: %d bytes from %d differ", path, n, from)
			}
		}
		return nil
	}))
	if files < 40 {
		t.Errorf("%d files were read", files)
	}
	for path, want := range map[string]error{
		"no": snapshot.ErrNoEntry, "large/x": snapshot.ErrNoEntry, "..": snapshot.ErrNoEntry, "links/../large": snapshot.ErrNoEntry,
		"links": snapshot.ErrNotFile, "": snapshot.ErrNotFile, "link": snapshot.ErrNotFile, "fifo": snapshot.ErrNotFile,
		"to-dir/x": snapshot.ErrNoEntry,
	} {
		if _, err := view.OpenFile(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
}

func TestAFolderIsListedInPages(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("dir-%02d", i))
		must(t, os.Mkdir(filepath.Join(root, want[i]), 0o755))
	}
	for i := range 30 {
		want = append(want, fmt.Sprintf("a-%02d", i))
		must(t, os.WriteFile(filepath.Join(root, fmt.Sprintf("a-%02d", i)), make([]byte, i), 0o644))
	}
	v.sync(v.syncer(root, t.TempDir(), nil))
	cache := snapshot.NewFolderCache(1 << 20)
	for range 2 {
		view, err := snapshot.OpenView(t.Context(), v.reader(), v.key, v.head.Tree, snapshot.NewMeasureCache(1), cache)
		must(t, err)
		var got []string
		for offset := 0; offset < 50; offset += 10 {
			nodes, total, err := view.List(t.Context(), "/", offset, 10)
			must(t, err)
			if total != len(want) {
				t.Errorf("%d entries, want %d", total, len(want))
			}
			for _, n := range nodes {
				got = append(got, n.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q", got)
		}
	}
	if nodes, total, err := v.view().List(t.Context(), "dir-03", 0, 10); err != nil || total != 0 || len(nodes) != 0 {
		t.Errorf("an empty folder: %v, %d, %v", nodes, total, err)
	}
	for path, want := range map[string]error{"a-01": snapshot.ErrNotFolder, "dir-99": snapshot.ErrNoEntry, "a-01/x": snapshot.ErrNoEntry} {
		if _, _, err := v.view().List(t.Context(), path, 0, 10); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
}

// No flipped bit of the store is ever read for what was written.
func TestNoFlippedBitIsDownloaded(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 60, 1)
	want := random(t, filepath.Join(root, "large"), 9<<20, 1)
	v.sync(v.syncer(root, t.TempDir(), nil))
	whole := v.archive("")
	var packs []string
	must(t, filepath.WalkDir(v.store.Path(prefix), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && len(filepath.Base(filepath.Dir(path))) == 2 {
			packs = append(packs, path)
		}
		return err
	}))
	rnd := rand.New(rand.NewPCG(4, 5))
	refused := 0
	for i := range 40 {
		path := packs[i%len(packs)]
		b, err := os.ReadFile(path)
		must(t, err)
		bit := rnd.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, b, 0o600))
		if got, err := read(t.Context(), v, "large"); !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) {
			t.Errorf("flip %d: %d bytes were read, and others than were written: %v", i, len(got), err)
		} else if err != nil && !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("flip %d: %v, want ErrDamaged", i, err)
		}
		var archive bytes.Buffer
		err = write(t.Context(), v, &archive)
		if err != nil {
			refused++
			if !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("flip %d: %v, want ErrDamaged", i, err)
			}
		} else if !bytes.Equal(archive.Bytes(), whole) {
			t.Errorf("flip %d: another archive", i)
		}
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, b, 0o600))
	}
	if refused < 30 {
		t.Errorf("%d of 40 flips were noticed", refused)
	}
	must(t, os.Remove(packs[0]))
	if err := write(t.Context(), v, io.Discard); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("with a pack missing: %v", err)
	}
}

func read(ctx context.Context, v *volume, path string) ([]byte, error) {
	view, err := snapshot.OpenView(ctx, v.reader(), v.key, v.head.Tree, nil, nil)
	if err != nil {
		return nil, err
	}
	f, err := view.OpenFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func write(ctx context.Context, v *volume, w io.Writer) error {
	view, err := snapshot.OpenView(ctx, v.reader(), v.key, v.head.Tree, nil, nil)
	if err != nil {
		return err
	}
	a, err := view.OpenArchive(ctx, "")
	if err != nil {
		return err
	}
	return a.WriteTo(ctx, w)
}

// An archive of any size takes the memory of its buffers, and holes take none.
func TestAnArchiveIsWrittenInLittleMemory(t *testing.T) {
	v := newVolume(t)
	root := t.TempDir()
	for i := range 8 {
		random(t, filepath.Join(root, fmt.Sprintf("large-%d", i)), 32<<20, uint64(i))
	}
	f, err := os.Create(filepath.Join(root, "hole"))
	must(t, err)
	must(t, f.Truncate(1<<40))
	must(t, f.Close())
	v.sync(v.syncer(root, t.TempDir(), nil))
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most := uint64(0)
	written := &watch{every: 16 << 20, look: func() {
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapInuse)
	}}
	must(t, write(t.Context(), v, written))
	if written.n < 256<<20 || written.n > 300<<20 {
		t.Errorf("the archive has %d bytes", written.n)
	}
	if grown := int64(most) - int64(before.HeapInuse); grown > 160<<20 {
		t.Errorf("writing took %d MB", grown>>20)
	}
}

// A watch counts bytes and looks up now and then.
type watch struct {
	n, at, every int64
	look         func()
}

func (w *watch) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	if w.n > w.at {
		w.at = w.n + w.every
		w.look()
	}
	return len(p), nil
}

func TestChangesAreCounted(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 100, 3)
	s := v.syncer(root, t.TempDir(), nil)
	v.sync(s)
	first := v.view()
	must(t, os.WriteFile(filepath.Join(root, "new"), []byte("new"), 0o644))
	must(t, os.MkdirAll(filepath.Join(root, "more/of"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "more/of/it"), []byte("it"), 0o644))
	must(t, os.Symlink("it", filepath.Join(root, "more/of/link")))
	must(t, os.WriteFile(filepath.Join(root, "d0/e0/f0.txt"), []byte("other"), 0o644))
	must(t, os.Chtimes(filepath.Join(root, "d1/e1/f1.txt"), time.Unix(1, 0), time.Unix(1, 0)))
	must(t, os.RemoveAll(filepath.Join(root, "d2/e2")))
	must(t, os.Remove(filepath.Join(root, "d3/e3/f3.txt")))
	must(t, os.Mkdir(filepath.Join(root, "d3/e3/f3.txt"), 0o755))
	must(t, unix.Mkfifo(filepath.Join(root, "d3/e3/f3.txt/fifo"), 0o600))
	v.sync(s)
	got, err := snapshot.Compare(t.Context(), first, v.view(), 1000)
	must(t, err)
	if want := (snapshot.Changes{Added: 4, Changed: 1, Removed: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if _, err := snapshot.Compare(t.Context(), first, v.view(), 3); !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("with a bound of 3 folders: %v", err)
	}
	if got, err := snapshot.Compare(t.Context(), first, first, 0); err != nil || got != (snapshot.Changes{}) {
		t.Errorf("with itself: %+v, %v", got, err)
	}
}

// What is forgotten of a volume is read from the store again, or not at all.
// Other volumes stay known.
func TestAForgottenVolumeIsNotInTheCaches(t *testing.T) {
	t.Parallel()
	folders, indexes := snapshot.NewFolderCache(1<<20), snapshot.NewMeasureCache(1000)
	read := func(v *volume) error {
		view, err := snapshot.OpenView(t.Context(), v.reader(), v.key, v.head.Tree, indexes, folders)
		if err != nil {
			return err
		}
		if _, _, err = view.List(t.Context(), "", 0, 10); err != nil {
			return err
		}
		_, err = snapshot.Measure(t.Context(), v.reader(), v.key, v.head.Tree, indexes)
		return err
	}
	one, other := newVolume(t), newVolume(t)
	for _, v := range []*volume{one, other} {
		root := t.TempDir()
		fill(t, root, 10, 3)
		v.sync(v.syncer(root, t.TempDir(), nil))
		must(t, read(v))
		must(t, v.store.Purge(t.Context(), prefix))
		must(t, read(v)) // all of it is remembered
	}
	folders.Forget(one.key)
	indexes.Forget(one.key)
	if err := read(one); !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a forgotten volume is read: %v", err)
	}
	must(t, read(other))
}
