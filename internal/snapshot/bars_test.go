//go:build linux

package snapshot_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

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

// timesEach is how often most pairs are measured. First syncs and restores of
// many small files, which vary most, take all rounds.
const timesEach = 3

func barsMany(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	files, size := du(t, b.root)
	tb.fact("A has %d files, %d MB", files, size/1e6)
	for range rounds {
		b.fresh()
		ours, stored := b.sync("A first sync")
		tar := shell(t, "A tar|zstd", fmt.Sprintf("tar -C %s -cf - . | zstd -1 -T2 -q > %s/tar.zst", b.root, b.tmp))
		b.resticCost("restic init", "init")
		restic := b.resticCost("A restic backup", "backup", b.root)
		tb.pair("1 first sync A / tar, zstd -1 -T2", "<= 2.5", 2.5, ours, tar)
		tb.pair("1 first sync A / restic", "<= 0.6", 0.6, ours, restic)
		tb.pair("1 first sync A, CPU alone / restic", "<= 0.5", 0.5, cost{wall: ours.cpu}, cost{wall: restic.cpu})
		tb.fact("first sync A: %.1f s, %.1f CPU s, %d MB stored", ours.wall.Seconds(), ours.cpu.Seconds(), stored/1e6)
	}
	barUnchanged(t, tb, b, min(rounds, timesEach))
	// What was made stays until the end: for minutes ext4 looks at each inode
	// that was freed before it makes a new one, which costs more than a restore.
	for i := range rounds {
		out := func(tool string) string { return filepath.Join(b.tmp, fmt.Sprint(tool, i)) }
		cp := shell(t, "A cp -a", fmt.Sprintf("cp -a %s %s", b.root, out("cp")))
		ours, res := b.restore("A restore", out("ours"))
		tb.pair("6 restore A / cp -a", "<= 2.0", 2, ours, cp)
		if i < timesEach {
			restic := b.resticCost("A restic restore", "restore", "latest", "--target", out("restic-out"))
			tb.pair("6 restore A / restic", "<= 0.7", 0.7, ours, restic)
		}
		tb.fact("restore A: %.1f s, %.1f CPU s, fetched %d MB", ours.wall.Seconds(), ours.cpu.Seconds(), res.Fetched/1e6)
	}
	older := filepath.Join(b.tmp, "older")
	_, whole := b.restore("A older copy", older)
	barChanged(t, tb, b)
	barInPlace(t, tb, b, older, whole.Fetched)
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		must(t, os.RemoveAll(path))
	}
}

// barUnchanged measures a resident syncer that finds nothing to do.
func barUnchanged(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	objects, err := newHTTPObjects(b.srv.URL, b.v.store.Path(""), nil)
	must(t, err)
	o := b.v.syncerOptions(b.root, b.state)
	o.Objects, o.Resume = objects, nil
	s, err := snapshot.NewSyncer(t.Context(), o)
	must(t, err)
	changes := 0
	for i := range rounds + 2 {
		var before, after syscall.Rusage
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
		start := time.Now()
		c, err := s.Run(t.Context(), snapshot.RunOptions{})
		wall := time.Since(start)
		must(t, err)
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
		if c != nil {
			changes++
		}
		ours := cost{wall: wall, cpu: time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())}
		t.Logf("A no-change pass: %.3fs wall %.3fs cpu", ours.wall.Seconds(), ours.cpu.Seconds())
		find := shell(t, "A find -printf", fmt.Sprintf(`find %s -printf '%%p %%s %%T@ %%C@ %%i %%m\n' > /dev/null`, b.root))
		if i >= 2 {
			tb.pair("3 no-change pass A / find -printf", "<= 2.5", 2.5, ours, find)
			restic := b.resticCost("A restic no change", "backup", b.root)
			tb.pair("3 no-change pass A / restic", "<= 0.1", 0.1, ours, restic)
		}
	}
	puts := objects.puts.Load()
	tb.figure("3 no-change pass A: objects written; commits", "", "0; 0", fmt.Sprintf("%d; %d", puts, changes), puts == 0 && changes == 0)
}

// everyNth rewrites each n-th file of a tree and returns their names.
func everyNth(t *testing.T, root string, n int, edit func(i int, old []byte) []byte) map[string]bool {
	t.Helper()
	i, names := 0, map[string]bool{}
	must(t, filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if i++; i%n != 0 {
			return nil
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		names[name] = true
		return errors.Join(err, os.WriteFile(path, edit(i, old), 0o644))
	}))
	return names
}

// barChanged changes 1 % of the files and renames a folder.
func barChanged(t *testing.T, tb *table, b *bench) {
	t.Helper()
	coder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	must(t, err)
	compressed := 0
	everyNth(t, b.root, 100, func(i int, old []byte) []byte {
		body := append(fmt.Appendf(nil, "changed %d\n", i), old...)
		compressed += len(coder.EncodeAll(body, nil))
		return body
	})
	must(t, os.Rename(filepath.Join(b.root, "p0"), filepath.Join(b.root, "renamed")))
	ours, sent := b.sync("A 1% changed")
	restic := b.resticCost("A restic 1% changed", "backup", b.root)
	tb.pair("4 1 % changed A / restic", "<= 0.6", 0.6, ours, restic)
	limit := 1.3*float64(compressed) + 5e6
	tb.figure("4 1 % changed A: uploaded", "the changed files, zstd -1", "<= 1.3 x and 5 MB",
		fmt.Sprintf("%.1f MB for %.1f MB", float64(sent)/1e6, float64(compressed)/1e6), float64(sent) <= limit)
}

// barInPlace changes a fifth of the files, and restores over a copy that is
// older than that. whole is what a restore of everything fetched.
func barInPlace(t *testing.T, tb *table, b *bench, older string, whole int64) {
	t.Helper()
	changed := everyNth(t, b.root, 5, func(_ int, old []byte) []byte {
		slices.Reverse(old)
		return append(old, '\n')
	})
	b.sync("A a fifth changed")
	stamps := func() map[string]syscall.Stat_t {
		all := map[string]syscall.Stat_t{}
		must(t, filepath.Walk(older, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				name, _ := filepath.Rel(older, path)
				all[name] = *info.Sys().(*syscall.Stat_t)
			}
			return err
		}))
		return all
	}
	before := stamps()
	_, res := b.restore("A in-place restore", older)
	kept, rewritten := 0, 0
	for name, now := range stamps() {
		was, there := before[name]
		switch {
		case !there || changed[name] || was.Size != now.Size:
		case was.Ino != now.Ino || was.Mtim != now.Mtim || was.Ctim != now.Ctim:
			rewritten++
		default:
			kept++
		}
	}
	share := 100 * float64(res.Fetched) / float64(whole)
	tb.figure("8 in-place restore A, 80 % there: bytes fetched", "a whole restore", "<= 25 %", fmt.Sprintf("%.1f %%", share), share <= 25)
	tb.figure("8 in-place restore A: unchanged files rewritten", "", "0", fmt.Sprintf("%d of %d", rewritten, rewritten+kept), rewritten == 0 && kept > 0)
}

func barsLarge(t *testing.T, tb *table, b *bench, rounds int) {
	t.Helper()
	_, size := du(t, b.root)
	var perCore []float64
	for range min(rounds, timesEach) {
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
		perCore = append(perCore, float64(size)/1e6/back.cpu.Seconds())
		tb.fact("C: sync %.1f s, restore %.1f s, %.0f MB/s", ours.wall.Seconds(), back.wall.Seconds(), float64(size)/1e6/back.wall.Seconds())
		remove(t, out, out+".state", filepath.Join(b.tmp, "restic-out"))
	}
	least, with := 110.0, "without"
	if cpu, err := os.ReadFile("/proc/cpuinfo"); err == nil && bytes.Contains(cpu, []byte(" sha_ni ")) {
		least, with = 300, "with"
	}
	slices.Sort(perCore)
	speed := perCore[len(perCore)/2]
	tb.figure("7 restore C, per CPU second", "", fmt.Sprintf(">= %.0f MB %s SHA-NI", least, with), fmt.Sprintf("%.0f MB", speed), speed >= least)
	added := shift(t, filepath.Join(b.root, "0"))
	_, sent := b.sync("C shifted")
	ratio := float64(sent) / float64(added)
	tb.figure("5 shifted insert and overwrite in C: uploaded", "new bytes", "<= 1.25 x", fmt.Sprintf("%.2f x", ratio), ratio <= 1.25)
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
