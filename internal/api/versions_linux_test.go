package api_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// An errand moves objects of one attachment by the service's own grants.
type errand struct {
	*town
	volume.Attachment
}

func (e errand) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	return e.store.Get(ctx, snapshot.ObjectKey("v/"+e.VolumeID.String(), kind, id), offset, length)
}

func (e errand) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	object := agentapi.Object{ID: o.ID.String(), Kind: agentapi.Kind(o.Kind), Size: o.Size}
	_, err := e.volumes.Sign(ctx, e.Attachment, agentapi.Sign{Epoch: e.Epoch, Ops: []agentapi.Op{{Put: true, Object: object}}})
	if err != nil {
		return err
	}
	err = e.store.Put(ctx, snapshot.ObjectKey("v/"+e.VolumeID.String(), o.Kind, o.ID), body)
	if errors.Is(err, blob.ErrExists) {
		return nil
	}
	return err
}

// write commits each folder as a version of a person's volume, and leaves the
// volume with the pod that wrote them.
func (w *town) write(p person, volumeID string, roots ...string) (release func()) {
	w.t.Helper()
	ctx := w.t.Context()
	var a volume.Attachment
	scope, err := team.New(team.Deps{Pool: w.pool, Clock: w.clock.Clock}).Authorize(ctx, w.people[p.token], uuid.MustParse(p.team), team.Use)
	w.must(err)
	w.must(pg.InTx(ctx, w.pool, func(tx pgx.Tx) (err error) {
		a, err = w.volumes.AttachTx(ctx, tx, scope, uuid.MustParse(volumeID), id.New(), w.clock.Now())
		if err != nil {
			return err
		}
		return w.volumes.MarkRestoredTx(ctx, tx, a.VolumeID, a.Epoch)
	}))
	e := errand{w, a}
	var head *snapshot.Head
	var indexes []snapshot.Object
	for _, root := range roots {
		g, err := w.volumes.Grant(ctx, a, false)
		w.must(err)
		var key snapshot.Key
		w.must(json.Unmarshal(g.Key, &key))
		s, err := snapshot.NewSyncer(ctx, snapshot.SyncerOptions{
			Objects: e, Key: key, ChunkerKey: g.ChunkerKey, Root: root, State: w.t.TempDir(), Head: head, Indexes: indexes,
			Hostname: "pod", Now: w.clock.Wall,
		})
		w.must(err)
		c, err := s.Run(ctx, snapshot.RunOptions{})
		w.must(err)
		in := agentapi.Commit{Epoch: a.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String()}
		if head != nil {
			in.Parent = head.Snapshot.String()
		}
		for _, o := range c.Objects {
			in.Objects = append(in.Objects, agentapi.Object{ID: o.ID.String(), Kind: agentapi.Kind(o.Kind), Size: o.Size})
			if o.Kind == snapshot.KindIndex {
				indexes = append(indexes, o)
			}
		}
		out, _, err := w.volumes.Commit(ctx, a, in)
		w.must(err)
		s.Close()
		head = &snapshot.Head{Snapshot: c.SnapshotID, Tree: c.Tree, Time: out.Head.Time}
		w.clock.Advance(time.Minute)
	}
	return func() {
		w.must(pg.InTx(ctx, w.pool, func(tx pgx.Tx) error {
			return w.volumes.ReleaseTx(ctx, tx, a.VolumeID, a.PodID, w.clock.Now())
		}))
	}
}

// random bytes that no compression makes smaller.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// A shelf is a volume with two versions, and what is in them.
type shelf struct {
	person
	volume string
	model  []byte // of the first version
}

func (w *town) shelf() shelf {
	w.t.Helper()
	s := shelf{person: w.move(10 * money.Dollar), model: random(9<<20 + 5)}
	s.volume = w.make(s.person, "/volumes", s.volumeBody())
	first, second := w.t.TempDir(), w.t.TempDir()
	put := func(root, name string, text []byte) {
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		w.must(os.WriteFile(filepath.Join(root, name), text, 0o644))
	}
	put(first, "runs/100%/model \xff\"ü.pt", s.model)
	put(first, "page.html", []byte("<script>alert(1)</script>"))
	w.must(os.Symlink("page.html", filepath.Join(first, "link")))
	put(second, "other", []byte("other"))
	w.write(s.person, s.volume, first, second)()
	return s
}

func (s shelf) path(rest string) string {
	sep := "?"
	if strings.Contains(rest, "?") {
		sep = "&"
	}
	return "/volumes/" + s.volume + "/versions" + rest + sep + "team_id=" + s.team
}

func TestVersionsAreListedAndBrowsed(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	var versions []struct {
		Version      int64
		Newest       bool
		Kind         string
		SizeBytes    int64   `json:"size_bytes"`
		PodID        *string `json:"pod_id"`
		RestoredFrom *int64  `json:"restored_from"`
		Added        *int64  `json:"files_added"`
		Removed      *int64  `json:"files_removed"`
	}
	w.is(w.call(s.token, "GET", s.path(""), ""), 200).json(t, &versions)
	if len(versions) != 2 || versions[0].Version != 2 || !versions[0].Newest || versions[0].PodID == nil || versions[0].Kind != "background" ||
		versions[0].Added == nil || *versions[0].Added != 1 || *versions[0].Removed != 3 || versions[1].Added != nil {
		t.Errorf("listed %+v", versions)
	}
	type entry struct {
		Name, Path, Type, Mode string
		Size                   int64
		Target                 *string
	}
	type folder struct {
		Version, Total int64
		Path           string
		Entries        []entry
	}
	var top, runs, last folder
	w.is(w.call(s.token, "GET", s.path("/1/files"), ""), 200).json(t, &top)
	if len(top.Entries) != 3 || top.Total != 3 || top.Entries[0].Type != "folder" || top.Entries[1].Type != "link" || *top.Entries[1].Target != "page.html" ||
		top.Entries[2].Size != 25 || top.Entries[2].Mode != "-rw-r--r--" {
		t.Errorf("listed %+v", top)
	}
	w.is(w.call(s.token, "GET", s.path("/1/files?path=runs"), ""), 200).json(t, &runs)
	if len(runs.Entries) != 1 || runs.Entries[0].Name != "100%" || runs.Entries[0].Path != "runs/100%25" {
		t.Fatalf("listed %+v", runs)
	}
	w.is(w.call(s.token, "GET", s.path("/1/files?path=runs%2F100%2525"), ""), 200).json(t, &last)
	if len(last.Entries) != 1 || last.Entries[0].Name != "model \uFFFD\"ü.pt" || last.Entries[0].Path != "runs/100%25/model %FF\"ü.pt" || last.Path != "runs/100%25" {
		t.Errorf("listed %+v", last)
	}
	var page folder
	w.is(w.call(s.token, "GET", s.path("/1/files?offset=1&limit=1"), ""), 200).json(t, &page)
	if len(page.Entries) != 1 || page.Entries[0].Name != "link" || page.Total != 3 {
		t.Errorf("the second page is %+v", page)
	}
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/3/files":                {404, "volume_version_not_found"},
		"/x/files":                {404, "volume_version_not_found"},
		"/1/files?path=no":        {404, "version_path"},
		"/1/files?path=page.html": {422, "version_not_folder"},
		"/1/files?path=%2525%25":  {422, "version_path_invalid"},
		"/1/files?limit=1001":     {422, "invalid_input"},
		"/1/files?offset=-1":      {422, "invalid_input"},
		"/1/file":                 {422, "version_not_file"},
		"/1/file?path=link":       {422, "version_not_file"},
		"/1/tar?path=page.html":   {422, "version_not_folder"},
		"/1/tar?path=..":          {404, "version_path"},
	} {
		w.problem(w.call(s.token, "GET", s.path(path), ""), want.status, want.code)
	}
}

// A file comes whole and in parts, under its own name, and as nothing that a
// browser would run.
func TestAFileIsDownloaded(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	path := s.path("/1/file?path=runs/100%2525/model+%25FF%22%C3%BC.pt")
	a := w.is(w.call(s.token, "GET", path, ""), 200)
	h := a.Header()
	if !bytes.Equal(a.Body.Bytes(), s.model) || h.Get("Content-Length") != "9437189" {
		t.Errorf("%d other bytes", a.Body.Len())
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || kind != "attachment" || params["filename"] != "model \uFFFD\"ü.pt" || !strings.Contains(h.Get("Content-Disposition"), `filename="model __`) {
		t.Errorf("%q is %q, %v", h.Get("Content-Disposition"), params, err)
	}
	page := w.is(w.call(s.token, "GET", s.path("/1/file?path=page.html"), ""), 200)
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Disposition": `attachment; filename="page.html"`,
		"Content-Security-Policy": "sandbox; default-src 'none'", "Cross-Origin-Resource-Policy": "same-origin", "Accept-Ranges": "bytes",
	} {
		if got := page.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	part := w.is(w.call(s.token, "GET", path, "", "Range", "bytes=5000000-5000099", "If-Range", h.Get("ETag")), 206)
	if !bytes.Equal(part.Body.Bytes(), s.model[5000000:5000100]) || part.Header().Get("Content-Range") != "bytes 5000000-5000099/9437189" {
		t.Errorf("a part: %d bytes, %v", part.Body.Len(), part.Header())
	}
	if tail := w.is(w.call(s.token, "GET", path, "", "Range", "bytes=-7"), 206); !bytes.Equal(tail.Body.Bytes(), s.model[len(s.model)-7:]) {
		t.Errorf("the end: %x", tail.Body)
	}
	w.is(w.call(s.token, "GET", path, "", "Range", "bytes=9437189-"), 416)
	w.is(w.call(s.token, "GET", path, "", "If-None-Match", h.Get("ETag")), 304)
	if head := w.is(w.call(s.token, "HEAD", path, ""), 200); head.Header().Get("Content-Length") != "9437189" {
		t.Errorf("HEAD says %v", head.Header())
	}
}

func TestAFolderIsDownloadedAsTar(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	for path, want := range map[string]struct {
		file  string
		names []string
	}{
		"":          {"data.tar", []string{"workspace/", "workspace/link", "workspace/page.html", "workspace/runs/", "workspace/runs/100%/", "workspace/runs/100%/model \xff\"ü.pt"}},
		"runs":      {"runs.tar", []string{"runs/", "runs/100%/", "runs/100%/model \xff\"ü.pt"}},
		"runs/100%": {"", nil},
	} {
		query := "?path=" + path
		if want.names == nil { // as it is listed
			query, want.file, want.names = "?path=runs/100%2525", "100_.tar\"; filename*=UTF-8''100%25.tar", []string{"100%/", "100%/model \xff\"ü.pt"}
		} else {
			want.file += `"`
		}
		a := w.is(w.call(s.token, "GET", s.path("/1/tar"+query), ""), 200)
		if got := a.Header().Get("Content-Disposition"); got != `attachment; filename="`+want.file || a.Header().Get("Content-Type") != "application/x-tar" {
			t.Errorf("%q, %q", got, a.Header().Get("Content-Type"))
		}
		var names []string
		for r := tar.NewReader(a.Body); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			w.must(err)
			names = append(names, h.Name)
			text, err := io.ReadAll(r)
			w.must(err)
			if strings.HasSuffix(h.Name, ".pt") && !bytes.Equal(text, s.model) {
				t.Errorf("%q has %d other bytes", h.Name, len(text))
			}
		}
		if !slices.Equal(names, want.names) {
			t.Errorf("the archive has %q", names)
		}
		if head := w.is(w.call(s.token, "HEAD", s.path("/1/tar"+query), ""), 200); head.Body.Len() != 0 {
			t.Errorf("HEAD has %d bytes", head.Body.Len())
		}
	}
}

// A plain link downloads with the cookie that the session asked for, and the
// cookie opens nothing else.
func TestAPlainLinkDownloads(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	a := w.is(w.call(s.token, "POST", "/volumes/downloads", ""), 204)
	set := a.Result().Cookies()
	if len(set) != 1 || !set[0].HttpOnly || set[0].SameSite != http.SameSiteStrictMode || set[0].Path != "/volumes" || set[0].MaxAge != 900 {
		t.Fatalf("set %v", a.Header()["Set-Cookie"])
	}
	cookie := set[0].Name + "=" + set[0].Value
	w.is(w.call("", "GET", s.path("/1/file?path=page.html"), "", "Cookie", cookie), 200)
	w.is(w.call("", "GET", s.path("/1/tar"), "", "Cookie", cookie), 200)
	for _, other := range []struct{ method, path string }{
		{"GET", s.path("")}, {"GET", s.path("/1/files")}, {"POST", s.path("/1/restore")}, {"GET", "/user/info"}, {"POST", "/volumes/downloads"},
	} {
		w.problem(w.call("", other.method, other.path, "", "Cookie", cookie), 401, "no_session")
	}
	w.problem(w.call("", "GET", s.path("/1/tar"), "", "Cookie", set[0].Name+"=forged"), 401, "bad_jwt")
	stranger := w.move(0)
	w.problem(w.call("", "GET", s.path("/1/tar"), "", "Cookie", set[0].Name+"="+stranger.token), 404, "team_not_found")
	w.problem(w.call(stranger.token, "GET", s.path("/1/tar"), "", "Cookie", cookie), 404, "team_not_found")
}

func TestAVersionIsRestored(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	release := w.write(s.person, s.volume)
	p := w.problem(w.call(s.token, "POST", s.path("/1/restore"), ""), 409, "volume_in_use")
	if p.Detail != "A pod is using this volume. Delete the pod, then restore the version." {
		t.Errorf("refused with %q", p.Detail)
	}
	release()
	w.problem(w.call(s.token, "POST", s.path("/7/restore"), ""), 404, "volume_version_not_found")
	for range 2 {
		var made struct {
			Version      int64
			Newest       bool
			Kind         string
			RestoredFrom *int64  `json:"restored_from"`
			PodID        *string `json:"pod_id"`
		}
		w.is(w.call(s.token, "POST", s.path("/1/restore"), "", "Idempotency-Key", "k"), 200).json(t, &made)
		if made.Version != 3 || !made.Newest || made.Kind != "restored" || *made.RestoredFrom != 1 || made.PodID != nil {
			t.Errorf("made %+v", made)
		}
	}
	if got := w.is(w.call(s.token, "GET", s.path("/latest/file?path=page.html"), ""), 200).Body.String(); got != "<script>alert(1)</script>" {
		t.Errorf("the newest has %q", got)
	}
	elsewhere := strings.Replace(s.path("/1/restore"), s.team, w.found(s.person), 1)
	w.problem(w.call(s.token, "POST", elsewhere, "", "Idempotency-Key", "k"), 422, "idempotency_mismatch")
	w.problem(w.call(s.token, "POST", s.path("/2/restore"), "", "Idempotency-Key", strings.Repeat("k", 256)), 422, "")
}

// Damage that is seen early is told, damage in the middle breaks the
// connection: half a file never looks whole.
func TestDamageIsNeverDownloaded(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	s := w.shelf()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.h.ServeHTTP(rw, r) }))
	t.Cleanup(server.Close)
	largest, size := "", int64(0)
	w.must(filepath.WalkDir(w.store.Path("v/"+s.volume+"/data"), func(path string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && !d.IsDir() && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	}))
	stored, err := os.ReadFile(largest)
	w.must(err)
	file := s.path("/1/file?path=runs/100%2525/model+%25FF%22%C3%BC.pt")
	stored[len(stored)-2<<20] ^= 1
	w.must(os.WriteFile(largest, stored, 0o600))
	for _, path := range []string{file, s.path("/1/tar")} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		w.must(err)
		r.Header.Set("Authorization", "Bearer "+s.token)
		res, err := server.Client().Do(r)
		w.must(err)
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || err == nil || len(got) >= len(s.model) {
			t.Errorf("%s: %d, %d bytes, %v", path, res.StatusCode, len(got), err)
		}
	}
	if !strings.Contains(w.log.String(), "an archive broke off") {
		t.Error("the operator was not told")
	}
	w.must(os.Remove(largest))
	p := w.problem(w.call(s.token, "GET", file, ""), 503, "volume_version_damaged")
	if !strings.Contains(p.Detail, "damaged") {
		t.Errorf("it says %q", p.Detail)
	}
}
