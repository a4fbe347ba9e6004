package volume_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

func TestFirstGrantsAtOnceMakeOneRepository(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	if _, err := h.Repository(t.Context(), v.ID); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("a volume without a repository: %v", err)
	}
	a, err := h.attach(scope, v.ID)
	h.must(err)
	var wg sync.WaitGroup
	grants := make([]agentapi.VolumeGrant, 8)
	for i := range grants {
		wg.Go(func() {
			g, err := h.Grant(t.Context(), a, false)
			if err != nil {
				t.Error(err)
			}
			grants[i] = g
		})
	}
	wg.Wait()
	for _, g := range grants {
		if diff := cmp.Diff(grants[0], g); diff != "" || g.Head != nil || len(g.ChunkerKey) != 32 || g.QuotaBytes != 500e9 || g.Epoch != 1 {
			t.Fatalf("%+v %s", g, diff)
		}
	}
	if keys := h.store.keys("v/" + v.ID.String() + "/config"); len(keys) != 1 {
		t.Errorf("configs: %v", keys)
	}
	r, err := h.Repository(t.Context(), v.ID)
	if err != nil || r.Path != "v/"+v.ID.String() || len(r.Password) < 40 || r.Head != "" || r.TeamKey {
		t.Errorf("%q, %d, %q, %v", r.Path, len(r.Password), r.Head, err)
	}
	var leaked bool
	h.must(h.Pool.QueryRow(t.Context(), `select position($1::bytea in key_sealed) + position($2::bytea in password_sealed) > 0
		from volume where id = $3`, grants[0].Key[10:60], []byte(r.Password), v.ID).Scan(&leaked))
	if leaked {
		t.Error("a key is stored in clear")
	}
}

// The store fails while the repository is made: the next attachment makes it
// with the same keys.
func TestRepositoryIsMadeAfterAFailure(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a, err := h.attach(scope, v.ID)
	h.must(err)
	h.store.setFail(func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, "/config") {
			return blob.ErrUnavailable
		}
		return nil
	})
	if _, err := h.Grant(t.Context(), a, false); !errors.Is(err, blob.ErrUnavailable) {
		t.Fatalf("grant: %v", err)
	}
	h.store.setFail(nil)
	_, err = h.Grant(t.Context(), a, false)
	h.must(err)
	ag := h.reboot(scope, a)
	if _, err := ag.commit(ag.draft(1)); err != nil {
		t.Error(err)
	}
}

// reboot goes on with a released volume.
func (h *harbour) reboot(scope team.Scope, a volume.Attachment) *agent {
	h.t.Helper()
	h.release(a)
	return h.boot(scope, a.VolumeID)
}

func TestGrantTellsHeadIndexesAndWhatToResume(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	first := a.draft(1_000_000_000)
	out, err := a.commit(first)
	h.must(err)
	uploaded, signed := a.draft(5), a.draft(6)
	h.must(a.upload(uploaded))
	_, err = a.sign(signed)
	h.must(err)
	g, err := h.Grant(t.Context(), a.Attachment, true)
	h.must(err)
	if diff := cmp.Diff(&out.Head, g.Head); diff != "" || g.SizeBytes != 1_000_000_000 {
		t.Errorf("%+v %s", g, diff)
	}
	if len(g.Indexes) != 1 || g.Indexes[0] != first.objects[len(first.objects)-1] {
		t.Errorf("indexes %+v", g.Indexes)
	}
	if len(g.Resume) != len(uploaded.objects) {
		t.Errorf("resume %+v, want the %d objects that arrived", g.Resume, len(uploaded.objects))
	}
	next := h.reboot(scope, a.Attachment)
	g, err = h.Grant(t.Context(), next.Attachment, true)
	h.must(err)
	if len(g.Resume) != 0 || g.Resume == nil {
		t.Errorf("another epoch resumes %+v", g.Resume)
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, foreign := h.create(scope), h.create(scope)
	a, stranger := h.boot(scope, v.ID), h.boot(scope, foreign.ID)
	mine, theirs := a.draft(1), stranger.draft(1)
	_, err := a.commit(mine)
	h.must(err)
	_, err = stranger.commit(theirs)
	h.must(err)
	left := a.draft(2) // uploaded by an attachment that ended
	h.must(a.upload(left))
	a = h.reboot(scope, a.Attachment)
	fresh := a.draft(3)
	h.must(a.upload(fresh))
	some := agentapi.Object{ID: mine.tree, Kind: agentapi.KindData, Size: 1}
	many := make([]agentapi.Op, agentapi.MaxSignOps+1)
	for i := range many {
		many[i] = agentapi.Op{Put: true, Object: some}
	}
	with := func(change func(*agentapi.Object)) []agentapi.Op {
		o := some
		change(&o)
		return []agentapi.Op{{Put: true, Object: o}}
	}
	read := func(o agentapi.Object) []agentapi.Op { return []agentapi.Op{{Object: o}} }
	for name, tt := range map[string]struct {
		ops  []agentapi.Op
		want error
	}{
		"write":                     {with(func(*agentapi.Object) {}), nil},
		"write twice":               {append(with(func(*agentapi.Object) {}), with(func(*agentapi.Object) {})...), nil},
		"write what is committed":   {[]agentapi.Op{{Put: true, Object: mine.objects[0]}}, nil},
		"nothing":                   {nil, volume.ErrCommit},
		"too much":                  {many, volume.ErrCommit},
		"as much as allowed":        {many[1:], nil},
		"no id":                     {with(func(o *agentapi.Object) { o.ID = "" }), volume.ErrCommit},
		"a path for an id":          {with(func(o *agentapi.Object) { o.ID = "../" + o.ID[3:] }), volume.ErrCommit},
		"an id in capitals":         {with(func(o *agentapi.Object) { o.ID = strings.ToUpper("abcdef" + o.ID[6:]) }), volume.ErrCommit},
		"a snapshot":                {with(func(o *agentapi.Object) { o.Kind = "snapshot" }), volume.ErrCommit},
		"a key":                     {with(func(o *agentapi.Object) { o.Kind = "keys" }), volume.ErrCommit},
		"an empty object":           {with(func(o *agentapi.Object) { o.Size = 0 }), volume.ErrCommit},
		"a size below zero":         {with(func(o *agentapi.Object) { o.Size = -1 }), volume.ErrCommit},
		"the largest object":        {with(func(o *agentapi.Object) { o.Size = agentapi.MaxObjectSize }), nil},
		"too large an object":       {with(func(o *agentapi.Object) { o.Size = agentapi.MaxObjectSize + 1 }), volume.ErrCommit},
		"read what is committed":    {read(mine.objects[0]), nil},
		"read without a size":       {read(agentapi.Object{ID: mine.objects[0].ID, Kind: mine.objects[0].Kind}), nil},
		"read as another kind":      {read(agentapi.Object{ID: mine.objects[0].ID, Kind: agentapi.KindIndex}), volume.ErrObject},
		"read what was just signed": {read(fresh.objects[0]), nil},
		"read of a former epoch":    {read(left.objects[0]), volume.ErrObject},
		"read of another volume":    {read(theirs.objects[0]), volume.ErrObject},
		"read what nobody has":      {read(agentapi.Object{ID: mine.tree[1:] + "0", Kind: agentapi.KindData}), volume.ErrObject},
		"one of two is foreign":     {append(read(mine.objects[0]), read(theirs.objects[0])...), volume.ErrObject},
	} {
		g, err := h.Sign(t.Context(), a.Attachment, agentapi.Sign{Epoch: a.Epoch, Ops: tt.ops})
		if !errors.Is(err, tt.want) || err == nil && len(g.Grants) != len(tt.ops) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		for i, grant := range g.Grants {
			if !strings.HasPrefix(grant.URL, "v/"+v.ID.String()+"/") || !strings.HasSuffix(grant.URL, tt.ops[i].Object.ID) ||
				tt.ops[i].Put != (grant.Method == "PUT") || tt.ops[i].Put && grant.Header["X-Sha256"] != tt.ops[i].Object.ID {
				t.Errorf("%s: %+v", name, grant)
			}
		}
		if err == nil && !g.ExpiresAt.Equal(h.clock.Wall().Add(15*time.Minute)) {
			t.Errorf("%s: expires %s", name, g.ExpiresAt)
		}
	}
	if _, err := h.Sign(t.Context(), a.Attachment, agentapi.Sign{Epoch: a.Epoch - 1, Ops: read(mine.objects[0])}); !errors.Is(err, volume.ErrFenced) {
		t.Errorf("another epoch: %v", err)
	}
	forged := a.Attachment
	forged.PodID = id.New()
	if _, err := h.Sign(t.Context(), forged, agentapi.Sign{Epoch: a.Epoch, Ops: read(mine.objects[0])}); !errors.Is(err, volume.ErrFenced) {
		t.Errorf("another pod: %v", err)
	}
}

// sized makes a draft of so many GB.
func (a *agent) sized(gb int) draft {
	blobs := make([]int64, gb)
	for i := range blobs {
		blobs[i] = 1_000_000_000
	}
	return a.draft(blobs...)
}

func TestQuota(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	final := func(on bool) { a.Attachment.Final = on }
	send := func(gb int) error {
		t.Helper()
		d := a.sized(gb)
		if err := a.upload(d); err != nil {
			return err
		}
		c := a.propose(d)
		c.Final = a.Final
		_, err := a.send(c)
		return err
	}
	h.must(send(525)) // 105 %
	if err := send(526); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("a background commit above 105 %%: %v", err)
	}
	final(true)
	h.must(send(600))
	if err := send(1001); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("a final commit above the hard stop: %v", err)
	}
	final(false)
	if got := h.find(scope, v.ID); got.SizeGB() != "600" || got.Rate() != 120_000 {
		t.Errorf("%+v", got)
	}
	a = h.reboot(scope, a.Attachment) // it stays attachable, so that it can be shrunk
	if _, err := a.sign(a.sized(1)); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("uploading data to an overfull volume: %v", err)
	}
	empty := a.draft()
	if _, err := a.commit(empty); err != nil {
		t.Errorf("shrinking an overfull volume: %v", err)
	}
	h.must(send(1))
}

// What is uploaded and never committed counts too.
func TestPendingUploadsHaveALimit(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	a := h.boot(scope, h.create(scope).ID)
	n := 0
	fill := func(times int) (err error) {
		for range times {
			ops := make([]agentapi.Op, agentapi.MaxSignOps)
			for i := range ops {
				n++
				ops[i] = agentapi.Op{Put: true, Object: agentapi.Object{
					ID: hash(bytes.Repeat([]byte{byte(n), byte(n >> 8)}, 3)), Kind: agentapi.KindData, Size: agentapi.MaxObjectSize,
				}}
			}
			if _, err = h.Sign(t.Context(), a.Attachment, agentapi.Sign{Epoch: a.Epoch, Ops: ops}); err != nil {
				return err
			}
		}
		return nil
	}
	h.must(fill(30)) // 515 GB
	if err := fill(1); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("more than 525 GB in the background: %v", err)
	}
	a.Attachment.Final = true
	h.must(fill(28)) // 996 GB
	if err := fill(1); !errors.Is(err, volume.ErrQuota) {
		t.Errorf("more than 1,000 GB: %v", err)
	}
}

func TestRestoreFromTrashChargesAndRefuses(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(500))
	h.release(a.Attachment)
	h.must(h.Delete(t.Context(), scope, v.ID))
	deleted := h.clock.Now()
	h.must(h.tx(func(tx pgx.Tx) error { // a pod runs on, and its days are posted
		return h.wallet.StartTx(t.Context(), tx, wallet.Start{
			TeamID: scope.TeamID(), ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: 1, At: deleted,
		})
	}))
	h.clock.Advance(48 * time.Hour)
	_, err := h.wallet.SettleDue(t.Context(), h.clock.Now())
	h.must(err)
	_, err = h.Restore(t.Context(), scope, v.ID, idem.Request{})
	h.must(err)
	s := segments(h, scope, v.ID)
	now := h.clock.Now()
	want := []wallet.Segment{{From: deleted, To: &now, Rate: 100_000}, {From: now, Rate: 100_000}}
	if diff := cmp.Diff(want, s[len(s)-2:]); diff != "" {
		t.Errorf("the meter (-want +got):\n%s", diff)
	}
	if b, err := h.wallet.Balance(t.Context(), scope, now); err != nil || b.MonthSpent != 4_800_048 {
		t.Errorf("spent %s, %v; want 48 hours of 0.10 and of the pod", b.MonthSpent.Decimal(), err)
	}

	poor := h.team(team.Pro)
	v = h.create(poor)
	a = h.boot(poor, v.ID)
	h.must(a.commitGB(500))
	h.release(a.Attachment)
	h.clock.Advance(999 * time.Hour) // 99.90 USD
	h.must(h.Delete(t.Context(), poor, v.ID))
	h.clock.Advance(2 * time.Hour)
	if _, err := h.Restore(t.Context(), poor, v.ID, idem.Request{}); !errors.Is(err, wallet.ErrInsufficient) {
		t.Errorf("without the money: %v", err)
	}
	if got := h.find(poor, v.ID); !got.Deleted {
		t.Error("a refused restore took the volume out of the trash")
	}
}

func (a *agent) commitGB(gb int) error {
	_, err := a.commit(a.sized(gb))
	return err
}

func TestPurge(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v, kept := h.create(scope), h.create(scope)
	for _, volumeID := range []volume.Volume{v, kept} {
		a := h.boot(scope, volumeID.ID)
		h.must(a.commitGB(1))
		h.release(a.Attachment)
	}
	h.must(h.Delete(t.Context(), scope, v.ID))
	before := len(h.store.keys(""))
	h.must(h.PurgeDue(t.Context()))
	if got := len(h.store.keys("")); got != before {
		t.Errorf("purged before its time: %d of %d objects are left", got, before)
	}
	h.clock.Advance(volume.TrashFor)
	h.store.setFail(func(op, _ string) error {
		if op == "delete" {
			return blob.ErrUnavailable
		}
		return nil
	})
	if err := h.PurgeDue(t.Context()); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("purge without a store: %v", err)
	}
	h.store.setFail(nil)
	h.must(h.PurgeDue(t.Context()))
	h.must(h.PurgeDue(t.Context()))
	if keys := h.store.keys("v/" + v.ID.String()); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
	if keys := h.store.keys("v/" + kept.ID.String()); len(keys) == 0 {
		t.Error("another volume was purged")
	}
	if _, err := h.Repository(t.Context(), v.ID); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("its keys are still there: %v", err)
	}
}

// The volumes of a deleted team are in the trash of who deleted it.
func TestEndOfATeam(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope, personal := h.team(team.Pro), h.team(team.Hobby)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(1))
	end := func() error {
		return h.tx(func(tx pgx.Tx) error {
			return h.EndTeamTx(t.Context(), tx, scope.TeamID(), personal.TeamID(), scope.UserID(), h.clock.Now())
		})
	}
	if err := end(); !errors.Is(err, volume.ErrInUse) {
		t.Errorf("with a running pod: %v", err)
	}
	h.release(a.Attachment)
	h.clock.Advance(time.Hour)
	before := segments(h, scope, v.ID)
	h.must(end())
	if len(before) != 1 || before[0].To != nil {
		t.Errorf("the meter before: %+v", before)
	}
	if _, err := h.Find(t.Context(), scope, v.ID); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("the old team still sees it: %v", err)
	}
	h.clock.Advance(29 * 24 * time.Hour)
	if trash, err := h.ListDeleted(t.Context(), personal); err != nil || len(trash) != 1 {
		t.Fatalf("%v, %v", trash, err)
	}
	back, err := h.Restore(t.Context(), personal, v.ID, idem.Request{})
	if err != nil || back.TeamID != personal.TeamID() || back.Deleted {
		t.Fatalf("%+v, %v", back, err)
	}
	now := h.clock.Now()
	deleted := now.Add(-29 * 24 * time.Hour)
	meter := []wallet.Segment{{From: deleted, To: &now, Rate: 200}, {From: now, Rate: 200}}
	if diff := cmp.Diff(meter, segments(h, personal, v.ID)); diff != "" {
		t.Errorf("the meter after (-want +got):\n%s", diff)
	}
	next := h.boot(personal, v.ID)
	if next.head != a.head {
		t.Errorf("the data is gone: head %s, want %s", next.head, a.head)
	}
}

func TestNotice(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	a := h.boot(scope, v.ID)
	h.must(a.commitGB(450))
	if n, err := h.Notice(t.Context(), v.ID); err != nil || n != `Volume "data" is 90 % full: 450 of 500 GB.` {
		t.Errorf("%q, %v", n, err)
	}
	if _, err := h.Notice(t.Context(), id.New()); !errors.Is(err, volume.ErrNotFound) {
		t.Error(err)
	}
}
