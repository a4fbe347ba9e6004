package s3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
)

// A liar is a service that does not enforce all that it should. Signatures it
// checks with the signer itself, so that what it lets through is what it was
// told to.
type liar struct {
	noChecksum, noCondition     bool // ignores the header
	failChecksum, failCondition bool // answers 501 to the header
	anyLength, anyKey, public   bool
	noExpiry, lateList, keeps   bool
	badRange                    bool
	forbids                     string // what the key may not do: list, delete, or list versions or uploads
	versions                    bool   // shows a version of a, which the key may not delete
	marks                       bool   // takes the mark of a deletion for an object

	mu      sync.Mutex
	objects map[string][]byte
	marked  map[string]bool
}

const liarSecret = "not-a-secret-at-all"

func (l *liar) store(t *testing.T) *s3.Store {
	t.Helper()
	l.objects, l.marked = map[string][]byte{}, map[string]bool{}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return open(t, s3.Config{
		Endpoint: server.URL, Region: "r", Bucket: "volumes", KeyID: "key", Secret: liarSecret, PathStyle: true, Wall: clock.New().Wall,
	})
}

// allowed checks a presigned request, or takes a signed one as it is.
func (l *liar) allowed(r *http.Request) bool {
	q := r.URL.Query()
	if r.Header.Get("Authorization") != "" {
		return true
	}
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil {
		return l.public
	}
	seconds, _ := strconv.Atoi(q.Get("X-Amz-Expires"))
	if !l.noExpiry && time.Since(at) > time.Duration(seconds)*time.Second {
		return false
	}
	again := r.Clone(r.Context())
	again.URL = &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: url.Values{"X-Amz-Expires": q["X-Amz-Expires"]}.Encode()}
	again.Header = http.Header{}
	again.ContentLength = 0
	for name := range strings.SplitSeq(q.Get("X-Amz-SignedHeaders"), ";") {
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		} else if name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true })
	signed, _, err := signer.PresignHTTP(r.Context(), aws.Credentials{AccessKeyID: "key", SecretAccessKey: liarSecret}, again, "UNSIGNED-PAYLOAD", "s3", "r", at)
	if err != nil {
		return false
	}
	u, _ := url.Parse(signed)
	return u.Query().Get("X-Amz-Signature") == q.Get("X-Amz-Signature") ||
		l.anyLength && r.Method == http.MethodPut || l.anyKey && r.Method == http.MethodGet
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/volumes/")
	body, have := l.objects[key]
	switch {
	case !l.allowed(r):
		w.WriteHeader(http.StatusForbidden)
	case l.forbids == "delete" && r.Method == http.MethodDelete, r.URL.Query().Has("versionId"):
		w.WriteHeader(http.StatusForbidden)
	case key == "":
		l.list(w, r)
	case r.Method == http.MethodPut:
		l.put(w, r, key, have)
	case r.Method == http.MethodDelete:
		if !l.keeps {
			delete(l.objects, key)
			l.marked[key] = l.marks
		}
		w.WriteHeader(http.StatusNoContent)
	case !have:
		w.WriteHeader(http.StatusNotFound)
	default:
		if l.badRange {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
}

func (l *liar) put(w http.ResponseWriter, r *http.Request, key string, have bool) {
	body, _ := io.ReadAll(r.Body)
	sum, condition := r.Header.Get("X-Amz-Checksum-Sha256"), r.Header.Get("If-None-Match")
	hash := sha256.Sum256(body)
	switch {
	case l.failChecksum && sum != "", l.failCondition && condition != "":
		w.WriteHeader(http.StatusNotImplemented)
	case sum != "" && !l.noChecksum && sum != base64.StdEncoding.EncodeToString(hash[:]):
		w.WriteHeader(http.StatusBadRequest)
	case condition != "" && !l.noCondition && (have || l.marked[key]):
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		l.objects[key] = body
	}
}

func (l *liar) list(w http.ResponseWriter, r *http.Request) {
	type content struct {
		Key  string
		Size int
	}
	var page struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []content
	}
	what, q := "list", r.URL.Query()
	for _, kind := range []string{"versions", "uploads"} {
		if q.Has(kind) {
			what = kind
		}
	}
	switch {
	case what == l.forbids:
		w.WriteHeader(http.StatusForbidden)
		return
	case what == "versions" && l.versions:
		_, _ = io.WriteString(w, "<ListVersionsResult><Version><Key>"+q.Get("prefix")+"a</Key><VersionId>1</VersionId></Version></ListVersionsResult>")
		return
	case what != "list":
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	for key, body := range l.objects {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) && !l.lateList {
			page.Contents = append(page.Contents, content{key, len(body)})
		}
	}
	slices.SortFunc(page.Contents, func(a, b content) int { return strings.Compare(a.Key, b.Key) })
	_ = xml.NewEncoder(w).Encode(page)
}

func TestProbeFallsBackOrRefuses(t *testing.T) {
	t.Parallel()
	all := s3.Features{Conditional: true, Checksum: true}
	for name, one := range map[string]struct {
		liar    *liar
		found   s3.Features
		unsafe  string
		refused string
	}{
		"an honest one":               {liar: &liar{}, found: all},
		"ignores If-None-Match":       {liar: &liar{noCondition: true}, found: s3.Features{Checksum: true}},
		"does not know If-None-Match": {liar: &liar{failCondition: true}, found: s3.Features{Checksum: true}},
		"ignores checksums":           {liar: &liar{noChecksum: true}, found: s3.Features{Conditional: true}},
		"does not know checksums":     {liar: &liar{failChecksum: true}, found: s3.Features{Conditional: true}},
		"knows neither":               {liar: &liar{failChecksum: true, failCondition: true}},
		"no checksum, and any length": {liar: &liar{noChecksum: true, anyLength: true}, unsafe: "another length"},
		"any key":                     {liar: &liar{anyKey: true}, unsafe: "signature for another"},
		"public":                      {liar: &liar{public: true}, unsafe: "public"},
		"no expiry":                   {liar: &liar{noExpiry: true}, unsafe: "expired"},
		"lists late":                  {liar: &liar{lateList: true}, unsafe: "lists 0 objects"},
		"keeps what is to be deleted": {liar: &liar{keeps: true}, unsafe: "deleted"},
		"answers ranges with the lot": {liar: &liar{badRange: true}, unsafe: "a part of it"},
		"deleted names are not free":  {liar: &liar{marks: true}, found: s3.Features{Checksum: true}},
		"forbids lists":               {liar: &liar{forbids: "list"}, refused: "may not list objects"},
		"forbids deleting":            {liar: &liar{forbids: "delete"}, refused: "may not delete objects"},
		"hides versions":              {liar: &liar{forbids: "versions"}, refused: "may not list the versions"},
		"hides uploads":               {liar: &liar{forbids: "uploads"}, refused: "may not list uploads"},
		"forbids deleting versions":   {liar: &liar{versions: true}, refused: "may not delete the versions"},
		"all of it":                   {liar: &liar{noChecksum: true, noCondition: true, anyKey: true, noExpiry: true}, unsafe: "not safe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := one.liar.store(t).Probe(t.Context(), "one")
			switch {
			case one.unsafe != "":
				if !errors.Is(err, s3.ErrUnsafe) || !strings.Contains(err.Error(), one.unsafe) {
					t.Errorf("the probe says %v, want one of %q", err, one.unsafe)
				}
			case one.refused != "":
				if !errors.Is(err, s3.ErrRefused) || !strings.Contains(err.Error(), one.refused) || !strings.Contains(err.Error(), "the key needs") {
					t.Errorf("the probe says %v, want that the key %s", err, one.refused)
				}
			case err != nil || found != one.found:
				t.Errorf("found %+v, %v, want %+v", found, err, one.found)
			}
			if n := len(one.liar.objects); n > 0 && !one.liar.keeps && !one.liar.lateList && one.refused == "" {
				t.Errorf("the probe left %d objects", n)
			}
		})
	}
}
