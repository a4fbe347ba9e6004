//go:build linux

package snapshot_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/snapshot"
)

// childEnv tells a process that it is to be killed while it works.
const childEnv = "HOMEPORT_SNAPSHOT_CHILD"

// An order is what such a process is to do.
type order struct {
	Restore bool
	Store   string
	Key     snapshot.Key
	Head    snapshot.Head
	Indexes []snapshot.Object
	Resume  []snapshot.Object
	Root    string
	State   string
}

const (
	crashPack    = 256 << 10
	crashUploads = 3
)

// A childStore announces each object before it moves, as a request for a grant
// would.
type childStore struct{ store *dir.Store }

func (c childStore) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	fmt.Printf("get %s %s %d\n", kind, id, length)
	return c.store.Get(ctx, snapshot.ObjectKey(prefix, kind, id), offset, length)
}

func (c childStore) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	fmt.Printf("put %s %s %d\n", o.Kind, o.ID, o.Size)
	return c.store.Put(ctx, snapshot.ObjectKey(prefix, o.Kind, o.ID), body)
}

// TestChild is the process that gets killed; by itself it does nothing.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only run by other tests")
	}
	var o order
	must(t, json.Unmarshal([]byte(os.Getenv(childEnv)), &o))
	store, err := dir.New(o.Store, []byte("0123456789abcdef"), time.Now)
	must(t, err)
	if o.Restore {
		_, err := snapshot.Restore(t.Context(), snapshot.RestoreOptions{
			Objects: childStore{store}, Key: o.Key, Head: o.Head, Indexes: o.Indexes, Root: o.Root, State: o.State, Devices: true,
		})
		must(t, err)
	} else {
		s, err := snapshot.NewSyncer(t.Context(), snapshot.SyncerOptions{
			Objects: childStore{store}, Key: o.Key, ChunkerKey: chunkerKey, Root: o.Root, State: o.State, Head: &o.Head,
			Indexes: o.Indexes, Resume: o.Resume, Now: time.Now,
			Limits: snapshot.Limits{PackSize: crashPack, Uploads: crashUploads},
		})
		must(t, err)
		_, err = s.Run(t.Context(), snapshot.RunOptions{})
		must(t, err)
	}
	fmt.Println("over")
}

// killed runs a child and kills it at the n-th operation of that kind. It
// returns the operations that were announced, and whether the child was over
// before.
func killed(t *testing.T, o order, op string, n int) (ops []string, over bool) {
	t.Helper()
	b, err := json.Marshal(o)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "put ") || strings.HasPrefix(line, "get ") {
			ops = append(ops, line)
		}
		over = over || line == "over"
		if strings.HasPrefix(line, op) {
			if seen++; seen == n {
				must(t, cmd.Process.Kill())
			}
		}
		if strings.HasPrefix(line, "--- FAIL") {
			t.Errorf("the child failed: %s %s", line, stderr.String())
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ops, over
}

func parseOp(t *testing.T, line string) (o snapshot.Object) {
	t.Helper()
	var op, id string
	_, err := fmt.Sscan(line, &op, &o.Kind, &id, &o.Size)
	must(t, err)
	o.ID, err = snapshot.ParseID(id)
	must(t, err)
	return o
}

func TestSyncKilledAtAnyPointLosesNothing(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root, state := t.TempDir(), t.TempDir()
	fill(t, root, 300, 1)
	small := func(o *snapshot.SyncerOptions) {
		o.Limits = snapshot.Limits{PackSize: crashPack, Uploads: crashUploads}
	}
	v.sync(v.syncer(root, state, small))
	rnd := rand.New(rand.NewPCG(1, 2))
	kills, most := 0, int64(0)
	for round := 0; round < 20 || thorough() && kills < 20 && round < 60; round++ {
		before := facts(t, root)
		must(t, os.Mkdir(filepath.Join(root, fmt.Sprintf("round-%d", round)), 0o755))
		for i := range 8 {
			random(t, filepath.Join(root, fmt.Sprintf("round-%d/f%d", round, i)), 300<<10+i, uint64(round*10+i))
		}
		fill(t, root, 100, uint64(round)+5)
		want := facts(t, root)

		o := order{Store: v.store.Path(""), Key: v.key, Head: *v.head, Indexes: v.indexes, Root: root, State: state}
		ops, over := killed(t, o, "put", 1+rnd.IntN(9))
		if !over {
			kills++
		}
		sent := int64(0)
		v.mu.Lock()
		for _, line := range ops {
			if p := parseOp(t, line); strings.HasPrefix(line, "put") {
				v.stored[p.ID] = p
				sent += p.Size
			}
		}
		v.mu.Unlock()

		if round%5 == 0 || thorough() {
			v.restoresTo(before, round)
		}

		already := v.puts
		v.sync(v.syncer(root, state, small))
		again := v.puts - already
		whole := int64(8*300<<10 + 64<<10)
		if allowed := whole - sent + (crashUploads+2)*(crashPack+400<<10) + 256<<10; again > allowed {
			t.Errorf("round %d: %d bytes sent before the kill, %d after, more than %d", round, sent, again, allowed)
		}
		most = max(most, sent+again-8*300<<10)
		if round%5 == 4 {
			v.restoresTo(want, round)
		}
	}
	if kills < times(20, 10) {
		t.Errorf("only %d syncs were killed before they were over", kills)
	}
	measured(t, "%d of %d whole, 0 lost; at most %.1f packs sent again", kills, kills, float64(most)/crashPack)
	if out := v.restic("check", "--read-data"); !strings.Contains(out, "no errors were found") {
		t.Errorf("restic check: %s", out)
	}
}

// restoresTo checks what the head holds.
func (v *volume) restoresTo(want map[string]fact, round int) {
	t := v.t.(*testing.T)
	out := t.TempDir()
	v.restore(out, t.TempDir())
	compareTimes(t, want, facts(t, out), round)
}

func compareTimes(t *testing.T, want, got map[string]fact, round int) {
	t.Helper()
	if !maps.Equal(want, got) {
		t.Errorf("round %d:", round)
		compare(t, want, got, nil)
	}
}

func TestRestoreKilledAtAnyPointGoesOn(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 200, 1)
	for i := range times(1000, 100) {
		random(t, filepath.Join(root, fmt.Sprintf("large-%d", i)), 100<<10+i, uint64(i))
	}
	must(t, os.Link(filepath.Join(root, "large-1"), filepath.Join(root, "d1", "linked")))
	must(t, os.Symlink("large-1", filepath.Join(root, "link")))
	v.sync(v.syncer(root, t.TempDir(), func(o *snapshot.SyncerOptions) { o.Limits.PackSize = 128 << 10 }))
	want := facts(t, root)
	whole := v.restore(t.TempDir(), t.TempDir()).Fetched
	spareAllowed := int64(2 * (8 + 2) * (228 << 10)) // twice what is on its way and in work
	if thorough() {
		spareAllowed = whole / 20
	}
	rnd := rand.New(rand.NewPCG(1, 3))
	kills, most := 0, int64(0)
	for round := range 20 {
		out, state := t.TempDir(), t.TempDir()
		o := order{Restore: true, Store: v.store.Path(""), Key: v.key, Head: *v.head, Indexes: v.indexes, Root: out, State: state}
		total := int64(0)
		for range times(1, 2) { // then it is let go
			ops, over := killed(t, o, "get data", 1+rnd.IntN(times(400, 30)))
			for _, line := range ops {
				total += max(parseOp(t, line).Size, 0)
			}
			if !over {
				kills++
			}
		}
		res := v.restore(out, state)
		compareTimes(t, want, facts(t, out), round)
		spare := total + res.Fetched - whole
		if spare > spareAllowed {
			t.Errorf("round %d: %d of %d bytes were fetched again", round, spare, whole)
		}
		most = max(most, spare)
		if c := v.sync(v.syncer(out, state, nil)); c != nil {
			t.Errorf("round %d: the sync after the restore found changes", round)
		}
		must(t, os.RemoveAll(out))
	}
	if kills < times(20, 30) {
		t.Errorf("only %d restores were killed before they were over", kills)
	}
	measured(t, "%d of %d identical; at most %.1f %% fetched again", kills, kills, 100*float64(most)/float64(whole))
}
