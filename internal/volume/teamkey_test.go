package volume_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
)

// createLocked makes a volume that only the returned key opens.
func (h *harbour) createLocked(scope team.Scope) (volume.Volume, string) {
	h.t.Helper()
	key := "hpk_" + id.Token()
	v, err := h.CreateLocked(h.t.Context(), scope, "secret", key, idem.Request{})
	h.must(err)
	if !v.TeamKey || v.Locked {
		h.t.Fatalf("made %+v", v)
	}
	return v, key
}

func (h *harbour) lock(scope team.Scope, volumeID uuid.UUID) {
	h.t.Helper()
	v, err := h.Lock(h.t.Context(), scope, volumeID)
	h.must(err)
	if !v.Locked {
		h.t.Fatalf("locked, it is %+v", v)
	}
}

func (h *harbour) unlock(scope team.Scope, volumeID uuid.UUID, key string) {
	h.t.Helper()
	v, err := h.Unlock(h.t.Context(), scope, volumeID, key)
	h.must(err)
	if v.Locked {
		h.t.Fatalf("unlocked, it is %+v", v)
	}
}

// row is all that the database has of a volume.
func (h *harbour) row(volumeID uuid.UUID) string {
	h.t.Helper()
	var text string
	h.must(h.Pool.QueryRow(h.t.Context(), `select v::text from volume v where id = $1`, volumeID).Scan(&text))
	return text
}

// What does not unlock or lock a volume says why, and changes nothing.
func TestRefusalsOfKeysChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	viewer := teamtest.Join(t, h.Pool, scope.TeamID(), team.Viewer)
	stranger := h.team(team.Pro)
	locked, key := h.createLocked(scope)
	h.lock(scope, locked.ID)
	_, otherKey := h.createLocked(scope)
	held, heldKey := h.createLocked(scope)
	_, err := h.attach(scope, held.ID)
	h.must(err)
	trashed, trashedKey := h.createLocked(scope)
	h.must(h.Delete(t.Context(), scope, trashed.ID))
	plain := h.create(scope)

	unlock := func(s team.Scope, v volume.Volume, key string) func() error {
		return func() error { _, err := h.Unlock(t.Context(), s, v.ID, key); return err }
	}
	lock := func(s team.Scope, v volume.Volume) func() error {
		return func() error { _, err := h.Lock(t.Context(), s, v.ID); return err }
	}
	create := func(s team.Scope, key string) func() error {
		return func() error { _, err := h.CreateLocked(t.Context(), s, "new", key, idem.Request{}); return err }
	}
	nearly := key[:46] + "A"
	if nearly == key {
		nearly = key[:46] + "B"
	}
	form := `A key is "hpk_" and 43 letters, digits, "-" or "_".`
	for name, tt := range map[string]struct {
		v      volume.Volume
		do     func() error
		want   *fault.Error
		detail string
	}{
		"another volume's key":         {locked, unlock(scope, locked, otherKey), volume.ErrWrongKey, "This is not the key of this volume."},
		"the last letter":              {locked, unlock(scope, locked, nearly), volume.ErrWrongKey, ""},
		"no key":                       {locked, unlock(scope, locked, ""), volume.ErrKey, form},
		"half a key":                   {locked, unlock(scope, locked, key[:46]), volume.ErrKey, form},
		"two keys":                     {locked, unlock(scope, locked, key+key), volume.ErrKey, form},
		"a key without its mark":       {locked, unlock(scope, locked, key[4:]), volume.ErrKey, form},
		"a viewer":                     {locked, unlock(viewer, locked, key), team.ErrForbidden, ""},
		"another team":                 {locked, unlock(stranger, locked, key), volume.ErrNotFound, ""},
		"another team, no key":         {locked, unlock(stranger, locked, ""), volume.ErrNotFound, ""},
		"a volume without a key":       {plain, unlock(scope, plain, key), volume.ErrNoKey, "This volume has no key of its own."},
		"one in the trash":             {trashed, unlock(scope, trashed, trashedKey), volume.ErrNotFound, ""},
		"the wrong key of a held one":  {held, unlock(scope, held, key), volume.ErrWrongKey, ""},
		"lock: held":                   {held, lock(scope, held), volume.ErrInUse, ""},
		"lock: a viewer":               {held, lock(viewer, held), team.ErrForbidden, ""},
		"lock: another team":           {held, lock(stranger, held), volume.ErrNotFound, ""},
		"lock: a volume without a key": {plain, lock(scope, plain), volume.ErrNoKey, ""},
		"lock: one in the trash":       {trashed, lock(scope, trashed), volume.ErrNotFound, ""},
		"lock: locked":                 {locked, lock(scope, locked), nil, ""},
		"create: half a key":           {locked, create(scope, key[:40]), volume.ErrKey, form},
		"create: no key":               {locked, create(scope, ""), volume.ErrKey, form},
		"create: not base64url":        {locked, create(scope, key[:46]+"+"), volume.ErrKey, form},
		"create: a viewer":             {locked, create(viewer, key), team.ErrForbidden, ""},
	} {
		before := h.row(tt.v.ID)
		err := tt.do()
		if tt.want == nil {
			h.must(err)
		} else if f := fault.Of(err); !errors.Is(err, tt.want) || tt.detail != "" && f.Detail != tt.detail {
			t.Errorf("%s: %v, want %s", name, err, tt.want.Code)
		}
		if diff := cmp.Diff(before, h.row(tt.v.ID)); diff != "" {
			t.Errorf("%s changed %s", name, diff)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the key is in the error", name)
		}
	}
	if all, err := h.List(t.Context(), scope); err != nil || len(all) != 4 {
		t.Errorf("%d volumes, want 4, %v", len(all), err)
	}
	h.unlock(scope, locked.ID, " "+key+"\n") // as it comes from a file
	h.unlock(scope, held.ID, heldKey)
}

// The key stays for an hour after unlocking and after a pod, never goes while a
// pod has the volume, and then nothing of it is left. What needs it waits.
func TestAVolumeLocksAnHourAfterItsLastPod(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	after := func(d time.Duration, locked bool) {
		t.Helper()
		h.clock.Advance(d)
		h.must(h.LockDue(t.Context()))
		if got := h.find(scope, v.ID); got.Locked != locked || !got.TeamKey {
			t.Fatalf("after %s locked is %t", d, got.Locked)
		}
	}
	after(time.Hour-time.Second, false)
	after(time.Second, true)
	if _, err := h.attach(scope, v.ID); !errors.Is(err, volume.ErrLocked) {
		t.Errorf("attached while locked: %v", err)
	}
	h.unlock(scope, v.ID, key)
	after(40*time.Minute, false)
	h.unlock(scope, v.ID, key) // once more: an hour from now
	after(40*time.Minute, false)

	a := h.boot(scope, v.ID)
	after(5*time.Hour, false)
	h.must(a.commitGB(1))
	h.release(a.Attachment)
	after(time.Hour-time.Second, false)
	next := h.boot(scope, v.ID)
	if next.head != a.head {
		t.Error("the next pod finds other files")
	}
	h.release(next.Attachment)
	h.release(a.Attachment) // long over: moves nothing
	after(time.Hour, true)

	background := func() error {
		return h.tx(func(tx pgx.Tx) error {
			_, err := h.ReattachTx(t.Context(), tx, scope.TeamID(), v.ID, id.New())
			return err
		})
	}
	if err := background(); !errors.Is(err, volume.ErrLocked) {
		t.Errorf("attached again while locked: %v", err)
	}
	var left int
	h.must(h.Pool.QueryRow(t.Context(), `select num_nonnulls(key_sealed, password_sealed, chunker_key_sealed, unlocked_until)
		from volume where id = $1`, v.ID).Scan(&left))
	if left != 0 {
		t.Errorf("%d values are left that open a locked volume", left)
	}
	h.unlock(scope, v.ID, key)
	h.must(background())
	after(3*time.Hour, false)
}

// waiting lets do go until it waits for a lock in the database, then go on.
func (h *harbour) waiting(do func() error, goOn func() error) error {
	h.t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for waits := false; !waits; {
		h.must(h.Pool.QueryRow(h.t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits))
	}
	h.must(goOn())
	return <-done
}

// Whoever comes second sees what the first did: the sweep leaves the key of a
// volume that was attached a moment ago, and a pod does not get one that was
// locked a moment ago.
func TestAttachAndLockWaitForEachOther(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	h.clock.Advance(time.Hour)
	ctx := t.Context()

	tx, err := h.Pool.Begin(ctx)
	h.must(err)
	a, err := h.AttachTx(ctx, tx, scope, v.ID, id.New(), h.clock.Now())
	h.must(err)
	h.must(h.waiting(func() error { return h.LockDue(ctx) }, func() error { return tx.Commit(ctx) }))
	if _, err := h.Grant(ctx, a, false); err != nil || h.find(scope, v.ID).Locked {
		t.Errorf("the sweep took the key of a pod: %v", err)
	}
	h.release(a)

	tx, err = h.Pool.Begin(ctx)
	h.must(err)
	a, err = h.AttachTx(ctx, tx, scope, v.ID, id.New(), h.clock.Now())
	h.must(err)
	err = h.waiting(func() error { _, err := h.Lock(ctx, scope, v.ID); return err }, func() error { return tx.Commit(ctx) })
	if !errors.Is(err, volume.ErrInUse) {
		t.Errorf("locked under a pod: %v", err)
	}
	h.release(a)

	h.clock.Advance(time.Hour)
	tx, err = h.Pool.Begin(ctx)
	h.must(err)
	_, err = tx.Exec(ctx, `update volume set key_sealed = null, unlocked_until = null where id = $1`, v.ID)
	h.must(err)
	err = h.waiting(func() error { _, err := h.attach(scope, v.ID); return err }, func() error { return tx.Commit(ctx) })
	if !errors.Is(err, volume.ErrLocked) {
		t.Errorf("attached while it was locked: %v", err)
	}
	h.unlock(scope, v.ID, key)
	_, err = h.attach(scope, v.ID)
	h.must(err)
}

// However many want the volume, lock it or sweep at once: at most one pod gets
// it, and that one has its key.
func TestAPodNeverLosesItsKey(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	attached, locked := 0, 0
	for range 6 {
		h.clock.Advance(time.Hour) // the sweep wants it, too
		var mu sync.Mutex
		var holder *volume.Attachment
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				<-start
				var err error
				switch i % 4 {
				case 0:
					err = h.LockDue(t.Context())
				case 1:
					if _, err = h.Lock(t.Context(), scope, v.ID); errors.Is(err, volume.ErrInUse) {
						err = nil
					}
				default:
					var a volume.Attachment
					a, err = h.attach(scope, v.ID)
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						if holder != nil {
							t.Error("two pods hold it")
						}
						holder = &a
					}
					if errors.Is(err, volume.ErrLocked) || errors.Is(err, volume.ErrInUse) {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		now := h.find(scope, v.ID)
		if now.CurrentlyUsed != (holder != nil) || now.CurrentlyUsed == now.Locked {
			t.Fatalf("used %t, locked %t, a pod got it %t", now.CurrentlyUsed, now.Locked, holder != nil)
		}
		if holder == nil {
			locked++
			h.unlock(scope, v.ID, key)
			continue
		}
		attached++
		if _, err := h.Grant(t.Context(), *holder, false); err != nil {
			t.Fatalf("a pod has the volume and not its key: %v", err)
		}
		h.release(*holder)
	}
	t.Logf("%d times a pod was first, %d times a lock", attached, locked)
}

// Whatever the store or the process does between the volume's row and its
// repository, the next attachment makes the one repository that the key opens,
// also when the volume was locked meanwhile.
func TestTheRepositoryOfATeamKeyIsMadeAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	prefix := "v/" + v.ID.String()
	if n := len(h.store.keys(prefix)); n != 0 {
		t.Fatalf("%d objects before a pod", n)
	}
	for _, at := range []string{prefix + "/keys/", prefix + "/config"} {
		h.store.setFail(func(op, key string) error {
			if op == "put" && strings.HasPrefix(key, at) {
				return blob.ErrUnavailable
			}
			return nil
		})
		a, err := h.attach(scope, v.ID)
		h.must(err)
		if _, err := h.Grant(t.Context(), a, false); !errors.Is(err, blob.ErrUnavailable) {
			t.Fatalf("grant: %v", err)
		}
		h.release(a)
		h.lock(scope, v.ID)
		h.unlock(scope, v.ID, key)
	}
	h.store.setFail(nil)
	ctx, cancel := context.WithCancel(t.Context())
	a, err := h.attach(scope, v.ID)
	h.must(err)
	h.Store = dying{h.store, cancel} // all is in the store, and the row does not say so
	if _, err := h.Grant(ctx, a, false); err == nil {
		t.Fatal("the node did not die")
	}
	h.Store = h.store
	h.release(a)
	ag := h.boot(scope, v.ID)
	h.must(ag.commitGB(1))
	files := h.store.keys(prefix + "/keys/")
	if len(files) != 1 || len(h.store.keys(prefix+"/config")) != 1 {
		t.Fatalf("the repository has %v", files)
	}
	opened, err := snapshot.OpenKeyFile(h.store.objects[files[0]], key)
	h.must(err)
	if chunker, err := opened.ChunkerKey(); err != nil || !bytes.Equal(chunker, h.chunkerKey(ag.Attachment)) {
		t.Errorf("the key that restic finds is not the pod's: %v", err)
	}
}

// A dying store ends its node once the config is written.
type dying struct {
	*memory
	die func()
}

func (d dying) Put(ctx context.Context, key string, body []byte) error {
	err := d.memory.Put(ctx, key, body)
	if strings.HasSuffix(key, "/config") {
		d.die()
	}
	return err
}

func (h *harbour) chunkerKey(a volume.Attachment) []byte {
	h.t.Helper()
	g, err := h.Grant(h.t.Context(), a, false)
	h.must(err)
	return g.ChunkerKey
}

// A locked volume is scrubbed, deleted, brought back and purged as any other.
func TestALockedVolumeIsKeptAsAnyOther(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(2))
	h.release(a.Attachment)
	h.lock(scope, v.ID)
	h.must(h.ScrubDue(t.Context()))
	if rate := h.find(scope, v.ID).Rate(); rate != 400 {
		t.Errorf("its rate is %d", rate)
	}
	h.must(h.Delete(t.Context(), scope, v.ID))
	back, err := h.Restore(t.Context(), scope, v.ID, idem.Request{})
	if err != nil || !back.Locked || !back.TeamKey {
		t.Errorf("back from the trash: %+v, %v", back, err)
	}
	h.unlock(scope, v.ID, key)
	if next := h.boot(scope, v.ID); next.head != a.head {
		t.Error("the files are others")
	} else {
		h.release(next.Attachment)
	}
	h.must(h.Delete(t.Context(), scope, v.ID))
	h.clock.Advance(volume.TrashFor)
	h.must(h.PurgeDue(t.Context()))
	h.must(h.LockDue(t.Context()))
	var left int
	h.must(h.Pool.QueryRow(t.Context(), `select num_nonnulls(key_sealed, key_file, unlocked_until) from volume where id = $1`, v.ID).Scan(&left))
	if objects := h.store.keys("v/" + v.ID.String()); left != 0 || len(objects) != 0 {
		t.Errorf("left are %d values and %v", left, objects)
	}
}

// A collection passes over a locked volume, without a word, and is made up for
// once it is unlocked.
func TestCollectionsWaitForTheKey(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, key := h.createLocked(scope)
	a := h.boot(scope, v.ID)
	for range 3 {
		h.must(a.commitGB(1))
	}
	h.release(a.Attachment)
	h.must(h.CollectDue(t.Context())) // plans it
	h.lock(scope, v.ID)
	h.clock.Advance(25 * time.Hour)
	d := h.Deps
	var touched atomic.Int64
	d.Store = watched{h.store, func(string) { touched.Add(1) }}
	node := volume.New(d)
	versions := func() int {
		var n int
		h.must(h.Pool.QueryRow(t.Context(), `select count(*) from volume_snapshot where volume_id = $1`, v.ID).Scan(&n))
		return n
	}
	h.must(node.CollectDue(t.Context()))
	if _, err := node.Collect(t.Context(), v.ID); !errors.Is(err, volume.ErrLocked) {
		t.Errorf("collected while locked: %v", err)
	}
	if touched.Load() != 0 || versions() != 3 {
		t.Errorf("%d objects were read, %d versions are left", touched.Load(), versions())
	}
	h.unlock(scope, v.ID, key)
	h.must(node.CollectDue(t.Context()))
	if touched.Load() == 0 || versions() != 1 { // the rule keeps the newest
		t.Errorf("unlocked: %d objects were read, %d versions are left", touched.Load(), versions())
	}
}
