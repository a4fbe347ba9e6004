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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/blob/s3"
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
	base   string // of grants that are paths
	signer blob.Signer
	client *http.Client
	puts   atomic.Int64
}

// A service is an S3 service, told to a process.
type service struct{ Endpoint, Region, Bucket, KeyID, Secret string }

// newHTTPObjects moves the objects of a folder that base serves, or those of
// an S3 service.
func newHTTPObjects(base, root string, at *service) (*httpObjects, error) {
	var signer blob.Signer
	var err error
	if at == nil {
		signer, err = dir.New(root, benchSecret, time.Now)
	} else {
		base = ""
		var bucket *s3.Store
		bucket, err = s3.New(s3.Config{
			Endpoint: at.Endpoint, Region: at.Region, Bucket: at.Bucket, KeyID: at.KeyID, Secret: at.Secret, PathStyle: true, Wall: time.Now,
		})
		if err == nil {
			bucket.Use(s3.Features{Conditional: true, Checksum: true})
		}
		signer = bucket
	}
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		MaxIdleConnsPerHost: 32, ReadBufferSize: 256 << 10, WriteBufferSize: 256 << 10, DisableCompression: true,
		DialContext: (&net.Dialer{}).DialContext,
	}
	return &httpObjects{base: base, signer: signer, client: &http.Client{Transport: t}}, nil
}

// nowhere takes all objects and keeps none: a store that costs this machine nothing.
type nowhere struct{}

func (nowhere) Get(context.Context, snapshot.Kind, snapshot.ID, int64, int64) (io.ReadCloser, error) {
	return nil, blob.ErrNotFound
}

func (nowhere) Put(context.Context, snapshot.Object, []byte) error { return nil }

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
	h.puts.Add(1)
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
	Base    string
	Service *service // nil: what Base serves
	Nowhere bool     // nothing is kept, and it works in the background
	Change  string   // file that the change is written to
}

// TestBenchChild is a measured process; by itself it does nothing.
func TestBenchChild(t *testing.T) {
	if os.Getenv(benchEnv) == "" {
		t.Skip("only run by the bars")
	}
	var o benchOrder
	must(t, json.Unmarshal([]byte(os.Getenv(benchEnv)), &o))
	byHTTP, err := newHTTPObjects(o.Base, o.Store, o.Service)
	must(t, err)
	var objects snapshot.Objects = byHTTP
	if o.Nowhere {
		objects = nowhere{}
	}
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
	c, err := s.Run(t.Context(), snapshot.RunOptions{Background: o.Nowhere})
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
	at    *service // nil: srv
	rss   int64    // MB, the most that a sync or a restore took
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

// command is a process that does what it is told.
func (b *bench) command(ctx context.Context, o benchOrder) *exec.Cmd {
	o.Store, o.Key, o.Indexes, o.Base, o.Service = b.v.store.Path(""), b.v.key, b.v.indexes, b.srv.URL, b.at
	o.Change = filepath.Join(b.tmp, "change")
	if b.v.head != nil {
		o.Head = *b.v.head
	}
	_ = os.Remove(o.Change)
	j, err := json.Marshal(o)
	must(b.t, err)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestBenchChild$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), benchEnv+"="+string(j))
	return cmd
}

func (b *bench) child(name string, o benchOrder) cost {
	c := measure(b.t, name, b.command(b.t.Context(), o))
	b.rss = max(b.rss, c.rss)
	return c
}

// unchanged runs a syncer in a process of its own that finds nothing to do.
func (b *bench) unchanged(name string) cost {
	c := b.child(name, benchOrder{order: order{Root: b.root, State: b.state}})
	if _, err := os.Stat(filepath.Join(b.tmp, "change")); err == nil {
		b.t.Fatalf("%s: there were changes", name)
	}
	return c
}

// sync runs the syncer in a process of its own and commits, until all is
// there. It returns the bytes that were uploaded.
func (b *bench) sync(name string) (total cost, sent int64) {
	for {
		c := b.child(name, benchOrder{order: order{Root: b.root, State: b.state}})
		j, err := os.ReadFile(filepath.Join(b.tmp, "change"))
		must(b.t, err)
		var change snapshot.Change
		must(b.t, json.Unmarshal(j, &change))
		for _, o := range change.Objects {
			b.v.stored[o.ID] = o
			sent += o.Size
		}
		must(b.t, b.v.commit(&change))
		total.wall, total.cpu, total.rss = total.wall+c.wall, total.cpu+c.cpu, max(total.rss, c.rss)
		if !change.Partial {
			return total, sent
		}
	}
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

// A bar is one ratio, ours over theirs, of several pairs.
type bar struct {
	name, demand string
	limit        float64
	walls, cpus  []float64
}

// A figure is a bar that is no ratio of times. holds is empty where nothing is
// demanded.
type figure struct{ name, beside, demand, measured, holds string }

type table struct {
	bars    []*bar
	figures []figure
	facts   []string
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

// figure enters a measured value and whether it meets the demand.
func (tb *table) figure(name, beside, demand, measured string, holds bool) {
	tb.figures = append(tb.figures, figure{name, beside, demand, measured, strconv.FormatBool(holds)})
}

// against enters a pair of which nothing is demanded.
func (tb *table) against(name, beside string, ours, theirs cost) {
	tb.figures = append(tb.figures, figure{name: name, beside: beside, measured: fmt.Sprintf("%.2f x, CPU %.2f x", ours.wall.Seconds()/theirs.wall.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())})
}

// memory enters the most memory that a bench took.
func (tb *table) memory(of string, limit int64, benches ...*bench) {
	most := int64(0)
	for _, b := range benches {
		most = max(most, b.rss)
	}
	tb.figure("9 memory of a sync or restore of "+of+", the most", "", fmt.Sprintf("<= %d MB", limit), fmt.Sprintf("%d MB", most), most <= limit)
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
		fmt.Fprintf(&out, "| %s | %s | %.2f | %.2f-%.2f | %.2f | %v |\n", b.name, b.demand, m, b.walls[0], b.walls[len(b.walls)-1], c, m <= b.limit || c > 0 && c <= b.limit)
	}
	out.WriteString("\n| Bar | Beside | Demand | Measured | Holds |\n|---|---|---|---|---|\n")
	for _, f := range tb.figures {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", f.name, f.beside, f.demand, f.measured, f.holds)
	}
	for _, f := range tb.facts {
		fmt.Fprintf(&out, "- %s\n", f)
	}
	fmt.Println(out.String())
}
