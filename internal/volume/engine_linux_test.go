package volume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// A pod moves objects as a real agent does: by grants, over HTTP.
type pod struct {
	*harbour
	volume.Attachment
	node  *httptest.Server
	key   snapshot.Key
	grant agentapi.VolumeGrant
}

// newNode makes a harbour whose objects lie in a folder that a node serves.
func newNode(t *testing.T) (*harbour, *dir.Store, *httptest.Server) {
	t.Helper()
	h := newHarbour(t)
	store, err := dir.New(t.TempDir(), []byte("0123456789abcdef"), h.clock.Wall)
	h.must(err)
	node := httptest.NewServer(store.Handler())
	t.Cleanup(node.Close)
	h.Store, h.Signer = store, store
	return h, store, node
}

func (h *harbour) bootPod(scope team.Scope, volumeID uuid.UUID, node *httptest.Server) *pod {
	h.t.Helper()
	a, err := h.attach(scope, volumeID)
	h.must(err)
	p := &pod{harbour: h, Attachment: a, node: node}
	p.grant, err = h.Grant(h.t.Context(), a, false)
	h.must(err)
	h.must(json.Unmarshal(p.grant.Key, &p.key))
	return p
}

func (p *pod) do(ctx context.Context, op agentapi.Op, body []byte, rng string) (*http.Response, error) {
	g, err := p.Sign(ctx, p.Attachment, agentapi.Sign{Epoch: p.Epoch, Ops: []agentapi.Op{op}})
	if err != nil {
		return nil, err
	}
	address := g.Grants[0].URL
	if strings.HasPrefix(address, "/") {
		address = p.node.URL + address
	}
	req, err := http.NewRequestWithContext(ctx, g.Grants[0].Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range g.Grants[0].Header {
		req.Header.Set(name, value)
	}
	if rng != "" {
		req.Header.Set("Range", rng)
	}
	return p.node.Client().Do(req)
}

func (p *pod) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	rng := ""
	if length >= 0 {
		rng = fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
	}
	res, err := p.do(ctx, agentapi.Op{Object: agentapi.Object{ID: id.String(), Kind: agentapi.Kind(kind)}}, nil, rng)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("get %s: %s", id, res.Status)
	}
	return res.Body, nil
}

func (p *pod) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	res, err := p.do(ctx, agentapi.Op{Put: true, Object: wire(o)}, body, "")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 && res.StatusCode != http.StatusPreconditionFailed {
		return fmt.Errorf("put %s: %s", o.ID, res.Status)
	}
	return nil
}

func wire(o snapshot.Object) agentapi.Object {
	return agentapi.Object{ID: o.ID.String(), Kind: agentapi.Kind(o.Kind), Size: o.Size}
}

func (p *pod) indexes() []snapshot.Object {
	p.t.Helper()
	var out []snapshot.Object
	for _, o := range p.grant.Indexes {
		id, err := snapshot.ParseID(o.ID)
		p.must(err)
		out = append(out, snapshot.Object{ID: id, Kind: snapshot.Kind(o.Kind), Size: o.Size})
	}
	return out
}

// headOf is the head as the engine reads it.
func (p *pod) headOf() *snapshot.Head {
	p.t.Helper()
	if p.grant.Head == nil {
		return nil
	}
	id, err := snapshot.ParseID(p.grant.Head.Snapshot)
	p.must(err)
	tree, err := snapshot.ParseID(p.grant.Head.Tree)
	p.must(err)
	return &snapshot.Head{Snapshot: id, Tree: tree, Time: p.grant.Head.Time}
}

// restoreTo restores the volume into root and reports it.
func (p *pod) restoreTo(root, state string) {
	p.t.Helper()
	if head := p.headOf(); head != nil {
		_, err := snapshot.Restore(p.t.Context(), snapshot.RestoreOptions{
			Objects: p, Key: p.key, Head: *head, Indexes: p.indexes(), Root: root, State: state,
		})
		p.must(err)
	}
	p.restored(p.Attachment)
}

// sync commits root as it is.
func (p *pod) sync(root, state string) agentapi.Committed {
	p.t.Helper()
	s, err := snapshot.NewSyncer(p.t.Context(), snapshot.SyncerOptions{
		Objects: p, Key: p.key, ChunkerKey: p.grant.ChunkerKey, Root: root, State: state, Head: p.headOf(),
		Indexes: p.indexes(), Hostname: "pod", Now: p.clock.Wall,
	})
	p.must(err)
	defer s.Close()
	c, err := s.Run(p.t.Context(), snapshot.RunOptions{})
	p.must(err)
	in := agentapi.Commit{
		Epoch: p.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String(),
		Final: p.Final, Skipped: c.Skipped, Unstable: c.Unstable,
	}
	if !c.Parent.IsZero() {
		in.Parent = c.Parent.String()
	}
	for _, o := range c.Objects {
		in.Objects = append(in.Objects, wire(o))
	}
	out, final, err := p.Commit(p.t.Context(), p.Attachment, in)
	p.must(err)
	if final != p.Final || out.SizeBytes != c.Bytes {
		p.t.Errorf("committed %+v as final %v; the engine saw %d bytes", out, final, c.Bytes)
	}
	return out
}

// What one pod wrote the next one finds, and a public tool too.
func TestVolumeMovesFromPodToPod(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	scope := h.team(team.Pro)
	v := h.create(scope)
	first, state := t.TempDir(), t.TempDir()
	p := h.bootPod(scope, v.ID, node)
	p.restoreTo(first, state)
	want := map[string]string{"a/train.py": "print(1)\n", "weights.bin": strings.Repeat("0123456789abcdef", 1<<17)}
	for name, text := range want {
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(first, name)), 0o755))
		h.must(os.WriteFile(filepath.Join(first, name), []byte(text), 0o644))
	}
	p.sync(first, state)
	h.release(p.Attachment)

	second, state := t.TempDir(), t.TempDir()
	p = h.bootPod(scope, v.ID, node)
	p.restoreTo(second, state)
	if diff := cmp.Diff(want, files(t, second)); diff != "" {
		t.Fatal(diff)
	}
	want["a/more.txt"] = "more\n"
	h.must(os.WriteFile(filepath.Join(second, "a/more.txt"), []byte("more\n"), 0o644))
	h.clock.Advance(time.Minute)
	p.Attachment.Final = true
	out := p.sync(second, state)
	h.release(p.Attachment)
	if got := h.find(scope, v.ID); got.SizeBytes != out.SizeBytes || got.CurrentlyUsed || got.HeadSeq != 2 {
		t.Errorf("%+v", got)
	}

	third := t.TempDir()
	p = h.bootPod(scope, v.ID, node)
	p.restoreTo(third, t.TempDir())
	if diff := cmp.Diff(want, files(t, third)); diff != "" {
		t.Error(diff)
	}
	r, err := h.Repository(t.Context(), v.ID)
	h.must(err)
	if r.Head != out.Head.Snapshot {
		t.Errorf("head %s, want %s", r.Head, out.Head.Snapshot)
	}
	restic(t, store.Path(r.Path), r.Password, "check", "--read-data")
	target := t.TempDir()
	restic(t, store.Path(r.Path), r.Password, "restore", "latest", "--target", target)
	if diff := cmp.Diff(want, files(t, filepath.Join(target, "workspace"))); diff != "" {
		t.Error(diff)
	}
}

// files returns what a folder holds, by path.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(name, ".homeport") {
			return err
		}
		text, err := os.ReadFile(path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// restic runs the public tool, the judge that is not ours.
func restic(t *testing.T, repository, password string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("restic")
	if err != nil {
		t.Fatal("restic is not installed: run scripts/need-tools")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it asks again for what is missing
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-r", repository, "--no-cache"}, args...)...)
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("restic %v: %v\n%s", args, err, out)
	}
}
