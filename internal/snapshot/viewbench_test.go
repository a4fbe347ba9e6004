//go:build linux

package snapshot_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"homeport.dev/homeport/internal/snapshot"
)

// BenchmarkView measures what somebody waits for who looks into a version: the
// opening of it, a folder of 100,000 files, the first byte of an archive and of
// a large file, and how fast both come. Caches are cold but for "again".
func BenchmarkView(b *testing.B) {
	v := newVolume(b)
	root := b.TempDir()
	must(b, os.Mkdir(filepath.Join(root, "many"), 0o755))
	for i := range 100_000 {
		must(b, os.WriteFile(filepath.Join(root, "many", fmt.Sprintf("file-%06d", i)), fmt.Appendf(nil, "this is %d", i), 0o644))
	}
	random(b, filepath.Join(root, "large"), 256<<20, 5)
	v.sync(v.syncer(root, b.TempDir(), nil))
	open := func() *snapshot.View { // as a node does at the first look
		view, err := snapshot.OpenView(b.Context(), v.reader(), v.key, v.head.Tree, nil, snapshot.NewFolderCache(64<<20))
		must(b, err)
		return view
	}
	list := func(view *snapshot.View) {
		if nodes, total, err := view.List(b.Context(), "many", 50_000, 200); err != nil || total != 100_000 || len(nodes) != 200 {
			b.Fatal(len(nodes), total, err)
		}
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open()
		}
	})
	b.Run("page of 100,000", func(b *testing.B) {
		for b.Loop() {
			list(open())
		}
	})
	b.Run("page of 100,000 again", func(b *testing.B) {
		view := open()
		list(view)
		for b.Loop() {
			list(view)
		}
	})
	b.Run("file", func(b *testing.B) {
		view := open()
		b.SetBytes(256 << 20)
		var first time.Duration
		for b.Loop() {
			start := time.Now()
			f, err := view.OpenFile(b.Context(), "large")
			must(b, err)
			first += time.Since(start)
			_, err = io.Copy(io.Discard, f)
			must(b, err)
			f.Close()
		}
		b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms-first-byte")
	})
	b.Run("archive", func(b *testing.B) {
		var first time.Duration
		for b.Loop() {
			start := time.Now()
			a, err := open().OpenArchive(b.Context(), "")
			must(b, err)
			w := &firstByte{}
			must(b, a.WriteTo(b.Context(), w))
			first += w.at.Sub(start)
			b.SetBytes(w.n)
		}
		b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms-first-byte")
	})
}

// A firstByte notes when the first byte came, and counts all.
type firstByte struct {
	at time.Time
	n  int64
}

func (w *firstByte) Write(p []byte) (int, error) {
	if w.n == 0 {
		w.at = time.Now()
	}
	w.n += int64(len(p))
	return len(p), nil
}
