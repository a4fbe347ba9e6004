package volume_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
)

// weights are bytes that no compression makes smaller.
func weights(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

var usual = volume.Retention{Last: 3, Hours: 24, Days: 7}

// twoVersions makes a volume that two pods wrote, one after the other, and
// returns what each left.
func twoVersions(t *testing.T) (h *harbour, scope team.Scope, v volume.Volume, first, second map[string]string) {
	t.Helper()
	h, _, node := newNode(t)
	h.Retention = usual
	scope = h.team(team.Pro)
	v = h.create(scope)
	root, state := t.TempDir(), t.TempDir()
	p := h.bootPod(scope, v.ID, node)
	p.restoreTo(root, state)
	h.must(os.MkdirAll(filepath.Join(root, "runs/7"), 0o755))
	h.must(os.WriteFile(filepath.Join(root, "runs/7/model\xff.pt"), weights(6<<20), 0o644))
	h.must(os.WriteFile(filepath.Join(root, "train.py"), []byte("print(1)\n"), 0o644))
	p.sync(root, state)
	first = files(t, root)
	h.release(p.Attachment)

	h.clock.Advance(time.Minute)
	root, state = t.TempDir(), t.TempDir()
	p = h.bootPod(scope, v.ID, node)
	p.restoreTo(root, state)
	h.must(os.WriteFile(filepath.Join(root, "train.py"), []byte("print(2)\n"), 0o644))
	h.must(os.RemoveAll(filepath.Join(root, "runs")))
	h.must(os.WriteFile(filepath.Join(root, "new"), nil, 0o644))
	p.Attachment.Final = true
	p.sync(root, state)
	second = files(t, root)
	h.release(p.Attachment)
	h.clock.Advance(time.Minute)
	return h, scope, v, first, second
}

// node serves the harbour's store once more.
func (h *harbour) node(t testing.TB) *httptest.Server {
	t.Helper()
	node := httptest.NewServer(h.Store.(*dir.Store).Handler())
	t.Cleanup(node.Close)
	return node
}

// path is where a repository lies on this machine.
func (h *harbour) path(prefix string) string { return h.Store.(*dir.Store).Path(prefix) }

// contents reads a version as an archive.
func (h *harbour) contents(scope team.Scope, v volume.Volume, number string) map[string]string {
	h.t.Helper()
	o, err := h.OpenVersion(h.t.Context(), scope, v.ID, number)
	h.must(err)
	a, err := o.Archive(h.t.Context(), "")
	h.must(err)
	defer a.Close()
	var b bytes.Buffer
	h.must(a.WriteTo(h.t.Context(), &b))
	out := map[string]string{}
	for r := tar.NewReader(&b); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		h.must(err)
		if head.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			h.must(err)
			out[strings.TrimPrefix(head.Name, "workspace/")] = string(text)
		}
	}
}

// Both versions can be had without a pod, byte for byte.
func TestEachVersionIsReadWithoutAPod(t *testing.T) {
	t.Parallel()
	h, scope, v, first, second := twoVersions(t)
	versions, err := h.Versions(t.Context(), scope, v.ID)
	h.must(err)
	if len(versions) != 2 || versions[0].Seq != 2 || !versions[0].Newest || !versions[0].Final || versions[1].Newest || versions[1].Entries != 4 {
		t.Fatalf("listed %+v", versions)
	}
	if c := versions[0].Changes; c == nil || *c != (snapshot.Changes{Added: 1, Changed: 1, Removed: 1}) || versions[1].Changes != nil {
		t.Errorf("changes %+v", c)
	}
	for number, want := range map[string]map[string]string{"1": first, "2": second, "latest": second} {
		if diff := cmp.Diff(want, h.contents(scope, v, number)); diff != "" {
			t.Errorf("version %s: %.500s", number, diff)
		}
	}
	o, err := h.OpenVersion(t.Context(), scope, v.ID, "1")
	h.must(err)
	f, err := o.File(t.Context(), "runs/7/model\xff.pt")
	h.must(err)
	got, err := io.ReadAll(f)
	h.must(err)
	f.Close()
	if string(got) != first["runs/7/model\xff.pt"] {
		t.Errorf("read %d other bytes", len(got))
	}
	other := h.team(team.Pro)
	for _, number := range []string{"0", "3", "-1", "+1", "01", "1.0", "newest", ""} {
		if _, err := h.OpenVersion(t.Context(), scope, v.ID, number); !errors.Is(err, volume.ErrNoVersion) {
			t.Errorf("version %q: %v", number, err)
		}
		if _, err := h.OpenVersion(t.Context(), other, v.ID, number); !errors.Is(err, volume.ErrNotFound) {
			t.Errorf("another team's version %q: %v", number, err)
		}
	}
	if _, err := h.Versions(t.Context(), other, v.ID); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("another team's versions: %v", err)
	}
	h.must(h.Delete(t.Context(), scope, v.ID))
	if _, err := h.OpenVersion(t.Context(), scope, v.ID, "1"); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("a version from the trash: %v", err)
	}
}

// The next pod finds the restored version, a public tool takes it for the
// latest, the rate follows the size, and no version is lost by it.
func TestARestoredVersionIsWhatTheNextPodFinds(t *testing.T) {
	t.Parallel()
	h, scope, v, first, second := twoVersions(t)
	once := func() idem.Request {
		return idem.Request{Scope: "restore", Key: "k", BodyHash: []byte{1}, Wall: h.clock.Wall()}
	}
	epoch := h.find(scope, v.ID).Epoch
	for range 3 {
		got, err := h.RestoreVersion(t.Context(), scope, v.ID, "1", once())
		h.must(err)
		if got.Seq != 3 || !got.Newest || got.RestoredSeq == nil || *got.RestoredSeq != 1 || *got.RestoredBy != scope.UserID() {
			t.Errorf("restored %+v", got)
		}
	}
	// Without a key: what is the newest already is left alone.
	if got, err := h.RestoreVersion(t.Context(), scope, v.ID, "1", idem.Request{}); err != nil || got.Seq != 3 {
		t.Errorf("restored again: %+v, %v", got, err)
	}
	versions, err := h.Versions(t.Context(), scope, v.ID)
	h.must(err)
	if len(versions) != 3 || versions[0].Changes == nil || *versions[0].Changes != (snapshot.Changes{Added: 1, Changed: 1, Removed: 1}) {
		t.Errorf("listed %+v", versions)
	}
	now := h.find(scope, v.ID)
	if now.SizeBytes != versions[2].SizeBytes || now.HeadSeq != 3 || now.Epoch <= epoch {
		t.Errorf("the volume is %+v", now)
	}
	segments, err := h.Segments(t.Context(), scope, v.ID)
	h.must(err)
	if n := len(segments); n == 0 || segments[n-1].Rate != now.Rate() && segments[0].Rate != now.Rate() {
		t.Errorf("charged by %+v, the rate is %v", segments, now.Rate())
	}
	root := t.TempDir()
	p := h.bootPod(scope, v.ID, h.node(t))
	p.restoreTo(root, t.TempDir())
	if diff := cmp.Diff(first, files(t, root)); diff != "" {
		t.Errorf("the next pod finds %.500s", diff)
	}
	h.release(p.Attachment)
	if diff := cmp.Diff(second, h.contents(scope, v, "2")); diff != "" {
		t.Errorf("version 2 is %.500s", diff)
	}
	r, err := h.Repository(t.Context(), v.ID)
	h.must(err)
	if r.Head != snapshot.ID(versions[0].SnapshotID).String() {
		t.Errorf("head %s", r.Head)
	}
	restic(t, h.path(r.Path), r.Password, "check", "--read-data")
	target := t.TempDir()
	restic(t, h.path(r.Path), r.Password, "restore", "latest", "--target", target)
	if diff := cmp.Diff(first, files(t, filepath.Join(target, "workspace"))); diff != "" {
		t.Errorf("restic finds %.500s", diff)
	}
}

// A restore that may not be changes nothing, and says why.
func TestRestoresThatAreRefused(t *testing.T) {
	t.Parallel()
	h, admin, _, _, _ := twoVersions(t)
	creator, member, viewer := teamtest.Join(t, h.Pool, admin.TeamID(), team.Member), teamtest.Join(t, h.Pool, admin.TeamID(), team.Member), teamtest.Join(t, h.Pool, admin.TeamID(), team.Viewer)
	v := h.create(creator)
	a := h.boot2(creator, v)
	for name, tt := range map[string]struct {
		scope  team.Scope
		number string
		want   *fault.Error
		detail string
	}{
		"a viewer":         {viewer, "1", team.ErrForbidden, ""},
		"another member":   {member, "1", volume.ErrNotYours, "Only the person who created this volume or an admin can do this."},
		"another team":     {h.team(team.Pro), "1", volume.ErrNotFound, ""},
		"no such version":  {creator, "9", volume.ErrNoVersion, ""},
		"while it is used": {creator, "1", volume.ErrInUse, "A pod is using this volume. Delete the pod, then restore the version."},
		"used, by admin":   {admin, "1", volume.ErrInUse, ""},
	} {
		before := h.find(admin, v.ID)
		_, err := h.RestoreVersion(t.Context(), tt.scope, v.ID, tt.number, idem.Request{})
		if !errors.Is(err, tt.want) || tt.detail != "" && fault.Of(err).Detail != tt.detail {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if diff := cmp.Diff(before, h.find(admin, v.ID)); diff != "" {
			t.Errorf("%s changed %s", name, diff)
		}
	}
	h.release(a)
	h.must(h.tx(func(tx pgx.Tx) error { return h.FreezeTx(t.Context(), tx, admin.TeamID(), h.clock.Now()) }))
	if _, err := h.RestoreVersion(t.Context(), creator, v.ID, "1", idem.Request{}); !errors.Is(err, volume.ErrFrozen) {
		t.Errorf("while it is frozen: %v", err)
	}
	if _, err := h.OpenVersion(t.Context(), creator, v.ID, "1"); !errors.Is(err, volume.ErrFrozen) {
		t.Errorf("read while it is frozen: %v", err)
	}
	if versions, err := h.Versions(t.Context(), viewer, v.ID); err != nil || len(versions) != 1 {
		t.Errorf("a viewer sees %+v, %v", versions, err)
	}
}

// boot2 attaches a volume of the node's store, and commits once.
func (h *harbour) boot2(scope team.Scope, v volume.Volume) volume.Attachment {
	h.t.Helper()
	p := h.bootPod(scope, v.ID, h.node(h.t))
	root, state := h.t.TempDir(), h.t.TempDir()
	p.restoreTo(root, state)
	h.must(os.WriteFile(filepath.Join(root, "file"), []byte("text"), 0o644))
	p.sync(root, state)
	return p.Attachment
}

// Of a damaged file only that file is refused, clearly, and its place in the
// store is told to the operator.
func TestADamagedVersionIsToldClearly(t *testing.T) {
	t.Parallel()
	h, scope, v, _, _ := twoVersions(t)
	o, err := h.OpenVersion(t.Context(), scope, v.ID, "1")
	h.must(err)
	r, err := h.Repository(t.Context(), v.ID)
	h.must(err)
	largest, size := "", int64(0)
	h.must(filepath.WalkDir(h.path(r.Path)+"/data", func(path string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && !d.IsDir() && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	}))
	h.must(os.Remove(largest))
	if _, err := o.File(t.Context(), "runs/7/model\xff.pt"); !errors.Is(err, volume.ErrDamaged) || fault.Of(err).Kind != fault.Unavailable {
		t.Errorf("a file whose pack is gone: %v", err)
	}
	if nodes, _, err := o.List(t.Context(), "runs/7", 0, 10); err != nil || len(nodes) != 1 {
		t.Errorf("its folder: %v, %v", nodes, err)
	}
}

// A team has so many downloads at once, and gets each place back.
func TestDownloadsOfATeamAreCounted(t *testing.T) {
	t.Parallel()
	h, scope, v, _, _ := twoVersions(t)
	o, err := h.OpenVersion(t.Context(), scope, v.ID, "latest")
	h.must(err)
	for range 3 {
		var open []interface{ Close() }
		for range 2 {
			f, err := o.File(t.Context(), "train.py")
			h.must(err)
			a, err := o.Archive(t.Context(), "")
			h.must(err)
			open = append(open, f, a)
		}
		if _, err := o.File(t.Context(), "train.py"); !errors.Is(err, volume.ErrDownloads) || fault.Of(err).RetryAfter == 0 {
			t.Errorf("a fifth download: %v", err)
		}
		for _, d := range open {
			d.Close()
		}
		if _, err := o.File(t.Context(), "no such file"); !errors.Is(err, snapshot.ErrNoEntry) {
			t.Errorf("no such file: %v", err)
		}
	}
}
