package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
)

func config(server *blobtest.Server, prefix string) s3.Config {
	return s3.Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket, Prefix: prefix,
		KeyID: server.KeyID, Secret: server.Secret, PathStyle: true, Wall: clock.New().Wall,
	}
}

func open(t *testing.T, c s3.Config) *s3.Store {
	t.Helper()
	s, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// prefixOf is a folder of the bucket for one test.
func prefixOf(t *testing.T) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
}

func TestContract(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, false)
	blobtest.Run(t, func(t *testing.T) blobtest.Subject {
		s := open(t, config(server, prefixOf(t)))
		return blobtest.Subject{Store: s, Signer: s, Now: clock.New().Wall, Client: http.DefaultClient}
	})
}

func TestProbeFindsWhatTheServiceEnforces(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, false)
	s := open(t, config(server, "a/b"))
	found, err := s.Probe(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if want := (s3.Features{Conditional: true, Checksum: true}); found != want {
		t.Errorf("found %+v, want %+v", found, want)
	}
	if err := s.List(t.Context(), "", func(i blob.Info) error { t.Errorf("the probe left %s", i.Key); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestProbeSaysWhyTheServiceRefuses(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, false)
	for name, one := range map[string]struct {
		change func(c *s3.Config)
		want   string
	}{
		"secret": {func(c *s3.Config) { c.Secret = "another" }, "SignatureDoesNotMatch"},
		"key":    {func(c *s3.Config) { c.KeyID = "nobody" }, "access key"},
		"bucket": {func(c *s3.Config) { c.Bucket = "no-such-bucket" }, "make the bucket first"},
		"region": {func(c *s3.Config) { c.Region = "mars-1" }, "mars-1"},
		"clock": {func(c *s3.Config) {
			c.Wall = func() time.Time { return time.Now().Add(-time.Hour) }
		}, "expired"},
	} {
		c := config(server, "")
		one.change(&c)
		_, err := open(t, c).Probe(t.Context(), "one")
		if !errors.Is(err, s3.ErrRefused) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(one.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "X-Amz-Signature=") || strings.Contains(err.Error(), server.Secret)) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
	}
}

// A version that a service moves between its listing and its deletion is looked
// for again; one that it refuses for good is an error.
func TestPurgeLooksAgainForAMovedVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refusals, left int }{"moved": {1, 0}, "refused for good": {100, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			refused, left := 0, 1
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch q := r.URL.Query(); {
				case q.Has("versions") && left > 0:
					fmt.Fprint(w, `<R><Version><Key>v/1/a</Key><VersionId>one</VersionId></Version></R>`)
				case r.Method == http.MethodGet:
					fmt.Fprint(w, `<R></R>`)
				case refused < c.refusals:
					refused++
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(w, `<Error><Code>InvalidArgument</Code><Message>Invalid version id specified</Message></Error>`)
				default:
					left--
					w.WriteHeader(http.StatusNoContent)
				}
			}))
			t.Cleanup(server.Close)
			s := open(t, s3.Config{Endpoint: server.URL, Region: "r", Bucket: "volumes", KeyID: "key", Secret: liarSecret, PathStyle: true, Wall: clock.New().Wall})
			s.Use(s3.Features{Versions: true})
			err := s.Purge(t.Context(), "v/1/")
			if left != c.left || (err != nil) != (c.left > 0) || err != nil && !strings.Contains(err.Error(), "Invalid version id") {
				t.Errorf("%d left, %v; want %d left", left, err, c.left)
			}
		})
	}
}

// In a bucket with versions what is deleted stays as an old version, for those
// who restore a backup of the database; of what is purged nothing stays.
func TestVersionsStayUntilTheyArePurged(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, true)
	s := open(t, config(server, "hp"))
	ctx := t.Context()
	found, err := s.Probe(ctx, "one")
	if err != nil || !found.Versions {
		t.Fatalf("found %+v, %v", found, err)
	}
	if left := server.Versions(""); len(left) > 0 {
		t.Errorf("the probe left %v", left)
	}
	s.Use(found)
	for _, key := range []string{"v/1/a", "v/1/b", "v/10/a"} {
		if err := s.Put(ctx, key, []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(ctx, "v/1/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, "v/1/a"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Stat of what was deleted: %v, want ErrNotFound", err)
	}
	old := server.Versions("hp/v/1/a")
	if len(old) != 2 || old[0].Mark || string(server.ReadVersion(old[0])) != "first" || !old[1].Mark {
		t.Errorf("of what was deleted there is %v, want its version and a mark", old)
	}
	if err := s.Put(ctx, "v/1/a", []byte("again")); err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(ctx, "v/1/"); err != nil {
		t.Fatal(err)
	}
	if left := server.Versions("hp/v/1/"); len(left) > 0 {
		t.Errorf("of what was purged there is %v", left)
	}
	if left := server.Versions("hp/v/10/"); len(left) != 1 {
		t.Errorf("of what was not purged there is %v, want 1 version", left)
	}
}

// A flaky is a way to the service on which things go wrong.
type flaky struct {
	mu   sync.Mutex
	log  []string
	next []func(req *http.Request) (*http.Response, error) // what becomes of the next requests; nil: they go through
}

var errBroken = errors.New("the connection broke")

func (f *flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.log = append(f.log, req.Method+" "+req.Header.Get("Range"))
	var do func(req *http.Request) (*http.Response, error)
	if len(f.next) > 0 {
		do, f.next = f.next[0], f.next[1:]
	}
	f.mu.Unlock()
	if do == nil {
		return http.DefaultTransport.RoundTrip(req)
	}
	return do(req)
}

func status(code int) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}, nil
	}
}

func broken(*http.Request) (*http.Response, error) { return nil, errBroken }

// lost does what is asked and loses the answer.
func lost(req *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_ = res.Body.Close()
	}
	return nil, errBroken
}

// torn lets n bytes of the answer through.
func torn(n int64) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		res, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			res.Body = &tearing{ReadCloser: res.Body, left: n}
		}
		return res, err
	}
}

type tearing struct {
	io.ReadCloser
	left int64
}

func (r *tearing) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.ReadCloser.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

func TestAFailingServiceIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, false)
	way := &flaky{}
	c := config(server, "")
	c.Transport = way
	s := open(t, c)
	ctx := t.Context()
	body := bytes.Repeat([]byte("0123456789"), 10000)
	script := func(next ...func(*http.Request) (*http.Response, error)) {
		way.mu.Lock()
		defer way.mu.Unlock()
		way.next, way.log = next, nil
	}
	script(status(503), broken, status(409))
	if err := s.Put(ctx, "a", body); err != nil {
		t.Errorf("Put through faults: %v", err)
	}
	script(lost)
	if err := s.Put(ctx, "b", body); err != nil {
		t.Errorf("Put whose answer was lost: %v", err)
	}
	script(lost)
	if err := s.Put(ctx, "a", []byte("other")); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Put over another object, the answer lost: %v", err)
	}
	script(status(500), torn(777), torn(1000), broken)
	r, err := s.Get(ctx, "a", 5, -1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	_ = r.Close()
	if err != nil || !bytes.Equal(got, body[5:]) {
		t.Errorf("Get through breaks gave %d bytes, %v", len(got), err)
	}
	if last := way.log[len(way.log)-1]; last != "GET bytes=1782-99999" {
		t.Errorf("the last request was %q: the rest was not asked for", last)
	}
	for name, call := range map[string]func() error{
		"Stat":   func() error { _, err := s.Stat(ctx, "a"); return err },
		"Get":    func() error { _, err := s.Get(ctx, "a", 0, -1); return err },
		"Put":    func() error { return s.Put(ctx, "c", body) },
		"List":   func() error { return s.List(ctx, "", func(blob.Info) error { return nil }) },
		"Delete": func() error { return s.Delete(ctx, "a") },
	} {
		script(broken, broken, broken, broken, broken)
		if err := call(); !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("%s of a service that is away: %v, want ErrUnavailable", name, err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := func() error { _, err := s.Stat(ended, "a"); return err }(); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that was called off: %v", err)
		}
	}
}

// A service that comes back after kill -9 has what it confirmed.
func TestKilledServiceKeepsWhatItConfirmed(t *testing.T) {
	t.Parallel()
	server := blobtest.NewServer(t, false)
	s := open(t, config(server, ""))
	var mu sync.Mutex
	confirmed := map[string][]byte{}
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					key := strings.Join([]string{"v", string(rune('a' + round)), string(rune('a' + w)), strings.Repeat("x", i+1)}, "/")
					body := bytes.Repeat([]byte{byte(i), byte(w)}, 100<<10)
					if s.Put(ctx, key, body) == nil {
						mu.Lock()
						confirmed[key] = body
						mu.Unlock()
					}
				}
			})
		}
		for waited := 0; waited < 1000; waited++ {
			mu.Lock()
			n := len(confirmed)
			mu.Unlock()
			if n > 10*(round+1) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		server.Kill()
		cancel()
		wg.Wait()
		server.Start()
	}
	if len(confirmed) < 30 {
		t.Fatalf("only %d objects were written", len(confirmed))
	}
	for key, body := range confirmed {
		r, err := s.Get(t.Context(), key, 0, -1)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		got, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s came back with %d bytes, %v", key, len(got), err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := s3.Config{Endpoint: "https://s3.example.com", Region: "r", Bucket: "volumes", KeyID: "k", Secret: "s", Wall: time.Now}
	if _, err := s3.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *s3.Config){
		"no endpoint":   func(c *s3.Config) { c.Endpoint = "" },
		"a path":        func(c *s3.Config) { c.Endpoint += "/bucket" },
		"plain http":    func(c *s3.Config) { c.Endpoint = "http://s3.example.com" },
		"a user":        func(c *s3.Config) { c.Endpoint = "https://me@s3.example.com" },
		"no bucket":     func(c *s3.Config) { c.Bucket = "" },
		"a bad bucket":  func(c *s3.Config) { c.Bucket = "Volumes/../x" },
		"a bad prefix":  func(c *s3.Config) { c.Prefix = "a//b" },
		"no secret":     func(c *s3.Config) { c.Secret = "" },
		"no region":     func(c *s3.Config) { c.Region = "" },
		"another slash": func(c *s3.Config) { c.Prefix = "a/" },
	} {
		c := good
		change(&c)
		if _, err := s3.New(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	s := open(t, good)
	if got := s.Address(); got != "volumes.s3.example.com:443" {
		t.Errorf("Address = %s", got)
	}
	if got := s.Path("v/1"); got != "s3:https://s3.example.com/volumes/v/1" {
		t.Errorf("Path = %s", got)
	}
}
