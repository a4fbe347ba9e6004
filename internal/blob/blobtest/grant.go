package blobtest

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
)

const key = "v/0b5e9c1e-0000-4000-8000-000000000001/data/ab/object"

func testGrant(t *testing.T, s Subject) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	status, _ := s.grant(t, s.access(true, key, body), body, nil)
	want(t, "PUT", status, http.StatusOK)
	status, got := s.grant(t, s.access(false, key, nil), nil, nil)
	want(t, "GET", status, http.StatusOK)
	if got != string(body) {
		t.Errorf("GET gave %d bytes, not the %d that were put", len(got), len(body))
	}
	if got := read(t, s.Store, key, 0, -1); got != string(body) {
		t.Error("Get differs from what the grant wrote")
	}
	status, _ = s.grant(t, s.access(false, key+"-none", nil), nil, nil)
	want(t, "GET of nothing", status, http.StatusNotFound)
}

func testGrantRange(t *testing.T, s Subject) {
	must(t, s.Store.Put(t.Context(), key, []byte("0123456789")))
	for header, part := range map[string]string{"bytes=2-4": "234", "bytes=7-": "789", "bytes=5-100": "56789"} {
		status, got := s.grant(t, s.access(false, key, nil), nil, func(g *blob.Grant) { g.Header.Set("Range", header) })
		want(t, header, status, http.StatusPartialContent)
		if got != part {
			t.Errorf("%s gave %q, want %q", header, got, part)
		}
	}
}

// hungUp says whether a service ended a connection before it had heard all of
// what it refuses; its answer is then lost, or was never given.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func testGrantBytes(t *testing.T, s Subject) {
	body := []byte("the promised bytes")
	for name, sent := range map[string][]byte{
		"other bytes":  []byte("the promised bytez"),
		"more bytes":   []byte("the promised bytes!"),
		"fewer bytes":  []byte("the promised byte"),
		"no bytes":     {},
		"nothing like": bytes.Repeat([]byte("x"), 1<<20),
	} {
		g, err := s.Signer.Sign(t.Context(), s.access(true, key, body))
		must(t, err)
		status, _, err := s.send(t.Context(), g, sent)
		if len(sent) > len(body) && hungUp(err) {
			continue
		}
		must(t, err)
		want(t, name, status, http.StatusBadRequest, http.StatusForbidden, http.StatusLengthRequired)
	}
	if _, err := s.Store.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after refused writes Stat = %v, want ErrNotFound", err)
	}
	status, _ := s.grant(t, s.access(true, key, body), body, nil)
	want(t, "the promised bytes", status, http.StatusOK)
	large := s.access(true, key+"-large", body)
	large.Size = 64<<20 + 1
	if _, err := s.Signer.Sign(t.Context(), large); err == nil {
		t.Error("a write of more than 64 MiB was granted")
	}
}

func testGrantOnce(t *testing.T, s Subject) {
	body := []byte("once")
	a := s.access(true, key, body)
	status, _ := s.grant(t, a, body, nil)
	want(t, "first PUT", status, http.StatusOK)
	status, _ = s.grant(t, a, body, nil)
	want(t, "second PUT", status, http.StatusPreconditionFailed)
	other := []byte("two")
	status, _ = s.grant(t, s.access(true, key, other), other, nil)
	want(t, "PUT of other bytes", status, http.StatusPreconditionFailed)
	if got := read(t, s.Store, key, 0, -1); got != "once" {
		t.Errorf("the object became %q", got)
	}
}

func testGrantHeaders(t *testing.T, s Subject) {
	body := []byte("bytes")
	g, err := s.Signer.Sign(t.Context(), s.access(true, key, body))
	must(t, err)
	for name := range g.Header {
		status, _ := s.grant(t, s.access(true, key, body), body, func(g *blob.Grant) { g.Header.Del(name) })
		want(t, "without "+name, status, http.StatusForbidden, http.StatusBadRequest)
	}
	if _, err := s.Store.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after refused writes Stat = %v, want ErrNotFound", err)
	}
}

func testGrantBinding(t *testing.T, s Subject) {
	body := []byte("mine")
	must(t, s.Store.Put(t.Context(), key, body))
	must(t, s.Store.Put(t.Context(), key+"2", []byte("theirs")))
	otherKey := func(g *blob.Grant) { g.URL = strings.Replace(g.URL, "object", "object2", 1) }
	method := func(m string) func(*blob.Grant) { return func(g *blob.Grant) { g.Method = m } }
	read, write := s.access(false, key, nil), s.access(true, key+"3", body)
	for _, c := range []struct {
		name   string
		access blob.Access
		edit   func(*blob.Grant)
	}{
		{"read of another key", read, otherKey},
		{"write by a read grant", read, method(http.MethodPut)},
		{"delete by a read grant", read, method(http.MethodDelete)},
		{"post by a read grant", read, method(http.MethodPost)},
		{"read by a write grant", write, method(http.MethodGet)},
		{"delete by a write grant", write, method(http.MethodDelete)},
		{"write of another key", write, func(g *blob.Grant) { g.URL = strings.Replace(g.URL, "object3", "object4", 1) }},
		{"no signature", read, func(g *blob.Grant) { g.URL, _, _ = strings.Cut(g.URL, "?") }},
		{"broken signature", read, func(g *blob.Grant) { g.URL = flipLast(g.URL) }},
	} {
		status, _ := s.grant(t, c.access, body, c.edit)
		want(t, c.name, status, http.StatusForbidden, http.StatusMethodNotAllowed)
	}
	for _, k := range []string{key + "3", key + "4"} {
		if _, err := s.Store.Stat(t.Context(), k); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Stat(%s) = %v, want ErrNotFound", k, err)
		}
	}
	must(t, statOnly(t, s))
}

func statOnly(t *testing.T, s Subject) error {
	_, err := s.Store.Stat(t.Context(), key)
	return err
}

// flipLast changes a character in the middle of the last query value.
func flipLast(url string) string {
	i := len(url) - 10
	c := byte('A')
	if url[i] == c {
		c = 'B'
	}
	return url[:i] + string(c) + url[i+1:]
}

func testGrantExpires(t *testing.T, s Subject) {
	must(t, s.Store.Put(t.Context(), key, []byte("x")))
	for _, put := range []bool{false, true} {
		a := s.access(put, key, []byte("x"))
		if put {
			a.Key += "-new"
		}
		a.Expires = s.Now().Add(-time.Minute)
		g, err := s.Signer.Sign(t.Context(), a)
		if err != nil {
			continue // refusing to sign is as good
		}
		status, _, err := s.send(t.Context(), g, []byte("x"))
		must(t, err)
		want(t, "expired grant", status, http.StatusForbidden)
	}
}
