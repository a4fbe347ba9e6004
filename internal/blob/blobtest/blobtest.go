// Package blobtest is the contract of blob.Store and blob.Signer as a test
// suite, to run on every store.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// A Subject is one store under test.
type Subject struct {
	Store  blob.Store
	Signer blob.Signer
	Base   string           // put before a grant's URL that begins with "/"
	Now    func() time.Time // the store's idea of the time
	Client *http.Client
}

// Run checks one store. open gives an empty store each time.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	tests := []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"PutGetStat", testPutGetStat},
		{"PutNeverOverwrites", testPutNeverOverwrites},
		{"ConcurrentPutsHaveOneWinner", testConcurrentPuts},
		{"ListIsOrderedAndWhole", testList},
		{"DeleteIsIdempotent", testDelete},
		{"PurgeLeavesNothingOfAPrefix", testPurge},
		{"BadKeysAreRefused", testBadKeys},
		{"GrantMovesAnObject", testGrant},
		{"GrantReadsRanges", testGrantRange},
		{"GrantedWriteIsBoundToItsBytes", testGrantBytes},
		{"GrantedWriteHappensOnce", testGrantOnce},
		{"GrantIsBoundToItsHeaders", testGrantHeaders},
		{"GrantIsBoundToKeyAndMethod", testGrantBinding},
		{"GrantExpires", testGrantExpires},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func testPutGetStat(t *testing.T, s Subject) {
	ctx := t.Context()
	body := []byte("hello, world")
	must(t, s.Store.Put(ctx, "v/1/data/ab/x", body))
	must(t, s.Store.Put(ctx, "v/1/empty", nil))
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "hello, world"}, {7, -1, "world"}, {0, 5, "hello"}, {7, 3, "wor"}, {7, 100, "world"}} {
		if got := read(t, s.Store, "v/1/data/ab/x", c.offset, c.length); got != c.want {
			t.Errorf("Get(%d, %d) = %q, want %q", c.offset, c.length, got, c.want)
		}
	}
	info, err := s.Store.Stat(ctx, "v/1/data/ab/x")
	must(t, err)
	if info.Key != "v/1/data/ab/x" || info.Size != int64(len(body)) {
		t.Errorf("Stat = %+v", info)
	}
	if info, err = s.Store.Stat(ctx, "v/1/empty"); err != nil || info.Size != 0 {
		t.Errorf("Stat of the empty object = %+v, %v", info, err)
	}
	for _, key := range []string{"v/1/none", "v/1/data/ab", "v/1"} {
		if _, err := s.Store.Stat(ctx, key); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Stat(%s) = %v, want ErrNotFound", key, err)
		}
		if _, err := s.Store.Get(ctx, key, 0, -1); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Get(%s) = %v, want ErrNotFound", key, err)
		}
	}
}

func testPutNeverOverwrites(t *testing.T, s Subject) {
	must(t, s.Store.Put(t.Context(), "k", []byte("first")))
	for _, body := range []string{"other", "first"} {
		if err := s.Store.Put(t.Context(), "k", []byte(body)); !errors.Is(err, blob.ErrExists) {
			t.Errorf("second Put = %v, want ErrExists", err)
		}
	}
	if got := read(t, s.Store, "k", 0, -1); got != "first" {
		t.Errorf("object became %q", got)
	}
}

func testConcurrentPuts(t *testing.T, s Subject) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var winners []string
	for i := range 8 {
		wg.Go(func() {
			body := strings.Repeat(string(rune('a'+i)), 10000)
			err := s.Store.Put(t.Context(), "race/k", []byte(body))
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, body)
			} else if !errors.Is(err, blob.ErrExists) {
				t.Errorf("Put = %v, want ErrExists", err)
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d writers won, want 1", len(winners))
	}
	if got := read(t, s.Store, "race/k", 0, -1); got != winners[0] {
		t.Error("the object is not the winner's")
	}
}

func testList(t *testing.T, s Subject) {
	keys := []string{"v/a-b", "v/a/1", "v/a/2", "v/ab/1", "v/b", "w/1"}
	for _, k := range keys {
		must(t, s.Store.Put(t.Context(), k, []byte(k)))
	}
	for prefix, want := range map[string][]string{
		"":     keys,
		"v/":   {"v/a-b", "v/a/1", "v/a/2", "v/ab/1", "v/b"},
		"v/a":  {"v/a-b", "v/a/1", "v/a/2", "v/ab/1"},
		"v/a/": {"v/a/1", "v/a/2"},
		"x/":   nil,
	} {
		var got []string
		must(t, s.Store.List(t.Context(), prefix, func(i blob.Info) error {
			if i.Size != int64(len(i.Key)) {
				t.Errorf("List(%q): size %d of %s", prefix, i.Size, i.Key)
			}
			got = append(got, i.Key)
			return nil
		}))
		if !slices.Equal(got, want) {
			t.Errorf("List(%q) = %v, want %v", prefix, got, want)
		}
	}
	stop := errors.New("stop")
	if err := s.Store.List(t.Context(), "", func(blob.Info) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("List = %v, want the callback's error", err)
	}
}

func testDelete(t *testing.T, s Subject) {
	must(t, s.Store.Put(t.Context(), "d/a/b", []byte("x")))
	must(t, s.Store.Delete(t.Context(), "d/a/b"))
	must(t, s.Store.Delete(t.Context(), "d/a/b"))
	if _, err := s.Store.Stat(t.Context(), "d/a/b"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Stat after Delete = %v, want ErrNotFound", err)
	}
	must(t, s.Store.Put(t.Context(), "d/a/b", []byte("y")))
}

func testPurge(t *testing.T, s Subject) {
	for _, k := range []string{"v/1/a", "v/1/data/ab/x", "v/10/a", "v/2"} {
		must(t, s.Store.Put(t.Context(), k, []byte(k)))
	}
	must(t, s.Store.Purge(t.Context(), "v/1/"))
	must(t, s.Store.Purge(t.Context(), "v/1/"))
	var left []string
	must(t, s.Store.List(t.Context(), "", func(i blob.Info) error { left = append(left, i.Key); return nil }))
	if want := []string{"v/10/a", "v/2"}; !slices.Equal(left, want) {
		t.Errorf("after Purge there are %v, want %v", left, want)
	}
}

func testBadKeys(t *testing.T, s Subject) {
	for _, key := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", "./a", strings.Repeat("k", 600)} {
		if err := s.Store.Put(t.Context(), key, []byte("x")); err == nil {
			t.Errorf("Put(%q) was accepted", key)
		}
		if _, err := s.Signer.Sign(t.Context(), blob.Access{Key: key, Expires: s.Now().Add(time.Minute)}); err == nil {
			t.Errorf("Sign(%q) was accepted", key)
		}
	}
}

func (s Subject) access(put bool, key string, body []byte) blob.Access {
	a := blob.Access{Key: key, Put: put, Expires: s.Now().Add(10 * time.Minute)}
	if put {
		sum := sha256.Sum256(body)
		a.SHA256, a.Size = sum[:], int64(len(body))
	}
	return a
}

// grant signs, lets edit change the grant, and sends the request.
func (s Subject) grant(t *testing.T, a blob.Access, body []byte, edit func(*blob.Grant)) (status int, answer string) {
	t.Helper()
	g, err := s.Signer.Sign(t.Context(), a)
	must(t, err)
	if edit != nil {
		edit(&g)
	}
	status, answer, err = s.send(t.Context(), g, body)
	must(t, err)
	return status, answer
}

func (s Subject) send(ctx context.Context, g blob.Grant, body []byte) (int, string, error) {
	url := g.URL
	if strings.HasPrefix(url, "/") {
		url = s.Base + url
	}
	var r io.Reader
	if g.Method == http.MethodPut {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, g.Method, url, r)
	if err != nil {
		return 0, "", err
	}
	for k, v := range g.Header {
		req.Header[k] = v
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s blob.Store, key string, offset, length int64) string {
	t.Helper()
	r, err := s.Get(t.Context(), key, offset, length)
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return string(b)
}

func want(t *testing.T, what string, got int, statuses ...int) {
	t.Helper()
	if !slices.Contains(statuses, got) {
		t.Errorf("%s: status %d, want %s", what, got, fmt.Sprint(statuses))
	}
}
