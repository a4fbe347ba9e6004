package volume_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/poly1305" //nolint:staticcheck // the repository format is built on it

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// A memory is a blob store that can be told to fail.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	fail    func(op, key string) error
}

func (m *memory) try(op, key string) error {
	if m.fail == nil {
		return nil
	}
	return m.fail(op, key)
}

func (m *memory) Put(_ context.Context, key string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.try("put", key); err != nil {
		return err
	}
	if _, ok := m.objects[key]; ok {
		return blob.ErrExists
	}
	m.objects[key] = bytes.Clone(body)
	return nil
}

func (m *memory) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.try("get", key); err != nil {
		return nil, err
	}
	body, ok := m.objects[key]
	if !ok {
		return nil, blob.ErrNotFound
	}
	body = body[min(offset, int64(len(body))):]
	if length >= 0 {
		body = body[:min(length, int64(len(body)))]
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

func (m *memory) Stat(_ context.Context, key string) (blob.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.try("stat", key); err != nil {
		return blob.Info{}, err
	}
	body, ok := m.objects[key]
	if !ok {
		return blob.Info{}, blob.ErrNotFound
	}
	return blob.Info{Key: key, Size: int64(len(body))}, nil
}

func (m *memory) List(_ context.Context, prefix string, fn func(blob.Info) error) error {
	for _, key := range m.keys(prefix) {
		if err := fn(blob.Info{Key: key}); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Purge(ctx context.Context, prefix string) error {
	for _, key := range m.keys(prefix) {
		if err := m.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.try("delete", key); err != nil {
		return err
	}
	delete(m.objects, key)
	return nil
}

// Sign makes grants whose URL is the key itself.
func (m *memory) Sign(_ context.Context, a blob.Access) (blob.Grant, error) {
	method := http.MethodGet
	if a.Put {
		method = http.MethodPut
	}
	return blob.Grant{Method: method, URL: a.Key, Header: http.Header{"X-Sha256": {hex.EncodeToString(a.SHA256)}}}, nil
}

func (m *memory) keys(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.objects)), func(k string) bool { return !strings.HasPrefix(k, prefix) })
}

func (m *memory) setFail(fail func(op, key string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// A harbour is a service with all it stands on.
type harbour struct {
	*volume.Service
	t      testing.TB
	clock  *clock.Manual
	store  *memory
	wallet *wallet.Service
	mu     sync.Mutex
	finals []uuid.UUID // pods of final snapshots that a sweep published
}

func newHarbour(t testing.TB) *harbour {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	h := &harbour{t: t, clock: clock.Fixed(teamtest.Start), store: &memory{objects: map[string][]byte{}}}
	pool := pgtest.New(t)
	h.wallet = wallet.New(wallet.Deps{Pool: pool, Clock: h.clock.Clock, Logger: slog.New(slog.DiscardHandler)})
	h.Service = volume.New(volume.Deps{
		Pool: pool, Clock: h.clock.Clock, Logger: slog.New(slog.DiscardHandler), Box: box,
		Store: h.store, Signer: h.store, Wallet: h.wallet,
		OnFinal: func(_ context.Context, _, podID uuid.UUID) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.finals = append(h.finals, podID)
			return nil
		},
	})
	return h
}

// team makes a team with a wallet of 100 USD.
func (h *harbour) team(plan team.Plan) team.Scope {
	h.t.Helper()
	scope := teamtest.Admin(h.t, h.Pool, plan)
	h.must(h.tx(func(tx pgx.Tx) error {
		if err := h.wallet.OpenTx(h.t.Context(), tx, scope.TeamID(), h.clock.Now()); err != nil {
			return err
		}
		_, err := h.wallet.CreditTx(h.t.Context(), tx, wallet.Credit{
			TeamID: scope.TeamID(), Amount: 100 * money.Dollar, Source: wallet.Test, Key: "test " + scope.TeamID().String(),
			ReferenceID: "test", Description: "Test", At: h.clock.Now(),
		})
		return err
	}))
	return scope
}

func (h *harbour) tx(fn func(tx pgx.Tx) error) error { return pg.InTx(h.t.Context(), h.Pool, fn) }

func (h *harbour) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harbour) create(scope team.Scope) volume.Volume {
	h.t.Helper()
	v, err := h.Create(h.t.Context(), scope, "data", idem.Request{})
	h.must(err)
	return v
}

func (h *harbour) find(scope team.Scope, volumeID uuid.UUID) volume.Volume {
	h.t.Helper()
	v, err := h.Find(h.t.Context(), scope, volumeID)
	h.must(err)
	return v
}

func (h *harbour) attach(scope team.Scope, volumeID uuid.UUID) (a volume.Attachment, err error) {
	err = h.tx(func(tx pgx.Tx) error {
		a, err = h.AttachTx(h.t.Context(), tx, scope, volumeID, id.New(), h.clock.Now())
		return err
	})
	return a, err
}

func (h *harbour) release(a volume.Attachment) {
	h.t.Helper()
	h.must(h.tx(func(tx pgx.Tx) error { return h.ReleaseTx(h.t.Context(), tx, a.VolumeID, a.PodID, h.clock.Now()) }))
}

func (h *harbour) restored(a volume.Attachment) {
	h.t.Helper()
	h.must(h.tx(func(tx pgx.Tx) error { return h.MarkRestoredTx(h.t.Context(), tx, a.VolumeID, a.Epoch) }))
}

// An agent plays the pod's side for one attachment, with an encoder of its own.
type agent struct {
	*harbour
	volume.Attachment
	encrypt, macK, macR []byte
	head                string
	at                  time.Time // of the last snapshot
	lie                 func(indexEntry map[string]any)
}

// boot attaches the volume and says that it is restored.
func (h *harbour) boot(scope team.Scope, volumeID uuid.UUID) *agent {
	h.t.Helper()
	a, err := h.attach(scope, volumeID)
	h.must(err)
	g, err := h.Grant(h.t.Context(), a, false)
	h.must(err)
	h.restored(a)
	var key struct {
		MAC     struct{ K, R []byte }
		Encrypt []byte
	}
	h.must(json.Unmarshal(g.Key, &key))
	ag := &agent{harbour: h, Attachment: a, encrypt: key.Encrypt, macK: key.MAC.K, macR: key.MAC.R, at: teamtest.Start}
	if g.Head != nil {
		ag.head, ag.at = g.Head.Snapshot, g.Head.Time
	}
	return ag
}

func (a *agent) seal(plain []byte) []byte {
	iv := make([]byte, 16)
	rand.Read(iv)
	block, err := aes.NewCipher(a.encrypt)
	a.must(err)
	text := make([]byte, len(plain))
	cipher.NewCTR(block, iv).XORKeyStream(text, plain)
	mac, err := aes.NewCipher(a.macK)
	a.must(err)
	var key [32]byte
	copy(key[:16], a.macR)
	mac.Encrypt(key[16:], iv)
	var tag [16]byte
	poly1305.Sum(&tag, text, &key)
	return slices.Concat(iv, text, tag[:])
}

// A draft is everything that one commit needs.
type draft struct {
	tree    string
	objects []agentapi.Object
	bodies  map[string][]byte
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (d *draft) add(kind agentapi.Kind, body []byte) string {
	o := agentapi.Object{ID: hash(body), Kind: kind, Size: int64(len(body))}
	d.objects = append(d.objects, o)
	d.bodies[o.ID] = body
	return o.ID
}

// draft makes a volume with one file that consists of blobs of these sizes.
// Their bytes are not there, only as many as a pack of such blobs has: the
// server reads trees and indexes only.
func (a *agent) draft(blobs ...int64) draft {
	d := draft{bodies: map[string][]byte{}}
	unique := id.Token()
	var content []string
	var dataEntries []map[string]any
	total := int64(0)
	for i, size := range blobs {
		name := hash([]byte(fmt.Sprint(unique, i)))
		content = append(content, name)
		entry := map[string]any{"id": name, "type": "data", "offset": 40 * i, "length": 40, "uncompressed_length": size}
		if a.lie != nil {
			a.lie(entry)
		}
		dataEntries = append(dataEntries, entry)
		total += size
	}
	if content == nil {
		content = []string{}
	}
	leaf := a.tree(map[string]any{"name": "file " + unique, "type": "file", "mode": 0o644, "size": total, "links": 1, "content": content})
	root := a.tree(map[string]any{"name": "workspace", "type": "dir", "mode": 0o755 | 1<<31, "subtree": hash(leaf)})
	d.tree = hash(root)
	leafSealed, rootSealed := a.seal(leaf), a.seal(root)
	treePack := d.add(agentapi.KindTree, slices.Concat(leafSealed, rootSealed, make([]byte, 36+2*37)))
	packs := []map[string]any{{"id": treePack, "blobs": []map[string]any{
		{"id": hash(leaf), "type": "tree", "offset": 0, "length": len(leafSealed)},
		{"id": hash(root), "type": "tree", "offset": len(leafSealed), "length": len(rootSealed)},
	}}}
	if len(blobs) > 0 {
		dataPack := d.add(agentapi.KindData, append([]byte(unique), make([]byte, len(blobs)*(40+41)+36-len(unique))...))
		packs = append(packs, map[string]any{"id": dataPack, "blobs": dataEntries})
	}
	index, err := json.Marshal(map[string]any{"packs": packs})
	a.must(err)
	d.add(agentapi.KindIndex, a.seal(index))
	return d
}

func (a *agent) tree(node map[string]any) []byte {
	b, err := json.Marshal(map[string]any{"nodes": []map[string]any{node}})
	a.must(err)
	return append(b, '\n')
}

// sign asks for grants to write the draft's objects.
func (a *agent) sign(d draft) (agentapi.Grants, error) {
	in := agentapi.Sign{Epoch: a.Epoch}
	for _, o := range d.objects {
		in.Ops = append(in.Ops, agentapi.Op{Put: true, Object: o})
	}
	return a.Sign(a.t.Context(), a.Attachment, in)
}

// upload signs and stores the draft's objects.
func (a *agent) upload(d draft) error {
	g, err := a.sign(d)
	if err != nil {
		return err
	}
	for i, grant := range g.Grants {
		if err := a.store.Put(a.t.Context(), grant.URL, d.bodies[d.objects[i].ID]); err != nil {
			return err
		}
	}
	return nil
}

// propose makes the commit of a draft on the head the agent knows, a second
// after it.
func (a *agent) propose(d draft) agentapi.Commit {
	snap := map[string]any{"time": a.at.Add(time.Second), "tree": d.tree, "paths": []string{"/workspace"}}
	if a.head != "" {
		snap["parent"] = a.head
	}
	return a.proposeSnapshot(d, snap)
}

func (a *agent) proposeSnapshot(d draft, snap map[string]any) agentapi.Commit {
	plain, err := json.Marshal(snap)
	a.must(err)
	stored := a.seal(plain)
	return agentapi.Commit{
		Epoch: a.Epoch, Parent: a.head, SnapshotID: hash(stored), Snapshot: stored, Tree: d.tree, Objects: d.objects,
	}
}

// commit uploads and commits a draft.
func (a *agent) commit(d draft) (agentapi.Committed, error) {
	a.t.Helper()
	a.must(a.upload(d))
	return a.send(a.propose(d))
}

// send commits, and learns the new head.
func (a *agent) send(c agentapi.Commit) (agentapi.Committed, error) {
	out, _, err := a.Commit(a.t.Context(), a.Attachment, c)
	if err == nil {
		a.head, a.at = out.Head.Snapshot, out.Head.Time
	}
	return out, err
}

var _ interface {
	blob.Store
	blob.Signer
} = (*memory)(nil)
