//go:build linux

package snapshot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/snapshot"
)

// scaleEnv turns the bars on: 1 is the full size, 0.01 a smoke test. roundsEnv
// is the number of interleaved rounds, 3 unless said.
const (
	scaleEnv  = "HOMEPORT_BENCH_SCALE"
	roundsEnv = "HOMEPORT_BENCH_ROUNDS"
	benchEnv  = "HOMEPORT_SNAPSHOT_BENCH"
)

var benchSecret = []byte("0123456789abcdef")

// httpObjects moves objects by grants over HTTP, as the agent does.
type httpObjects struct {
	base   string
	signer *dir.Store
	client *http.Client
}

func newHTTPObjects(base, root string) (*httpObjects, error) {
	signer, err := dir.New(root, benchSecret, time.Now)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		MaxIdleConnsPerHost: 32, ReadBufferSize: 256 << 10, WriteBufferSize: 256 << 10, DisableCompression: true,
		DialContext: (&net.Dialer{}).DialContext,
	}
	return &httpObjects{base: base, signer: signer, client: &http.Client{Transport: t}}, nil
}

func (h *httpObjects) do(ctx context.Context, a blob.Access, body []byte, edit func(*http.Request)) (*http.Response, error) {
	a.Expires = time.Now().Add(time.Hour)
	g, err := h.signer.Sign(ctx, a)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, g.Method, h.base+g.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = g.Header
	if edit != nil {
		edit(req)
	}
	resp, err := h.client.Do(req)
	if err == nil && resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusPreconditionFailed {
		resp.Body.Close()
		err = errors.New(resp.Status)
	}
	return resp, err
}

func (h *httpObjects) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	resp, err := h.do(ctx, blob.Access{Key: snapshot.ObjectKey(prefix, kind, id)}, nil, func(r *http.Request) {
		if length >= 0 {
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
		}
	})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (h *httpObjects) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	a := blob.Access{Key: snapshot.ObjectKey(prefix, o.Kind, o.ID), Put: true, SHA256: o.ID[:], Size: o.Size}
	resp, err := h.do(ctx, a, body, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A benchOrder is what a measured process does.
type benchOrder struct {
	order
	Base   string
	Change string // file that the change is written to
}

// TestBenchChild is a measured process; by itself it does nothing.
func TestBenchChild(t *testing.T) {
	if os.Getenv(benchEnv) == "" {
		t.Skip("only run by the bars")
	}
	var o benchOrder
	must(t, json.Unmarshal([]byte(os.Getenv(benchEnv)), &o))
	objects, err := newHTTPObjects(o.Base, o.Store)
	must(t, err)
	if o.Restore {
		res, err := snapshot.Restore(t.Context(), snapshot.RestoreOptions{
			Objects: objects, Key: o.Key, Head: o.Head, Indexes: o.Indexes, Root: o.Root, State: o.State, Devices: true,
		})
		must(t, err)
		b, err := json.Marshal(res)
		must(t, err)
		must(t, os.WriteFile(o.Change, b, 0o600))
		return
	}
	so := snapshot.SyncerOptions{
		Objects: objects, Key: o.Key, ChunkerKey: chunkerKey, Root: o.Root, State: o.State, Indexes: o.Indexes, Now: time.Now,
	}
	if !o.Head.Snapshot.IsZero() {
		so.Head = &o.Head
	}
	s, err := snapshot.NewSyncer(t.Context(), so)
	must(t, err)
	c, err := s.Run(t.Context(), snapshot.RunOptions{})
	must(t, err)
	s.Close()
	if c != nil {
		b, err := json.Marshal(c)
		must(t, err)
		must(t, os.WriteFile(o.Change, b, 0o600))
	}
}

// A cost is what one run took.
type cost struct {
	wall, cpu time.Duration
	rss       int64 // MB
}

// measure runs a command after the disk has come to rest.
func measure(t *testing.T, name string, cmd *exec.Cmd) cost {
	t.Helper()
	syscall.Sync()
	var out bytes.Buffer
	cmd.Stderr = &out
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out.String())
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c := cost{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), rss: u.Maxrss >> 10}
	t.Logf("%-28s %8.2fs wall %8.2fs cpu %6d MB", name, c.wall.Seconds(), c.cpu.Seconds(), c.rss)
	return c
}

func shell(t *testing.T, name, script string) cost {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", script)
	cmd.Stdout = io.Discard
	return measure(t, name, cmd)
}

// A bench is a volume and a data set.
type bench struct {
	t     *testing.T
	v     *volume
	srv   *httptest.Server
	root  string
	tmp   string
	state string
}

func newBench(t *testing.T, root, tmp string) *bench {
	t.Helper()
	b := &bench{t: t, root: root, tmp: filepath.Join(tmp, filepath.Base(root)+"-bench")}
	b.fresh()
	return b
}

// fresh begins with an empty volume.
func (b *bench) fresh() {
	t := b.t
	if b.srv != nil {
		b.srv.Close()
	}
	must(t, os.RemoveAll(b.tmp))
	store, err := dir.New(filepath.Join(b.tmp, "store"), benchSecret, time.Now)
	must(t, err)
	b.v = &volume{t: t, store: store, key: snapshot.NewKey(), stored: map[snapshot.ID]snapshot.Object{}, done: map[snapshot.ID]bool{}}
	must(t, snapshot.CreateRepository(t.Context(), store, prefix, b.v.key, password))
	b.srv = httptest.NewServer(store.Handler())
	t.Cleanup(b.srv.Close)
	b.state = filepath.Join(b.tmp, "state")
}

func (b *bench) child(name string, o benchOrder) cost {
	o.Store, o.Key, o.Indexes, o.Base, o.Change = b.v.store.Path(""), b.v.key, b.v.indexes, b.srv.URL, filepath.Join(b.tmp, "change")
	if b.v.head != nil {
		o.Head = *b.v.head
	}
	_ = os.Remove(o.Change)
	j, err := json.Marshal(o)
	must(b.t, err)
	cmd := exec.CommandContext(b.t.Context(), os.Args[0], "-test.run", "^TestBenchChild$")
	cmd.Env = append(os.Environ(), benchEnv+"="+string(j))
	return measure(b.t, name, cmd)
}

// sync runs the syncer in a process of its own and commits. It returns the
// bytes that were uploaded.
func (b *bench) sync(name string) (cost, int64) {
	c := b.child(name, benchOrder{order: order{Root: b.root, State: b.state}})
	j, err := os.ReadFile(filepath.Join(b.tmp, "change"))
	must(b.t, err)
	var change snapshot.Change
	must(b.t, json.Unmarshal(j, &change))
	var bytes int64
	for _, o := range change.Objects {
		b.v.stored[o.ID] = o
		bytes += o.Size
	}
	must(b.t, b.v.commit(&change))
	return c, bytes
}

func (b *bench) restore(name, out string) (cost, snapshot.RestoreResult) {
	must(b.t, os.MkdirAll(out, 0o755))
	c := b.child(name, benchOrder{order: order{Restore: true, Root: out, State: out + ".state"}})
	j, err := os.ReadFile(filepath.Join(b.tmp, "change"))
	must(b.t, err)
	var res snapshot.RestoreResult
	must(b.t, json.Unmarshal(j, &res))
	return c, res
}

func (b *bench) resticCost(name string, args ...string) cost {
	cmd := exec.CommandContext(b.t.Context(), "restic", append([]string{"-q", "--no-cache", "-r", filepath.Join(b.tmp, "restic")}, args...)...)
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD=x")
	return measure(b.t, name, cmd)
}

// ratios collects one bar.
type bar struct {
	name, demand string
	limit        float64
	walls, cpus  []float64
}

type table struct {
	bars  []*bar
	facts []string
}

func (tb *table) pair(name, demand string, limit float64, ours, theirs cost) {
	i := slices.IndexFunc(tb.bars, func(b *bar) bool { return b.name == name })
	if i < 0 {
		i = len(tb.bars)
		tb.bars = append(tb.bars, &bar{name: name, demand: demand, limit: limit})
	}
	tb.bars[i].walls = append(tb.bars[i].walls, ours.wall.Seconds()/theirs.wall.Seconds())
	tb.bars[i].cpus = append(tb.bars[i].cpus, ours.cpu.Seconds()/max(theirs.cpu.Seconds(), 0.001))
}

func (tb *table) fact(format string, args ...any) {
	tb.facts = append(tb.facts, fmt.Sprintf(format, args...))
}

func (tb *table) print(t *testing.T) {
	t.Helper()
	var out strings.Builder
	out.WriteString("\n| Bar | Demand (wall) | Median wall | Spread | Median CPU | Holds |\n|---|---|---|---|---|---|\n")
	for _, b := range tb.bars {
		slices.Sort(b.walls)
		slices.Sort(b.cpus)
		m, c := b.walls[len(b.walls)/2], b.cpus[len(b.cpus)/2]
		fmt.Fprintf(&out, "| %s | %s | %.2f | %.2f-%.2f | %.2f | %v |\n", b.name, b.demand, m, b.walls[0], b.walls[len(b.walls)-1], c, m <= b.limit || c <= b.limit)
	}
	for _, f := range tb.facts {
		fmt.Fprintf(&out, "- %s\n", f)
	}
	fmt.Println(out.String())
}

// TestBars measures the engine beside common tools and prints a table.
func TestBars(t *testing.T) {
	scale, err := strconv.ParseFloat(os.Getenv(scaleEnv), 64)
	if err != nil || scale <= 0 {
		t.Skip("set " + scaleEnv + " to measure")
	}
	rounds, _ := strconv.Atoi(os.Getenv(roundsEnv))
	if rounds <= 0 {
		rounds = 3
	}
	for _, tool := range []string{"restic", "zstd", "tar", "find", "sha256sum", "cp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	tmp := t.TempDir()
	var tb table
	only := os.Getenv("HOMEPORT_BENCH_ONLY")
	if only == "" || only == "A" {
		many := filepath.Join(tmp, "a")
		generateMany(t, many, int(59000*scale))
		barsMany(t, &tb, newBench(t, many, tmp), rounds)
	}
	if only == "" || only == "C" {
		large := filepath.Join(tmp, "c")
		must(t, os.Mkdir(large, 0o755))
		for i := range 2 {
			randomFile(t, filepath.Join(large, fmt.Sprint(i)), int64(1e9*scale), uint64(i))
		}
		barsLarge(t, &tb, newBench(t, large, tmp), rounds)
	}
	tb.print(t)
}
