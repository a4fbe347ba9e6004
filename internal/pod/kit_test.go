package pod_test

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// userKey was made for these tests; nobody holds its private half.
const userKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG/Kc3/1tpfaWZ+oLKv8G4XEbsMUQMECdPnBaOQTIPZz"

// A memory is a blob store that can be told to fail.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	down    bool
	full    bool // it takes nothing more
}

func (m *memory) lock() (func(), error) {
	m.mu.Lock()
	if m.down {
		m.mu.Unlock()
		return nil, blob.ErrUnavailable
	}
	return m.mu.Unlock, nil
}

func (m *memory) Put(_ context.Context, key string, body []byte) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if m.full {
		return blob.ErrUnavailable
	}
	if _, ok := m.objects[key]; ok {
		return blob.ErrExists
	}
	m.objects[key] = bytes.Clone(body)
	return nil
}

func (m *memory) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	unlock, err := m.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
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
	unlock, err := m.lock()
	if err != nil {
		return blob.Info{}, err
	}
	defer unlock()
	body, ok := m.objects[key]
	if !ok {
		return blob.Info{}, blob.ErrNotFound
	}
	return blob.Info{Key: key, Size: int64(len(body))}, nil
}

func (m *memory) List(_ context.Context, prefix string, fn func(blob.Info) error) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(m.objects))
	unlock()
	for _, key := range keys {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if err := fn(blob.Info{Key: key}); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Purge(ctx context.Context, prefix string) error {
	var keys []string
	err := m.List(ctx, prefix, func(i blob.Info) error { keys = append(keys, i.Key); return nil })
	for _, key := range keys {
		err = errors.Join(err, m.Delete(ctx, key))
	}
	return err
}

func (m *memory) Delete(_ context.Context, key string) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	delete(m.objects, key)
	return nil
}

// Sign makes grants whose URL is the key itself.
func (m *memory) Sign(_ context.Context, a blob.Access) (blob.Grant, error) {
	return blob.Grant{Method: http.MethodGet, URL: a.Key, Header: http.Header{}}, nil
}

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memory) setFull(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// A harbour is the service with all it stands on: real but for the clouds, the
// agents and the store.
type harbour struct {
	*pod.Service
	t      testing.TB
	pool   *pgxpool.Pool
	clock  *clock.Manual
	jobs   *job.Recorder
	store  *memory
	wallet *wallet.Service
	vols   *volume.Service
	offers *offer.Service
	keys   *sshkey.Service
	a, b   *cloud
	hub    *pg.Hub
	limits pod.Limits

	refreshed time.Time // wall time of pass's last refresh
}

// newHarbour opens a harbour with two clouds of one equal offer each; that of a
// is the cheaper one.
func newHarbour(t testing.TB, change ...func(*pod.Limits)) *harbour {
	t.Helper()
	h := &harbour{
		t: t, pool: pgtest.New(t), clock: clock.Fixed(teamtest.Start), jobs: &job.Recorder{},
		store: &memory{objects: map[string][]byte{}},
		// The range is small: filling it costs each test its time.
		limits: pod.Limits{PortFirst: 20000, PortLast: 20099},
	}
	for _, c := range change {
		c(&h.limits)
	}
	h.a = newCloud(t, h.clock.Wall, h100("aurora", "a-1", 2_000_000))
	h.b = newCloud(t, h.clock.Wall, h100("borealis", "b-1", 2_000_000))
	h.b.mu = h.a.mu
	h.a.peers = []*cloud{h.a, h.b}
	h.b.peers = h.a.peers
	quiet := slog.New(slog.DiscardHandler)
	h.hub = pg.NewHub(h.pool, quiet)
	h.must(h.hub.Start(t.Context()))
	t.Cleanup(func() { h.must(h.hub.Stop(context.WithoutCancel(t.Context()))) })
	h.wallet = wallet.New(wallet.Deps{Pool: h.pool, Clock: h.clock.Clock, Logger: quiet})
	h.keys = sshkey.New(sshkey.Deps{
		Pool: h.pool, Clock: h.clock.Clock, Logger: quiet,
		OnDeleteTx: func(ctx context.Context, tx pgx.Tx, keyID uuid.UUID) error { return h.KeyGoneTx(ctx, tx, keyID) },
	})
	var err error
	h.offers, err = offer.New(offer.Deps{Pool: h.pool, Clock: h.clock.Clock, Logger: quiet, Adapters: h.adapters()})
	h.must(err)
	box, err := seal.New(make([]byte, seal.KeySize))
	h.must(err)
	h.vols = volume.New(volume.Deps{
		Pool: h.pool, Clock: h.clock.Clock, Logger: quiet, Box: box, Store: h.store, Signer: h.store, Wallet: h.wallet,
		OnCommitTx: func(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, final bool, at time.Time) error {
			return h.NoteCommitTx(ctx, tx, volumeID, podID, final, at)
		},
	})
	h.Service = h.node(box)
	h.must(h.offers.Refresh(t.Context()))
	return h
}

func (h *harbour) adapters() map[string]provider.Adapter {
	return map[string]provider.Adapter{"a": h.a, "b": h.b}
}

// node is one more process of the same installation.
func (h *harbour) node(box *seal.Box) *pod.Service {
	h.t.Helper()
	s := pod.New(pod.Deps{
		Pool: h.pool, Clock: h.clock.Clock, Jobs: h.jobs, Box: box, Logger: slog.New(slog.NewTextHandler(h.t.Output(), nil)),
		Wallet: h.wallet, Volumes: h.vols, Offers: h.offers, Keys: h.keys, Adapters: h.adapters(),
		Host: "localhost", AgentURL: "https://homeport.example", Limits: h.limits,
		Listen: h.hub.Subscribe, Notify: pg.NotifyTx,
	})
	h.must(s.Prepare(h.t.Context()))
	return s
}

func (h *harbour) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harbour) tx(fn func(tx pgx.Tx) error) {
	h.t.Helper()
	h.must(pg.InTx(h.t.Context(), h.pool, fn))
}

// advance lets time pass as a node lives it: with its beats.
func (h *harbour) advance(d time.Duration) {
	h.t.Helper()
	for d > 0 {
		step := min(d, 5*time.Second)
		h.clock.Advance(step)
		h.must(h.Beat(h.t.Context()))
		d -= step
	}
}

// work does every job and everything that is due, until nothing is.
func (h *harbour) work() {
	h.t.Helper()
	ctx := h.t.Context()
	for range 50 {
		jobs := h.jobs.Take()
		due, err := h.Sweep(ctx)
		h.must(err)
		ending, err := h.SweepInstances(ctx)
		h.must(err)
		if len(jobs)+len(due)+len(ending) == 0 {
			return
		}
		for _, j := range jobs {
			switch j := j.(type) {
			case pod.ReconcileJob:
				h.must(h.Reconcile(ctx, j.PodID))
			case pod.TerminateJob:
				h.must(h.Terminate(ctx, j.InstanceID))
			}
		}
		for _, podID := range due {
			h.must(h.Reconcile(ctx, podID))
		}
		for _, instanceID := range ending {
			h.must(h.Terminate(ctx, instanceID))
		}
	}
	h.t.Fatal("the work has no end")
}

// pass lets time pass with all background work of a node.
func (h *harbour) pass(d time.Duration) {
	h.t.Helper()
	for d > 0 {
		step := min(d, 5*time.Second)
		h.advance(step)
		if h.clock.Wall().Sub(h.refreshed) > time.Minute {
			h.must(h.offers.Refresh(h.t.Context()))
			h.refreshed = h.clock.Wall()
		}
		h.work()
		d -= step
	}
}

// team makes a team with a wallet.
func (h *harbour) team(plan team.Plan, amount money.USD) team.Scope {
	h.t.Helper()
	scope := teamtest.Admin(h.t, h.pool, plan)
	h.tx(func(tx pgx.Tx) error { return h.wallet.OpenTx(h.t.Context(), tx, scope.TeamID(), h.clock.Now()) })
	h.credit(scope, amount)
	return scope
}

func (h *harbour) credit(scope team.Scope, amount money.USD) {
	h.t.Helper()
	if amount == 0 {
		return
	}
	h.tx(func(tx pgx.Tx) error {
		key := id.New().String()
		_, err := h.wallet.CreditTx(h.t.Context(), tx, wallet.Credit{
			TeamID: scope.TeamID(), Amount: amount, Source: wallet.Test, Key: key, ReferenceID: key, At: h.clock.Now(),
		})
		return err
	})
}

// ask is a right wish for a pod on a new volume.
func (h *harbour) ask(scope team.Scope) pod.Create {
	h.t.Helper()
	h.must(h.offers.Refresh(h.t.Context())) // offers hide by themselves
	v, err := h.vols.Create(h.t.Context(), scope, "data", idem.Request{})
	h.must(err)
	k, err := h.keys.Create(h.t.Context(), scope, "laptop", userKey, idem.Request{})
	h.must(err)
	return pod.Create{
		VolumeID: v.ID, KeyID: k.ID, Offer: offer.TupleOf(h.a.offers[0]), Max: 2_600_000, Currency: "USD",
	}
}

// rent makes a pod, and does not work on it.
func (h *harbour) rent(scope team.Scope) *pod.Pod {
	h.t.Helper()
	p, err := h.Create(h.t.Context(), scope, h.ask(scope))
	h.must(err)
	return p
}

// find reads a pod again.
func (h *harbour) find(scope team.Scope, p *pod.Pod) *pod.Pod {
	h.t.Helper()
	p, err := h.Find(h.t.Context(), scope, p.ID)
	h.must(err)
	return p
}

// is fails the test unless the pod is in a status.
func (h *harbour) is(scope team.Scope, p *pod.Pod, want pod.Status) *pod.Pod {
	h.t.Helper()
	p = h.find(scope, p)
	if p.Status != want {
		h.t.Fatalf("the pod is %s (%s, %q), want %s", p.Status, p.StatusReason, p.StatusDetail, want)
	}
	return p
}

func (h *harbour) volume(scope team.Scope, p *pod.Pod) volume.Volume {
	h.t.Helper()
	v, err := h.vols.Find(h.t.Context(), scope, p.VolumeID)
	h.must(err)
	return v
}

// spent is what the team paid for pods so far: its wallet's rows of usage.
func (h *harbour) spent(scope team.Scope) money.USD {
	h.t.Helper()
	rows, _, err := h.wallet.Transactions(h.t.Context(), scope, h.clock.Now(), 1000, "")
	h.must(err)
	var sum money.USD
	for _, r := range rows {
		if r.ResourceType == wallet.PodRuntime {
			sum -= r.Amount
		}
	}
	return sum
}

// ok fails the test when a cloud saw two wanted machines of one pod at once.
func (h *harbour) ok() {
	h.t.Helper()
	for _, c := range []*cloud{h.a, h.b} {
		if len(c.doubled) > 0 {
			h.t.Errorf("two machines of one pod at once: %q", c.doubled)
		}
	}
}
