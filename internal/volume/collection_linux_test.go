package volume_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// A writer is a pod that stays attached and keeps one syncer, as agents do.
type writer struct {
	*pod
	root, state string
	syncer      *snapshot.Syncer
}

func (h *harbour) writer(t *testing.T, p *pod) *writer {
	t.Helper()
	w := &writer{pod: p, root: t.TempDir(), state: t.TempDir()}
	p.restoreTo(w.root, w.state)
	w.hello()
	return w
}

// hello reads the volume's indexes anew, as an agent does after parent_moved.
func (w *writer) hello() {
	w.t.Helper()
	var err error
	w.grant, err = w.Grant(w.t.Context(), w.Attachment, true)
	w.must(err)
	var resume []snapshot.Object
	for _, o := range w.grant.Resume {
		id, err := snapshot.ParseID(o.ID)
		w.must(err)
		resume = append(resume, snapshot.Object{ID: id, Kind: snapshot.Kind(o.Kind), Size: o.Size})
	}
	w.syncer, err = snapshot.NewSyncer(w.t.Context(), snapshot.SyncerOptions{
		Objects: w.pod, Key: w.key, ChunkerKey: w.grant.ChunkerKey, Root: w.root, State: w.state, Head: w.headOf(),
		Indexes: w.indexes(), Resume: resume, Hostname: "pod", Now: w.clock.Wall, Limits: snapshot.Limits{PackSize: 256 << 10},
	})
	w.must(err)
}

// commit syncs once; the error is the commit's.
func (w *writer) commit(ctx context.Context) error {
	c, err := w.syncer.Run(ctx, snapshot.RunOptions{})
	if err != nil || c == nil {
		return err
	}
	in := agentapi.Commit{Epoch: w.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String()}
	if !c.Parent.IsZero() {
		in.Parent = c.Parent.String()
	}
	for _, o := range c.Objects {
		in.Objects = append(in.Objects, wire(o))
	}
	if _, _, err := w.Commit(ctx, w.Attachment, in); err != nil {
		return err
	}
	w.syncer.Committed(c)
	return nil
}

// save commits, through a collection in between.
func (w *writer) save() {
	w.t.Helper()
	for range 5 {
		w.clock.Advance(time.Second)
		err := w.commit(w.t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, volume.ErrParent) {
			w.t.Fatal(err)
		}
		w.hello()
	}
	w.t.Fatal("five commits in a row were refused")
}

func (w *writer) write(name string, seed uint64, size int) {
	w.t.Helper()
	body, rnd := make([]byte, size), rand.New(rand.NewPCG(seed, seed))
	for i := range body {
		body[i] = byte(rnd.Uint32())
	}
	w.must(os.MkdirAll(filepath.Dir(filepath.Join(w.root, name)), 0o755))
	w.must(os.WriteFile(filepath.Join(w.root, name), body, 0o644))
}

// change makes and removes files at random.
func (w *writer) change(rnd *rand.Rand) {
	w.t.Helper()
	for range 8 {
		name := fmt.Sprintf("d%d/f%d", rnd.IntN(4), rnd.IntN(15))
		if rnd.IntN(3) == 0 {
			w.must(os.RemoveAll(filepath.Join(w.root, name)))
			continue
		}
		w.write(name, rnd.Uint64()%12, 1+rnd.IntN(120<<10)) // content comes back, so that it is found again
	}
}

// sweep lets a day pass, and deletes what was condemned.
func (h *harbour) sweep() {
	h.t.Helper()
	h.clock.Advance(25 * time.Hour)
	h.must(h.SweepGarbage(h.t.Context()))
}

func (h *harbour) collectNow(volumeID uuid.UUID) {
	h.t.Helper()
	for more := true; more; {
		var err error
		more, err = h.Collect(h.t.Context(), volumeID)
		h.must(err)
	}
}

// wantWhole restores a volume's head with a public tool and compares.
func (h *harbour) wantWhole(t *testing.T, store *dir.Store, volumeID uuid.UUID, want map[string]string) {
	t.Helper()
	r, err := h.Repository(t.Context(), volumeID)
	h.must(err)
	restic(t, store.Path(r.Path), r.Password, "check", "--read-data")
	target := t.TempDir()
	restic(t, store.Path(r.Path), r.Password, "restore", "latest", "--target", target)
	if diff := cmp.Diff(want, files(t, filepath.Join(target, "workspace"))); diff != "" {
		t.Error(diff)
	}
}

func storedBytes(t *testing.T, store blob.Store, volumeID uuid.UUID) (n int64) {
	t.Helper()
	err := store.List(t.Context(), "v/"+volumeID.String()+"/", func(i blob.Info) error { n += i.Size; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCollectionGivesBackWhatIsNotNeeded(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	for i := range 20 {
		w.write(fmt.Sprint("f", i), uint64(i), 300<<10)
	}
	w.save()
	for i := range 18 { // nine tenths go
		h.must(os.Remove(filepath.Join(w.root, fmt.Sprint("f", i))))
	}
	w.save()
	want := files(t, w.root)
	h.release(w.Attachment)
	before := storedBytes(t, store, v.ID)
	h.collectNow(v.ID)
	if got := storedBytes(t, store, v.ID); got < before {
		t.Errorf("%d bytes were deleted at once: somebody may read them", before-got)
	}
	h.sweep()
	live := h.find(scope, v.ID).SizeBytes
	got := storedBytes(t, store, v.ID)
	if got > live*13/10 {
		t.Errorf("%d bytes are stored for %d", got, live)
	}
	t.Attr("measured", fmt.Sprintf("%.2f x", float64(got)/float64(live)))
	h.wantWhole(t, store, v.ID, want)
	h.collectNow(v.ID)
	after := storedBytes(t, store, v.ID)
	h.collectNow(v.ID)
	if got := storedBytes(t, store, v.ID); got != after {
		t.Errorf("a collection with nothing to do wrote %d bytes", got-after)
	}
}

// An agent that knows a pack which a collection replaces must not build on it.
func TestACommitOnReplacedPacksIsRefusedAndMadeAgain(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	w.write("stays", 1, 400<<10)
	w.write("goes", 2, 900<<10)
	w.save()
	h.must(os.Remove(filepath.Join(w.root, "goes")))
	w.save()
	h.collectNow(v.ID)
	h.sweep() // the agent has not been told: nothing of what it knows may go
	held := storedBytes(t, store, v.ID)
	w.write("again", 2, 900<<10) // found in the index that it has
	if err := w.commit(t.Context()); !errors.Is(err, volume.ErrParent) {
		t.Fatalf("a commit on replaced packs: %v, want ErrParent", err)
	}
	w.hello()
	h.sweep()
	if got := storedBytes(t, store, v.ID); got >= held {
		t.Errorf("%d bytes are stored, %d were: what was replaced stays", got, held)
	}
	w.save()
	h.wantWhole(t, store, v.ID, files(t, w.root))
	h.release(w.Attachment)
	next := h.writer(t, h.bootPod(scope, v.ID, node))
	if diff := cmp.Diff(files(t, w.root), files(t, next.root)); diff != "" {
		t.Error(diff)
	}
}

func TestCollectionsBesideASyncLoseNothing(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	if os.Getenv("HOMEPORT_BENCH") == "full" {
		seeds = 10
	}
	var whole atomic.Int64
	t.Cleanup(func() { t.Attr("measured", fmt.Sprintf("0 blobs lost in %d of %d seeds", whole.Load(), seeds)) })
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if !t.Failed() {
					whole.Add(1)
				}
			})
			h, store, node := newNode(t)
			scope := h.team(team.Pro)
			v := h.create(scope)
			w := h.writer(t, h.bootPod(scope, v.ID, node))
			rnd := rand.New(rand.NewPCG(seed, seed))
			w.change(rnd)
			w.save()
			collected := int64(0)
			for range 25 {
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := h.Collect(t.Context(), v.ID); err != nil && !strings.Contains(err.Error(), "changed under") {
						t.Error(err)
					}
					if err := h.SweepGarbage(t.Context()); err != nil {
						t.Error(err)
					}
				})
				w.change(rnd)
				w.save()
				wg.Wait()
				h.clock.Advance(7 * time.Hour)
			}
			h.must(h.Pool.QueryRow(t.Context(), `select generation from volume where id = $1`, v.ID).Scan(&collected))
			if collected < 3 {
				t.Errorf("only %d collections replaced anything", collected)
			}
			var keys []string
			h.must(store.List(t.Context(), "v/"+v.ID.String()+"/", func(i blob.Info) error { keys = append(keys, i.Key); return nil }))
			for _, key := range h.keysByRows(v.ID) {
				if !slices.Contains(keys, key) {
					t.Errorf("%s is not in the store", key)
				}
			}
			h.wantWhole(t, store, v.ID, files(t, w.root))
		})
	}
}

// A mortal is a store whose process dies after some calls.
type mortal struct {
	blob.Store
	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process died")

func (m *mortal) live() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return errDead
	}
	m.left--
	return nil
}

func (m *mortal) Put(ctx context.Context, key string, body []byte) error {
	if err := m.live(); err != nil {
		return err
	}
	err := m.Store.Put(ctx, key, body)
	return errors.Join(err, m.live()) // perhaps it was written, and nobody knows
}

func (m *mortal) Delete(ctx context.Context, key string) error {
	if err := m.live(); err != nil {
		return err
	}
	err := m.Store.Delete(ctx, key)
	return errors.Join(err, m.live())
}

func TestCollectionMayDieAnywhere(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 10 {
		w.change(rnd)
		w.save()
	}
	want := files(t, w.root)
	h.release(w.Attachment)
	dead := &mortal{Store: store}
	h.Store = dead
	for calls := 0; ; calls++ {
		dead.left = calls
		_, err := h.Collect(t.Context(), v.ID)
		h.Store = store
		if calls%5 == 0 {
			h.wantWhole(t, store, v.ID, want)
		}
		h.Store = dead
		if err == nil {
			break
		}
		if !errors.Is(err, errDead) || calls > 200 {
			t.Fatal(err)
		}
	}
	for calls := 0; ; calls++ {
		h.clock.Advance(25 * time.Hour)
		dead.left = calls
		_, err := h.Collect(t.Context(), v.ID)
		if err == nil {
			err = h.SweepGarbage(t.Context())
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errDead) || calls > 400 {
			t.Fatal(err)
		}
	}
	h.Store = store
	h.wantWhole(t, store, v.ID, want)
	var keys []string
	h.must(store.List(t.Context(), "v/"+v.ID.String()+"/", func(i blob.Info) error { keys = append(keys, i.Key); return nil }))
	if want := h.keysByRows(v.ID); !slices.Equal(keys, want) {
		t.Errorf("the store holds what no row names, or lacks some:\n%s", cmp.Diff(want, keys))
	}
}

// keysByRows are the keys that the rows of a volume name.
func (h *harbour) keysByRows(volumeID uuid.UUID) []string {
	h.t.Helper()
	prefix := "v/" + volumeID.String() + "/"
	keys := []string{prefix + "config"}
	h.must(h.Store.List(h.t.Context(), prefix+"keys/", func(i blob.Info) error { keys = append(keys, i.Key); return nil }))
	for _, sql := range []string{
		`select case kind when 'index' then 'index/' else 'data/' || left(encode(id, 'hex'), 2) || '/' end || encode(id, 'hex')
		 from volume_pack where volume_id = $1`,
		`select 'snapshots/' || encode(snapshot_id, 'hex') from volume_snapshot where volume_id = $1`,
	} {
		rows, err := h.Pool.Query(h.t.Context(), sql, volumeID)
		h.must(err)
		for rows.Next() {
			var key string
			h.must(rows.Scan(&key))
			keys = append(keys, prefix+key)
		}
		h.must(rows.Err())
	}
	slices.Sort(keys)
	return keys
}

// A watched store tells of each read before it happens.
type watched struct {
	blob.Store
	before func(key string)
}

func (w watched) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	w.before(key)
	return w.Store.Get(ctx, key, offset, length)
}

// A claim is as long for the last volume of a pass as for the first: another
// node does not begin what is on its way.
func TestALongPassKeepsEachOfItsClaims(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	for range 2 {
		a := h.boot(scope, h.create(scope).ID)
		h.must(a.commitGB(1))
	}
	h.must(h.CollectDue(t.Context())) // plans them
	h.clock.Advance(25 * time.Hour)
	var touched []string // by the other node
	d := h.Deps
	d.Store = watched{h.store, func(key string) { touched = append(touched, key) }}
	other := volume.New(d)
	var begun []string
	d.Store = watched{h.store, func(key string) {
		volumeID := strings.Split(key, "/")[1]
		if slices.Contains(begun, volumeID) {
			return
		}
		begun = append(begun, volumeID)
		h.clock.Advance(80 * time.Minute)
		if len(begun) == 2 {
			h.must(other.CollectDue(t.Context()))
		}
	}}
	h.must(volume.New(d).CollectDue(t.Context()))
	if len(begun) != 2 || len(touched) > 0 {
		t.Errorf("%d volumes were collected, want 2; another node read %d objects of them meanwhile", len(begun), len(touched))
	}
	h.clock.Advance(22 * time.Hour) // a day after the pass began, less than one after either was collected
	h.must(other.CollectDue(t.Context()))
	if len(touched) > 0 {
		t.Errorf("another node read %d objects less than a day after they were collected", len(touched))
	}
}

func TestUploadsThatWereNeverCommittedGo(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	w.write("a", 1, 100<<10)
	w.save()
	w.write("b", 2, 700<<10)
	if _, err := w.syncer.Run(t.Context(), snapshot.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(48 * time.Hour)
	h.collectNow(v.ID)
	h.sweep()
	w.save() // while the attachment lives they are its own
	w.write("c", 3, 700<<10)
	if _, err := w.syncer.Run(t.Context(), snapshot.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	h.release(w.Attachment)
	h.must(os.Remove(filepath.Join(w.root, "c")))
	h.clock.Advance(48 * time.Hour)
	h.collectNow(v.ID)
	h.sweep()
	if got := storedBytes(t, store, v.ID); got > 900<<10 {
		t.Errorf("%d bytes are stored, some of them were never committed", got)
	}
	h.wantWhole(t, store, v.ID, files(t, w.root))
}

// writeTwice makes versions 1 and 2, and returns the file of an object that only
// the second needs.
func (w *writer) writeTwice(store *dir.Store) string {
	w.t.Helper()
	var before []string
	data := "v/" + w.VolumeID.String() + "/data/"
	w.write("first", 1, 300<<10)
	w.save()
	w.must(store.List(w.t.Context(), data, func(i blob.Info) error { before = append(before, i.Key); return nil }))
	w.write("second", 2, 300<<10)
	w.save()
	var later string
	w.must(store.List(w.t.Context(), data, func(i blob.Info) error {
		if !slices.Contains(before, i.Key) && i.Size > 200<<10 {
			later = i.Key
		}
		return nil
	}))
	return store.Path(later)
}

func TestTheScrubFindsDamageAndTheLastWholeVersion(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	h.Retention = volume.Retention{Last: 10, Days: 90}
	scope := h.team(team.Pro)
	v := h.create(scope)
	path := h.writer(t, h.bootPod(scope, v.ID, node)).writeTwice(store)
	h.must(h.ScrubDue(t.Context()))
	raw, err := os.ReadFile(path)
	h.must(err)
	raw[1000] ^= 4
	h.must(os.WriteFile(path, raw, 0o600))
	h.clock.Advance(31 * 24 * time.Hour)
	h.must(h.ScrubDue(t.Context()))
	found, err := h.ListDamage(t.Context())
	h.must(err)
	if len(found) != 1 || found[0].What != "differs" || found[0].LastGoodSeq == nil || *found[0].LastGoodSeq != 1 {
		t.Fatalf("damage %+v, want one object, and version 1 whole", found)
	}
	if _, damaged, err := h.Trouble(t.Context()); err != nil || damaged != 1 {
		t.Errorf("%d damaged objects are counted, %v", damaged, err)
	}
	h.must(os.Remove(path))
	h.clock.Advance(25 * time.Hour)
	h.must(h.ScrubDue(t.Context()))
	if found, err = h.ListDamage(t.Context()); err != nil || len(found) != 1 || found[0].What != "missing" {
		t.Errorf("damage %+v, %v, want it missing", found, err)
	}
	raw[1000] ^= 4
	h.must(os.WriteFile(path, raw, 0o600))
	h.clock.Advance(25 * time.Hour)
	h.must(h.ScrubDue(t.Context()))
	if found, err = h.ListDamage(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("damage %+v, %v, after it was mended", found, err)
	}
}

// Which version of a locked volume is whole is known to nobody: that is said, it
// is found once the key was given, and is not forgotten when it locks again.
func TestTheWholeVersionOfALockedVolumeWaitsForItsKey(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	h.Retention = volume.Retention{Last: 10, Days: 90}
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	p := h.bootPod(scope, v.ID, node)
	path := h.writer(t, p).writeTwice(store)
	h.release(p.Attachment)
	h.lock(scope, v.ID)
	h.must(os.Remove(path))
	h.must(h.ScrubDue(t.Context()))
	h.clock.Advance(31 * 24 * time.Hour)
	first := int64(1)
	for _, one := range []struct {
		when   string
		before func()
		locked bool
		good   *int64
	}{
		{"while it is locked", func() {}, true, nil},
		{"once it was unlocked", func() { h.unlock(scope, v.ID, key) }, false, &first},
		{"a day after it was locked again", func() { h.lock(scope, v.ID); h.clock.Advance(25 * time.Hour) }, true, &first},
	} {
		one.before()
		h.must(h.ScrubDue(t.Context()))
		found, err := h.ListDamage(t.Context())
		h.must(err)
		if len(found) != 1 || found[0].Locked != one.locked {
			t.Fatalf("%s: damage %+v", one.when, found)
		}
		if diff := cmp.Diff(one.good, found[0].LastGoodSeq); diff != "" {
			t.Errorf("%s, the last whole version is:\n%s", one.when, diff)
		}
	}
}

// The object of a snapshot, which a public tool needs, is looked at as well, also
// of a volume that is locked.
func TestTheScrubFindsADamagedSnapshot(t *testing.T) {
	t.Parallel()
	w := newVault(t)
	h := w.harbour
	w.lock(w.scope, w.volume.ID)
	r, err := h.Repository(t.Context(), w.volume.ID)
	h.must(err)
	path := filepath.Join(w.path(r.Path), "snapshots", r.Head)
	raw, err := os.ReadFile(path)
	h.must(err)
	damage := func() []volume.Damage {
		h.clock.Advance(31 * 24 * time.Hour)
		h.must(h.ScrubDue(t.Context()))
		found, err := h.ListDamage(t.Context())
		h.must(err)
		return found
	}
	if found := damage(); len(found) != 0 {
		t.Errorf("damage %+v of a whole volume", found)
	}
	broken := bytes.Clone(raw)
	broken[len(broken)/2] ^= 4
	h.must(os.WriteFile(path, broken, 0o600))
	if found := damage(); len(found) != 1 || found[0].Kind != "snapshot" || found[0].What != "differs" || found[0].VolumeID != w.volume.ID {
		t.Errorf("damage %+v, want the snapshot", found)
	}
	h.must(os.Remove(path))
	if found := damage(); len(found) != 1 || found[0].What != "missing" {
		t.Errorf("damage %+v, want the snapshot missing", found)
	}
	h.must(os.WriteFile(path, raw, 0o600))
	if found := damage(); len(found) != 0 {
		t.Errorf("damage %+v after it was mended", found)
	}
}

// A store that fails is no damage.
func TestTheScrubWaitsForAStoreThatFails(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(1))
	h.clock.Advance(40 * 24 * time.Hour)
	h.store.setFail(func(op, _ string) error {
		if op == "get" {
			return blob.ErrUnavailable
		}
		return nil
	})
	if err := h.ScrubDue(t.Context()); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("the scrub of a store that is away: %v", err)
	}
	found, err := h.ListDamage(t.Context())
	if err != nil || len(found) != 0 {
		t.Errorf("damage %+v, %v", found, err)
	}
}

// What a pod commits and lists in no index is charged to nobody. It goes.
func TestPacksThatNoIndexNamesGo(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	w.write("a", 1, 100<<10)
	c, err := w.syncer.Run(t.Context(), snapshot.RunOptions{})
	h.must(err)
	hidden := make([]byte, 3<<20)
	o := snapshot.Object{ID: sha256.Sum256(hidden), Kind: snapshot.KindData, Size: int64(len(hidden))}
	h.must(w.pod.Put(t.Context(), o, hidden))
	in := agentapi.Commit{Epoch: w.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String()}
	for _, o := range append(c.Objects, o) {
		in.Objects = append(in.Objects, wire(o))
	}
	_, _, err = w.Commit(t.Context(), w.Attachment, in)
	h.must(err)
	w.syncer.Committed(c)
	h.clock.Advance(time.Second)
	h.collectNow(v.ID)
	w.hello()
	w.write("b", 2, 100<<10)
	w.save()
	h.sweep()
	if got := storedBytes(t, store, v.ID); got > 500<<10 {
		t.Errorf("%d bytes are stored, of a volume of 200 kB", got)
	}
	h.wantWhole(t, store, v.ID, files(t, w.root))
}

// Who rewrites a volume all day does not fill the store: beyond KeptMost the
// oldest versions go, and never the newest.
func TestTheOldestVersionsGoWhenAllHoldTooMuch(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	h.Retention = volume.Retention{Last: 20, Hours: 24, Days: 7}
	h.KeptMost = 1 << 20
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	for i := range 8 {
		w.write("checkpoint", uint64(i), 300<<10)
		w.save()
	}
	kept := func() (seqs []int64) {
		h.collectNow(v.ID)
		list, err := h.Versions(t.Context(), scope, v.ID)
		h.must(err)
		for _, one := range list {
			seqs = append(seqs, one.Seq)
		}
		return seqs
	}
	if got := kept(); !slices.Equal(got, []int64{8, 7, 6}) {
		t.Errorf("versions %v are kept, want 3 of 300 kB each", got)
	}
	h.KeptMost = 1
	if got := kept(); !slices.Equal(got, []int64{8}) {
		t.Errorf("versions %v are kept, want the newest", got)
	}
	w.hello()
	h.sweep()
	if got := storedBytes(t, store, v.ID); got > 500<<10 {
		t.Errorf("%d bytes are stored", got)
	}
	h.wantWhole(t, store, v.ID, files(t, w.root))
}

// What lies in the store of one volume is bounded, whatever is charged of it:
// beyond that a background sync brings no more file data. Files can be removed,
// the last sync is taken, and what went makes room.
func TestWhatIsStoredOfAVolumeIsBounded(t *testing.T) {
	t.Parallel()
	h, _, node := newNode(t)
	h.StoredMost = 700 << 10
	scope := h.team(team.Pro)
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	for i := range 2 {
		w.write("checkpoint", uint64(i), 300<<10)
		w.save()
	}
	w.write("checkpoint", 2, 300<<10)
	h.clock.Advance(time.Second)
	if err := w.commit(t.Context()); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("the third 300 kB of 700: %v", err)
	}
	w.hello()
	h.release(w.Attachment)
	h.clock.Advance(49 * time.Hour)
	h.collectNow(v.ID) // lets go of the first version, and of what was not committed
	h.sweep()

	w = h.writer(t, h.bootPod(scope, v.ID, node))
	w.write("checkpoint", 3, 300<<10)
	w.save()
	w.write("checkpoint", 4, 300<<10)
	h.clock.Advance(time.Second)
	if err := w.commit(t.Context()); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("900 kB of 700: %v", err)
	}
	c, err := w.syncer.Run(t.Context(), snapshot.RunOptions{})
	h.must(err)
	in := agentapi.Commit{
		Epoch: w.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String(), Parent: c.Parent.String(), Final: true,
	}
	for _, o := range c.Objects {
		in.Objects = append(in.Objects, wire(o))
	}
	w.Attachment.Final = true
	if _, final, err := w.Commit(t.Context(), w.Attachment, in); err != nil || !final {
		t.Errorf("the last sync: %v, %v", final, err)
	}
}
