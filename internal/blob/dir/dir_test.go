package dir_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/clock"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

func open(t *testing.T, root string, c *clock.Manual) (*dir.Store, *httptest.Server) {
	t.Helper()
	s, err := dir.New(root, secret, c.Wall)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return s, srv
}

func TestContract(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blobtest.Subject {
		c := clock.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		s, srv := open(t, t.TempDir(), c)
		return blobtest.Subject{Store: s, Signer: s, Base: srv.URL, Now: c.Wall, Client: srv.Client()}
	})
}

func TestGrantEndsAtItsExpiryAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	c := clock.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	root := t.TempDir()
	s, _ := open(t, root, c)
	if err := s.Put(t.Context(), "v/k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	g, err := s.Sign(t.Context(), blob.Access{Key: "v/k", Expires: c.Wall().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	_, again := open(t, root, c)
	for _, step := range []struct {
		advance time.Duration
		status  int
	}{{0, 200}, {59 * time.Second, 200}, {time.Second, 403}} {
		c.Advance(step.advance)
		resp, err := again.Client().Get(again.URL + g.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != step.status {
			t.Errorf("after %v: status %d, want %d", step.advance, resp.StatusCode, step.status)
		}
	}
}

func TestAbandonedWritesAreSweptAndNeverSeen(t *testing.T) {
	t.Parallel()
	c := clock.Fixed(time.Now())
	root := t.TempDir()
	s, _ := open(t, root, c)
	tmp := filepath.Join(root, ".tmp", "put-1")
	if err := os.WriteFile(tmp, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.List(t.Context(), "", func(i blob.Info) error { t.Errorf("listed %s", i.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	open(t, root, c)
	if _, err := os.Stat(tmp); err != nil {
		t.Errorf("a fresh temporary file was swept: %v", err)
	}
	c.Advance(2 * time.Hour)
	open(t, root, c)
	if _, err := os.Stat(tmp); !os.IsNotExist(err) {
		t.Errorf("an old temporary file was kept: %v", err)
	}
}

func TestPathIsTheFolderOfAPrefix(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s, _ := open(t, root, clock.Fixed(time.Now()))
	if err := s.Put(t.Context(), "v/id/config", []byte("c")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(s.Path("v/id/"), "config")); err != nil || string(b) != "c" {
		t.Errorf("ReadFile = %q, %v", b, err)
	}
	if !filepath.IsAbs(s.Path("v/id")) || strings.HasSuffix(s.Path("v/id"), "/") {
		t.Errorf("Path = %s", s.Path("v/id"))
	}
}

func TestHeadTellsTheSize(t *testing.T) {
	t.Parallel()
	c := clock.Fixed(time.Now())
	s, srv := open(t, t.TempDir(), c)
	if err := s.Put(t.Context(), "v/k", make([]byte, 12345)); err != nil {
		t.Fatal(err)
	}
	g, err := s.Sign(t.Context(), blob.Access{Key: "v/k", Expires: c.Wall().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Head(srv.URL + g.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength != 12345 {
		t.Errorf("HEAD: status %d, %d bytes", resp.StatusCode, resp.ContentLength)
	}
}
