//go:build linux

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/snapshot"
)

func newTestStore(t *testing.T) (*node, *store) {
	t.Helper()
	n := newNode(t)
	c := newClient(Config{BaseURL: n.server.URL, Token: testToken})
	t.Cleanup(c.http.CloseIdleConnections)
	return n, newStore(t.Context(), c, clock.New(), 1)
}

func object(body []byte) snapshot.Object {
	return snapshot.Object{ID: sha256.Sum256(body), Kind: snapshot.KindData, Size: int64(len(body))}
}

// get reads a part through the store.
func get(t *testing.T, s *store, o snapshot.Object, offset, length int64) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), o.Kind, o.ID, offset, length)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	defer r.Close()
	return []byte(readAll(t, r))
}

func TestStoreMovesObjectsThroughFaults(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789"), 400<<10)
	tests := []struct {
		name  string
		fault func(n *node)
	}{
		{"no fault", func(*node) {}},
		{"the store fails for a while", func(n *node) { n.badStore = 4 }},
		{"an answer to sign is lost", func(n *node) { n.loseNext[agentapi.PathSign] = true }},
		{"bodies break off", func(n *node) { n.breakAt = 1 << 20 }},
		{"the store is elsewhere", func(n *node) { n.objectAt = n.server.URL }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, s := newTestStore(t)
			o := object(body)
			n.update(func() { tt.fault(n) })
			for range 2 { // the second time it is there already
				if err := s.Put(t.Context(), o, body); err != nil {
					t.Fatalf("put: %v", err)
				}
			}
			n.update(func() { tt.fault(n) })
			for _, part := range [][2]int64{{0, -1}, {5, -1}, {0, 10}, {1 << 20, 2 << 20}, {7, 0}} {
				want := body[part[0]:]
				if part[1] >= 0 {
					want = want[:part[1]]
				}
				if got := get(t, s, o, part[0], part[1]); !bytes.Equal(got, want) {
					t.Errorf("part %v: %d bytes, want %d", part, len(got), len(want))
				}
			}
		})
	}
}

func TestStoreTellsFaultsApart(t *testing.T) {
	t.Parallel()
	n, s := newTestStore(t)
	o := object([]byte("x"))
	if _, err := s.Get(t.Context(), o.Kind, o.ID, 0, -1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a missing object: %v", err)
	}
	if err := s.Put(t.Context(), o, []byte("y")); !errors.Is(err, blob.ErrChecksum) {
		t.Errorf("wrong bytes: %v", err)
	}
	for code, want := range map[string]error{agentapi.CodeQuota: ErrQuota, agentapi.CodeFenced: ErrFenced} {
		n.update(func() { n.refuse[agentapi.PathSign], n.code = http.StatusConflict, code })
		if err := s.Put(t.Context(), o, []byte("x")); !errors.Is(err, want) {
			t.Errorf("%s: %v", code, err)
		}
	}
	n.update(func() { clear(n.refuse); n.badStore = 1 << 30 })
	ctx, cancel := context.WithCancelCause(t.Context())
	n.update(func() { n.onObject = func(string) { cancel(ErrFenced) } })
	if err := s.Put(ctx, o, []byte("x")); !errors.Is(err, ErrFenced) {
		t.Errorf("ended while trying: %v", err)
	}
}

func TestSignsAreBatchedAndReadGrantsKept(t *testing.T) {
	t.Parallel()
	n, s := newTestStore(t)
	const count = 600
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			body := []byte(strconv.Itoa(i))
			if err := s.Put(t.Context(), object(body), body); err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	wg.Wait()
	n.mu.Lock()
	signs := n.signs
	n.mu.Unlock()
	if signs > count/4 {
		t.Errorf("%d calls of sign for %d objects", signs, count)
	}
	o := object([]byte("1"))
	for range 5 {
		get(t, s, o, 0, -1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.signs != signs+1 {
		t.Errorf("%d calls of sign for 5 reads of one object", n.signs-signs)
	}
}
