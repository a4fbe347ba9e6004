//go:build linux

package snapshot_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob/blobtest"
)

// spinEnv makes TestSpin a job of so many MB to hash on every core.
const spinEnv = "HOMEPORT_SNAPSHOT_SPIN"

// TestSpin is a job that needs the processor and nothing else; by itself it
// does nothing.
func TestSpin(t *testing.T) {
	size, err := strconv.Atoi(os.Getenv(spinEnv))
	if err != nil {
		t.Skip("only run by the bars")
	}
	var jobs sync.WaitGroup
	for range runtime.NumCPU() {
		jobs.Go(func() {
			b := make([]byte, 1<<20)
			for range size {
				sum := sha256.Sum256(b)
				copy(b, sum[:])
			}
		})
	}
	jobs.Wait()
}

// TestForeground measures a job on every core, alone and beside a background sync
// of C. The store takes all and costs nothing: it is on another machine.
func TestForeground(t *testing.T) {
	const pairs = 9 // a job of seconds is as fast as the host of this machine lets it be
	scale := scaled(t)
	tmp := t.TempDir()
	root := filepath.Join(tmp, "c")
	must(t, os.Mkdir(root, 0o755))
	for i := range 2 {
		randomFile(t, filepath.Join(root, fmt.Sprint(i)), int64(1e9*scale), uint64(i))
	}
	b := newBench(t, root, tmp)
	var tb table
	_, size := du(t, b.root)
	job := func(name string) cost {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSpin$")
		cmd.Env = append(os.Environ(), spinEnv+"="+strconv.FormatInt(max(size>>20, 1), 10))
		return measure(t, name, cmd)
	}
	for i := range pairs {
		alone := job("a job alone")
		ctx, cancel := context.WithCancel(t.Context())
		other := b.command(ctx, benchOrder{order: order{Root: b.root, State: filepath.Join(b.tmp, fmt.Sprint("apart", i))}, Nowhere: true})
		must(t, other.Start())
		ended := make(chan error, 1)
		go func() { ended <- other.Wait() }()
		beside := job("a job beside a sync")
		select {
		case err := <-ended:
			cancel()
			if err != nil {
				t.Fatalf("the sync beside the job: %v", err)
			}
			tb.fact("20: a sync was over before the job beside it, and is not counted")
			continue
		default:
			cancel()
			t.Logf("the sync beside it was ended: %v", <-ended)
		}
		beside.cpu = 0 // the job takes the same, however long it is kept waiting
		tb.pair(fmt.Sprintf("20 a job on all %d cores beside a background sync of C / the job alone", runtime.NumCPU()), "<= 1.05", 1.05, beside, alone)
	}
	tb.print(t)
}

// barsRemote measures against a real S3 service, beside rclone, which keeps
// each file as an object of its own.
func barsRemote(t *testing.T, tb *table, b *bench) {
	t.Helper()
	server := blobtest.NewServer(t, false)
	b.at = &service{server.Endpoint, server.Region, server.Bucket, server.KeyID, server.Secret}
	rclone := func(name string, args ...string) cost {
		cmd := exec.CommandContext(t.Context(), "rclone", append(args, "--links", "--metadata", "--transfers", "32", "--checkers", "32")...)
		// No certificates over loopback: rclone fails on those that the environment names.
		cmd.Env = append(os.Environ(), "AWS_CA_BUNDLE=", "RCLONE_CONFIG="+filepath.Join(b.tmp, "rclone.conf"),
			"RCLONE_CONFIG_HP_TYPE=s3", "RCLONE_CONFIG_HP_PROVIDER=Other", "RCLONE_CONFIG_HP_ENDPOINT="+server.Endpoint,
			"RCLONE_CONFIG_HP_REGION="+server.Region, "RCLONE_CONFIG_HP_ACCESS_KEY_ID="+server.KeyID,
			"RCLONE_CONFIG_HP_SECRET_ACCESS_KEY="+server.Secret)
		return measure(t, name, cmd)
	}
	remote := "hp:" + server.Bucket + "/rclone"
	files, size := du(t, b.root)
	tb.fact("beside rclone: %d files, %d MB, once, through versitygw", files, size/1e6)
	ours, _ := b.sync("S3 first sync")
	tb.against("1 first sync to S3", "rclone sync", ours, rclone("rclone sync", "sync", b.root, remote))
	tb.against("3 no-change sync with S3, new process", "rclone sync", b.unchanged("S3 no change"), rclone("rclone no change", "sync", b.root, remote))
	theirs := rclone("rclone copy", "copy", remote, filepath.Join(b.tmp, "rclone-out"))
	ours, _ = b.restore("S3 restore", filepath.Join(b.tmp, "out"))
	tb.against("6 restore from S3", "rclone copy", ours, theirs)
}

// scaled reads the scale of the bars, or skips the test.
func scaled(t *testing.T, tools ...string) float64 {
	t.Helper()
	scale, err := strconv.ParseFloat(os.Getenv(scaleEnv), 64)
	if err != nil || scale <= 0 {
		t.Skip("set " + scaleEnv + " to measure")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is not installed: run scripts/need-tools", tool)
		}
	}
	return scale
}

// TestBars measures the engine beside common tools and prints a table.
func TestBars(t *testing.T) {
	scale := scaled(t, "restic", "zstd", "tar", "find", "sha256sum", "cp", "rclone")
	rounds, _ := strconv.Atoi(os.Getenv(roundsEnv))
	if rounds <= 0 {
		rounds = 3
	}
	tmp := t.TempDir()
	var tb table
	only := os.Getenv("HOMEPORT_BENCH_ONLY")
	var benches []*bench
	if only == "" || only == "A" {
		many := filepath.Join(tmp, "a")
		generateMany(t, many, int(59000*scale))
		benches = append(benches, newBench(t, many, tmp))
		barsMany(t, &tb, benches[0], rounds)
	}
	if only == "" || only == "S3" {
		some := filepath.Join(tmp, "s3")
		generateMany(t, some, int(59000*scale/4))
		benches = append(benches, newBench(t, some, tmp))
		barsRemote(t, &tb, benches[len(benches)-1])
	}
	for _, b := range benches {
		remove(t, b.root, b.tmp)
	}
	if only == "" || only == "C" {
		large := filepath.Join(tmp, "c")
		must(t, os.Mkdir(large, 0o755))
		for i := range 2 {
			randomFile(t, filepath.Join(large, fmt.Sprint(i)), int64(1e9*scale), uint64(i))
		}
		benches = append(benches, newBench(t, large, tmp))
		barsLarge(t, &tb, benches[len(benches)-1], rounds)
	}
	tb.memory("A or C", 384, benches...)
	tb.print(t)
}

// TestMillionsOfFiles measures the memory and the time that two million small
// files take, beside tar and find.
func TestMillionsOfFiles(t *testing.T) {
	files := int(2e6 * scaled(t, "zstd", "tar", "find"))
	tmp := t.TempDir()
	root := filepath.Join(tmp, "m")
	start := time.Now()
	generateTiny(t, root, files)
	t.Logf("generated in %s", time.Since(start))
	b := newBench(t, root, tmp)
	var tb table
	of := fmt.Sprintf("%d files", files)
	ours, stored := b.sync("M first sync")
	tar := shell(t, "M tar|zstd", fmt.Sprintf("tar -C %s -cf - . | zstd -1 -T2 -q > %s/tar.zst", root, b.tmp))
	tb.against("first sync of "+of, "tar, zstd -1 -T2", ours, tar)
	same := b.unchanged("M no change")
	find := shell(t, "M find -printf", fmt.Sprintf(`find %s -printf '%%p %%s %%T@ %%C@ %%i %%m\n' > /dev/null`, root))
	tb.against("no-change pass of "+of+", new process", "find -printf", same, find)
	// Beside the tree that is there: to make files is slow after many were deleted.
	back, _ := b.restore("M restore", filepath.Join(b.tmp, "out"))
	tb.fact("first sync %.0f s (%d MB stored), no-change pass %.1f s, restore %.0f s", ours.wall.Seconds(), stored/1e6, same.wall.Seconds(), back.wall.Seconds())
	tb.fact("memory: first sync %d MB, no-change pass %d MB, restore %d MB", ours.rss, same.rss, back.rss)
	tb.memory(of, 1024, b)
	tb.print(t)
}

// generateTiny makes a tree of files of about 150 bytes, 200 in a folder.
func generateTiny(t *testing.T, root string, files int) {
	t.Helper()
	const each = 200
	var makers sync.WaitGroup
	failed := make(chan error, runtime.NumCPU())
	for worker := range runtime.NumCPU() {
		makers.Go(func() {
			for d := worker; d*each < files; d += runtime.NumCPU() {
				dir := filepath.Join(root, fmt.Sprint("a", d/100), fmt.Sprint("b", d%100))
				err := os.MkdirAll(dir, 0o755)
				for i := d * each; i < min(files, (d+1)*each) && err == nil; i++ {
					body := fmt.Appendf(nil, "sample %d\nlabel %x\n", i, sha256.Sum256(fmt.Append(nil, i)))
					err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("sample_%07d.txt", i)), append(body, body[:40]...), 0o644)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	makers.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	must(t, errors.Join(all...))
}
