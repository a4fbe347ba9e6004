//go:build linux

package snapshot_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/snapshot"
)

// generateMany makes a tree like that of a Python environment: many small
// files, most of them text that compresses well, and one folder for six.
func generateMany(t *testing.T, root string, files int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(7, 7))
	words := make([]string, 4000)
	for i := range words {
		b := make([]byte, 2+rnd.IntN(9))
		for j := range b {
			b[j] = byte('a' + rnd.IntN(26))
		}
		words[i] = string(b)
	}
	zipf := rand.NewZipf(rnd, 1.2, 3, uint64(len(words)-1))
	var corpus bytes.Buffer
	for corpus.Len() < 8<<20 {
		corpus.WriteString(words[zipf.Uint64()])
		corpus.WriteByte(" \n(),.=_"[rnd.IntN(8)])
	}
	text := corpus.Bytes()
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("p%d", i/600), fmt.Sprintf("m%d", i/60%10), fmt.Sprintf("s%d", i/6%10))
		if i%6 == 0 {
			must(t, os.MkdirAll(dir, 0o755))
		}
		size := int(800 * (1 / (0.012 + rnd.Float64()))) // mean about 3.5 kB, long tail
		if rnd.IntN(40) == 0 {
			size *= 40
		}
		size = min(size*2, 4<<20)
		var b bytes.Buffer
		for b.Len() < size {
			if i%5 == 0 && rnd.IntN(3) > 0 { // compiled code: hardly compresses
				for range 16 {
					var w [8]byte
					for k := range w {
						w[k] = byte(rnd.Uint32())
					}
					b.Write(w[:])
				}
				continue
			}
			at := rnd.IntN(len(text) - 300)
			b.Write(text[at : at+20+rnd.IntN(200)])
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("module_%d.py", i)), b.Bytes()[:size], 0o644))
	}
}

func randomFile(t *testing.T, path string, n int64, seed uint64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	var key [32]byte
	key[0] = byte(seed)
	_, err = io.CopyN(f, rand.NewChaCha8(key), n)
	must(t, err)
	must(t, f.Close())
}

func du(t *testing.T, root string) (files int, size int64) {
	t.Helper()
	must(t, filepath.Walk(root, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			files++
			size += info.Size()
		}
		return err
	}))
	return files, size
}

func barsMany(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	files, size := du(t, b.root)
	tb.fact("data set A: %d files, %d MB", files, size/1e6)
	for range rounds {
		b.fresh()
		ours, stored := b.sync("A first sync")
		tar := shell(t, "A tar|zstd", fmt.Sprintf("tar -C %s -cf - . | zstd -1 -T2 -q > %s/tar.zst", b.root, b.tmp))
		b.resticCost("restic init", "init")
		restic := b.resticCost("A restic backup", "backup", b.root)
		tb.pair("1 first sync A / tar, zstd -1 -T2", "<= 2.5", 2.5, ours, tar)
		tb.pair("1 first sync A / restic", "<= 0.6 (CPU <= 0.5)", 0.6, ours, restic)
		tb.fact("first sync A: %.1f s, %d MB stored, RSS %d MB (demand 384)", ours.wall.Seconds(), stored/1e6, ours.rss)
	}
	barUnchanged(t, tb, b, rounds)
	for i := range rounds {
		out := filepath.Join(b.tmp, "out")
		cp := shell(t, "A cp -a", fmt.Sprintf("cp -a %s %s/cp", b.root, b.tmp))
		ours, res := b.restore("A restore", out)
		tb.pair("6 restore A / cp -a", "<= 2.0", 2, ours, cp)
		if i < 3 {
			restic := b.resticCost("A restic restore", "restore", "latest", "--target", filepath.Join(b.tmp, "restic-out"))
			tb.pair("6 restore A / restic", "<= 0.7", 0.7, ours, restic)
		}
		tb.fact("restore A: %.1f s, fetched %d MB, RSS %d MB (demand 384)", ours.wall.Seconds(), res.Fetched/1e6, ours.rss)
		for _, d := range []string{out, out + ".state", filepath.Join(b.tmp, "cp"), filepath.Join(b.tmp, "restic-out")} {
			must(t, os.RemoveAll(d))
		}
	}
	barChanged(t, tb, b)
}

// barUnchanged measures a resident syncer that finds nothing to do.
func barUnchanged(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	objects, err := newHTTPObjects(b.srv.URL, b.v.store.Path(""))
	must(t, err)
	o := b.v.syncerOptions(b.root, b.state)
	o.Objects, o.Resume = objects, nil
	s, err := snapshot.NewSyncer(t.Context(), o)
	must(t, err)
	for i := range rounds + 2 {
		var before, after syscall.Rusage
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
		start := time.Now()
		c, err := s.Run(t.Context(), snapshot.RunOptions{})
		wall := time.Since(start)
		must(t, err)
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
		if c != nil {
			t.Fatalf("a pass without changes made a snapshot: %+v", c)
		}
		ours := cost{wall: wall, cpu: time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())}
		t.Logf("A no-change pass: %.3fs wall %.3fs cpu", ours.wall.Seconds(), ours.cpu.Seconds())
		find := shell(t, "A find -printf", fmt.Sprintf(`find %s -printf '%%p %%s %%T@ %%C@ %%i %%m\n' > /dev/null`, b.root))
		if i >= 2 {
			tb.pair("3 no-change pass A / find -printf", "<= 2.5", 2.5, ours, find)
			if i == 2 {
				restic := b.resticCost("A restic no change", "backup", b.root)
				tb.pair("3 no-change pass A / restic", "<= 0.1", 0.1, ours, restic)
			}
		}
	}
}

// barChanged changes 1 % of the files and renames a folder.
func barChanged(t *testing.T, tb *table, b *bench) {
	t.Helper()
	older := filepath.Join(b.tmp, "older")
	b.restore("A older copy", older)
	n, changed := 0, int64(0)
	must(t, filepath.Walk(b.root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if n++; n%100 == 0 {
			body := bytes.Repeat(fmt.Appendf(nil, "changed %d\n", n), 500)
			changed += int64(len(body))
			return os.WriteFile(path, body, 0o644)
		}
		return nil
	}))
	must(t, os.Rename(filepath.Join(b.root, "p0"), filepath.Join(b.root, "renamed")))
	ours, sent := b.sync("A 1% changed")
	restic := b.resticCost("A restic 1% changed", "backup", b.root)
	tb.pair("4 1 % changed A / restic", "<= 0.6", 0.6, ours, restic)
	tb.fact("1 %% changed: %.1f MB uploaded for %.1f MB changed (demand: compressed new blobs x 1.3 + 5 MB)", float64(sent)/1e6, float64(changed)/1e6)
	_, res := b.restore("A in-place restore", older)
	tb.fact("in-place restore of A, 99 %% there: %d of %d MB fetched, %d MB kept (demand 25 %%)", res.Fetched/1e6, res.Bytes/1e6, res.Kept/1e6)
}

func barsLarge(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	_, size := du(t, b.root)
	for range rounds {
		b.fresh()
		ours, _ := b.sync("C first sync")
		sum := shell(t, "C sha256sum", fmt.Sprintf("sha256sum %s/*", b.root))
		b.resticCost("restic init", "init")
		restic := b.resticCost("C restic backup", "backup", b.root)
		tb.pair("2 first sync C / sha256sum", "<= 1.4", 1.4, ours, sum)
		tb.pair("2 first sync C / restic", "<= 0.65", 0.65, ours, restic)
		out := filepath.Join(b.tmp, "out")
		back, _ := b.restore("C restore", out)
		resticBack := b.resticCost("C restic restore", "restore", "latest", "--target", filepath.Join(b.tmp, "restic-out"))
		tb.pair("7 restore C / restic", "<= 0.65", 0.65, back, resticBack)
		tb.fact("C: sync %.1f s, %d MB; restore %.1f s, %.0f MB/s, %.0f MB per CPU second, %d MB", ours.wall.Seconds(), ours.rss,
			back.wall.Seconds(), float64(size)/1e6/back.wall.Seconds(), float64(size)/1e6/back.cpu.Seconds(), back.rss)
		for _, d := range []string{out, out + ".state", filepath.Join(b.tmp, "restic-out")} {
			must(t, os.RemoveAll(d))
		}
	}
	added := shift(t, filepath.Join(b.root, "0"))
	_, sent := b.sync("C shifted")
	tb.fact("5 shifted insert and overwrite in C: %.1f MB uploaded for %.1f MB new: %.2f (demand 1.25)", float64(sent)/1e6, float64(added)/1e6, float64(sent)/float64(added))
}

// shift inserts 1,000 bytes near the beginning of a file, overwrites 10 MB and
// appends 10 MB; it returns the number of new bytes.
func shift(t *testing.T, path string) int64 {
	t.Helper()
	in, err := os.Open(path)
	must(t, err)
	defer in.Close()
	info, err := in.Stat()
	must(t, err)
	part := min(10e6, info.Size()/5)
	out, err := os.Create(path + ".new")
	must(t, err)
	w := bufio.NewWriterSize(out, 1<<20)
	var key [32]byte
	key[0] = 99
	rnd := rand.NewChaCha8(key)
	copyN := func(r io.Reader, n int64) {
		_, err := io.CopyN(w, r, n)
		must(t, err)
	}
	copyN(in, info.Size()/10)
	copyN(rnd, 1000)
	copyN(in, info.Size()/2)
	copyN(rnd, part)
	_, err = in.Seek(part, io.SeekCurrent)
	must(t, err)
	_, err = io.Copy(w, in)
	must(t, err)
	copyN(rnd, part)
	must(t, w.Flush())
	must(t, out.Close())
	must(t, os.Rename(path+".new", path))
	return 2*part + 1000
}
