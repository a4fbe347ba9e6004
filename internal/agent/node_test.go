//go:build linux

package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/snapshot"
)

// node is a control plane of one volume, in memory. Its log is the outside
// world that tests assert from.
type node struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	welcome  agentapi.Welcome
	orders   agentapi.Orders
	objects  map[string][]byte // by kind/id
	commits  []agentapi.Commit // accepted ones
	restored int
	failed   []agentapi.Failed
	phases   []agentapi.Phase // as the heartbeats said them, without repetition
	leases   int
	last     agentapi.Lease
	hellos   []agentapi.Hello
	signs    int

	down     bool                // every call breaks off
	page     bool                // every call answers a gateway's page
	refuse   map[string]int      // path -> status, with code
	code     string              // of refuse
	loseNext map[string]bool     // path -> do it, but break off the answer
	badStore int                 // object requests that fail from here on
	breakAt  int                 // bytes after which an answer's body breaks off, once per request
	onObject func(method string) // before an object is moved
	objectAt string              // address of the store, when it is not the node's own
	bucket   *s3.Store           // nil: objects
}

const testToken = "token-of-the-test"

func newNode(t testing.TB) *node {
	t.Helper()
	key, err := snapshot.NewKey().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{
		t: t, changed: make(chan struct{}), objects: map[string][]byte{}, refuse: map[string]int{}, loseNext: map[string]bool{},
		orders: agentapi.Orders{Version: "0"},
		welcome: agentapi.Welcome{
			PodID: "0a1b2c3d-0000-4000-8000-000000000000", Hostname: "0a1b2c3d", HostKey: string(pem.EncodeToMemory(block)),
			Notice: "GPUs are simulated.", Phase: agentapi.PhaseMounting,
			Volume: agentapi.VolumeGrant{ID: "volume", Epoch: 1, Key: key, ChunkerKey: make([]byte, 32), QuotaBytes: 1 << 40},
		},
	}
	n.server = httptest.NewServer(n)
	t.Cleanup(func() {
		n.update(func() { n.down = true })
		n.server.CloseClientConnections()
		n.server.Close()
	})
	return n
}

// update changes the node and wakes who waits for it.
func (n *node) update(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.wake()
}

func (n *node) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// order gives new orders.
func (n *node) order(change func(o *agentapi.Orders)) {
	n.update(func() {
		change(&n.orders)
		v, _ := strconv.Atoi(n.orders.Version)
		n.orders.Version = strconv.Itoa(v + 1)
	})
}

func (n *node) command(c agentapi.Command) { n.order(func(o *agentapi.Orders) { o.Command = c }) }

// await waits until cond holds. It fails the test after a minute.
func (n *node) await(what string, cond func() bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	for {
		n.mu.Lock()
		ok, changed := cond(), n.changed
		n.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			n.mu.Lock()
			defer n.mu.Unlock()
			n.t.Fatalf("waited in vain for %s; phases %v, note %q, commits %d", what, n.phases, n.last.Note, len(n.commits))
		}
	}
}

func (n *node) awaitPhase(p agentapi.Phase) {
	n.t.Helper()
	n.await("phase "+string(p), func() bool { return slices.Contains(n.phases, p) })
}

// ServeHTTP answers the agent.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	down, page, status, code, onObject := n.down, n.page, n.refuse[r.URL.Path], n.code, n.onObject
	lose := n.loseNext[r.URL.Path]
	delete(n.loseNext, r.URL.Path)
	n.mu.Unlock()
	switch {
	case down:
		panic(http.ErrAbortHandler)
	case page:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>no such page</html>")
		return
	case status != 0:
		problem(w, status, code)
		return
	case strings.HasPrefix(r.URL.Path, agentapi.PathObject):
		if onObject != nil {
			onObject(r.Method)
		}
		n.serveObject(w, r)
		return
	case r.Header.Get("Authorization") != "Bearer "+testToken:
		problem(w, http.StatusUnauthorized, "no_such_token")
		return
	}
	answer, status, code := n.answer(r)
	if lose {
		panic(http.ErrAbortHandler)
	}
	if status != 0 {
		problem(w, status, code)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(agentapi.Problem{Status: status, Code: code, Detail: "No."})
}

func (n *node) answer(r *http.Request) (any, int, string) {
	switch r.URL.Path {
	case agentapi.PathHello:
		h := read[agentapi.Hello](r)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.hellos = append(n.hellos, h)
		n.wake()
		return n.welcome, 0, ""
	case agentapi.PathLease:
		return n.answerLease(r)
	case agentapi.PathSign:
		return n.answerSign(read[agentapi.Sign](r))
	case agentapi.PathCommit:
		return n.answerCommit(read[agentapi.Commit](r))
	case agentapi.PathRestored:
		n.update(func() { n.restored++ })
		return struct{}{}, 0, ""
	case agentapi.PathFailed:
		f := read[agentapi.Failed](r)
		n.update(func() { n.failed = append(n.failed, f) })
		return struct{}{}, 0, ""
	default:
		return nil, http.StatusNotFound, "not_found"
	}
}

func read[T any](r *http.Request) T {
	var v T
	_ = json.NewDecoder(r.Body).Decode(&v)
	return v
}

func (n *node) answerLease(r *http.Request) (any, int, string) {
	m := read[agentapi.Lease](r)
	n.update(func() {
		n.leases++
		n.last = m
		if len(n.phases) == 0 || n.phases[len(n.phases)-1] != m.Phase {
			n.phases = append(n.phases, m.Phase)
		}
	})
	hold, cancel := context.WithTimeout(r.Context(), time.Duration(m.WaitSeconds)*time.Second)
	defer cancel()
	for {
		n.mu.Lock()
		orders, changed, down := n.orders, n.changed, n.down
		refused, code := n.refuse[r.URL.Path], n.code
		n.mu.Unlock()
		if refused != 0 {
			return nil, refused, code
		}
		if orders.Version != m.Seen {
			return orders, 0, ""
		}
		if down {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-changed:
		case <-hold.Done():
			return orders, 0, ""
		}
	}
}

func (n *node) answerSign(m agentapi.Sign) (any, int, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signs++
	if m.Epoch != n.welcome.Volume.Epoch {
		return nil, http.StatusConflict, agentapi.CodeFenced
	}
	g := agentapi.Grants{ExpiresAt: time.Now().Add(time.Hour)}
	for _, op := range m.Ops {
		if n.bucket != nil {
			g.Grants = append(g.Grants, n.signBucket(op))
			continue
		}
		method := http.MethodGet
		if op.Put {
			method = http.MethodPut
		}
		url := n.objectAt + agentapi.PathObject + string(op.Object.Kind) + "/" + op.Object.ID
		g.Grants = append(g.Grants, agentapi.Grant{Method: method, URL: url, Header: map[string]string{"X-Granted": method}})
	}
	return g, 0, ""
}

// signBucket makes a grant of the S3 service.
func (n *node) signBucket(op agentapi.Op) agentapi.Grant {
	a := blob.Access{Key: "v/" + string(op.Object.Kind) + "/" + op.Object.ID, Put: op.Put, Size: op.Object.Size, Expires: time.Now().Add(time.Minute)}
	a.SHA256, _ = hex.DecodeString(op.Object.ID)
	g, err := n.bucket.Sign(n.t.Context(), a)
	if err != nil {
		n.t.Error(err)
	}
	header := map[string]string{}
	for name := range g.Header {
		header[name] = g.Header.Get(name)
	}
	return agentapi.Grant{Method: g.Method, URL: g.URL, Header: header}
}

// stored is the size of an object, -1 when it is not there.
func (n *node) stored(o agentapi.Object) int64 {
	if n.bucket == nil {
		return int64(len(n.objects[string(o.Kind)+"/"+o.ID]))
	}
	info, err := n.bucket.Stat(n.t.Context(), "v/"+string(o.Kind)+"/"+o.ID)
	if err != nil {
		return -1
	}
	return info.Size
}

func (n *node) answerCommit(m agentapi.Commit) (any, int, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	head := n.welcome.Volume.Head
	switch {
	case head != nil && head.Snapshot == m.SnapshotID: // repeated
		return agentapi.Committed{Head: *head}, 0, ""
	case m.Epoch != n.welcome.Volume.Epoch || n.restored == 0:
		return nil, http.StatusConflict, agentapi.CodeFenced
	case head == nil && m.Parent != "", head != nil && head.Snapshot != m.Parent:
		return nil, http.StatusConflict, agentapi.CodeParent
	}
	for _, o := range m.Objects {
		if n.stored(o) != o.Size {
			if n.bucket != nil { // it may be away
				return nil, http.StatusServiceUnavailable, "store_unavailable"
			}
			return nil, http.StatusUnprocessableEntity, "object_missing"
		}
		if o.Kind == agentapi.KindIndex {
			n.welcome.Volume.Indexes = append(n.welcome.Volume.Indexes, o)
		}
	}
	seq := int64(len(n.commits) + 1)
	n.welcome.Volume.Head = &agentapi.Head{Snapshot: m.SnapshotID, Tree: m.Tree, Seq: seq, Time: time.Now()}
	n.commits = append(n.commits, m)
	n.wake()
	return agentapi.Committed{Head: *n.welcome.Volume.Head}, 0, ""
}

func (n *node) serveObject(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, agentapi.PathObject)
	_, id, _ := strings.Cut(name, "/")
	body, _ := io.ReadAll(r.Body)
	n.mu.Lock()
	bad := n.badStore > 0
	if bad {
		n.badStore--
	}
	have, ok := n.objects[name]
	breakAt := n.breakAt
	n.mu.Unlock()
	switch {
	case bad:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("X-Granted") != r.Method || r.Header.Get("Authorization") != "":
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodGet && !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		var from, to int
		to = len(have)
		if h := r.Header.Get("Range"); h != "" {
			var last int
			if k, _ := fmt.Sscanf(h, "bytes=%d-%d", &from, &last); k == 2 {
				to = min(to, last+1)
			}
			w.Header().Set("Content-Length", strconv.Itoa(to-from))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", strconv.Itoa(to))
		}
		if breakAt > 0 && to-from > breakAt {
			_, _ = w.Write(have[from : from+breakAt])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(have[from:to])
	case ok:
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != id {
			problem(w, http.StatusBadRequest, "object_checksum")
			return
		}
		n.update(func() { n.objects[name] = body })
	}
}
