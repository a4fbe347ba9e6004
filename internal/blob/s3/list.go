package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"homeport.dev/homeport/internal/blob"
)

// deletesAtOnce is how many objects are purged at the same time.
const deletesAtOnce = 16

// maxPage bounds an answer that lists a page of at most 1000 objects, in bytes.
const maxPage = 8 << 20

// listing is a page of ListObjectsV2.
type listing struct {
	Contents []struct {
		Key  string
		Size int64
	}
	IsTruncated           bool
	NextContinuationToken string
}

// List calls fn for each object whose key begins with prefix, in key order. The
// fault is ErrUnavailable.
func (s *Store) List(ctx context.Context, prefix string, fn func(blob.Info) error) error {
	query := url.Values{"list-type": {"2"}, "prefix": {s.name(prefix)}}
	for {
		var page listing
		if err := s.page(ctx, prefix, query, &page); err != nil {
			return unavailable("list", prefix, err)
		}
		for _, o := range page.Contents {
			key, ok := s.key(o.Key)
			if !ok {
				continue
			}
			if err := fn(blob.Info{Key: key, Size: o.Size}); err != nil {
				return err
			}
		}
		if !page.IsTruncated {
			return nil
		}
		if page.NextContinuationToken == "" {
			return unavailable("list", prefix, errors.New("a page says that there are more and not where"))
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

// page asks for one page of a list, again when it breaks off.
func (s *Store) page(ctx context.Context, prefix string, query url.Values, into any) error {
	for try := 1; ; try++ {
		asked, err := s.pageOnce(ctx, query, into)
		if err == nil || !asked || ctx.Err() != nil || try == maxTries {
			return err
		}
		if err := pause(ctx, prefix, try); err != nil {
			return err
		}
	}
}

// pageOnce says whether an answer began.
func (s *Store) pageOnce(ctx context.Context, query url.Values, into any) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, _, err := s.do(ctx, call{method: http.MethodGet, query: query})
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	defer time.AfterFunc(stallAfter, func() { cancel(errStalled) }).Stop()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err != nil {
		return true, err
	}
	return true, xml.Unmarshal(text, into)
}

// key is the key of an object's name in the bucket.
func (s *Store) key(name string) (string, bool) {
	if s.config.Prefix == "" {
		return name, true
	}
	return strings.CutPrefix(name, s.config.Prefix+"/")
}

// A version is one that the service keeps of an object; without id it is the
// object.
type version struct{ key, id string }

// versions is a page of ListObjectVersions.
type versions struct {
	Version             []versionXML
	DeleteMarker        []versionXML
	IsTruncated         bool
	NextKeyMarker       string
	NextVersionIDMarker string `xml:"NextVersionIdMarker"`
}

type versionXML struct {
	Key       string
	VersionID string `xml:"VersionId"`
}

// eachVersion calls fn for every version and every mark of a deletion below a
// prefix.
func (s *Store) eachVersion(ctx context.Context, prefix string, fn func(version) error) error {
	query := url.Values{"versions": {""}, "prefix": {s.name(prefix)}}
	for {
		var page versions
		if err := s.page(ctx, prefix, query, &page); err != nil {
			return unavailable("list the versions of", prefix, err)
		}
		for _, v := range append(page.Version, page.DeleteMarker...) {
			key, ok := s.key(v.Key)
			if !ok {
				continue
			}
			if err := fn(version{key: key, id: v.VersionID}); err != nil {
				return err
			}
		}
		if !page.IsTruncated {
			return nil
		}
		query.Set("key-marker", page.NextKeyMarker)
		query.Set("version-id-marker", page.NextVersionIDMarker)
	}
}

// remove deletes a version. The fault is ErrUnavailable.
func (s *Store) remove(ctx context.Context, v version) error {
	if err := s.erase(ctx, v); err != nil {
		return unavailable("delete", v.key, err)
	}
	return nil
}

// erase deletes a version; the error of a refusal is a *refusal.
func (s *Store) erase(ctx context.Context, v version) error {
	query := url.Values{}
	if v.id != "" {
		query.Set("versionId", v.id)
	}
	res, _, err := s.do(ctx, call{method: http.MethodDelete, key: v.key, query: query})
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// uploads is a page of ListMultipartUploads.
type uploads struct {
	Upload []struct {
		Key      string
		UploadID string `xml:"UploadId"`
	}
	IsTruncated        bool
	NextKeyMarker      string
	NextUploadIDMarker string `xml:"NextUploadIdMarker"`
}

// purgeRounds bounds how often a purge looks whether anything is left.
const purgeRounds = 4

// Purge removes for good whatever lies below a prefix: objects, the versions
// that the service keeps of them, and uploads in parts that were never
// finished. It looks until nothing is there: services that move versions about
// while others of the same object are deleted may miss some. The fault is
// ErrUnavailable; what is left then goes by the next Purge.
func (s *Store) Purge(ctx context.Context, prefix string) error {
	last := errors.New("what was deleted is still listed")
	for range purgeRounds {
		found, moved, err := s.purgeOnce(ctx, prefix)
		if err != nil {
			return err
		}
		if !found {
			return s.abortUploads(ctx, prefix)
		}
		if moved != nil {
			last = moved
		}
	}
	return unavailable("purge", prefix, last)
}

// purgeOnce deletes what is listed and says whether there was anything. moved is
// the refusal of a version that was moved between its listing and its deletion,
// which the next look decides.
func (s *Store) purgeOnce(ctx context.Context, prefix string) (found bool, moved, err error) {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	var mu sync.Mutex
	remove := func(v version) error {
		found = true
		group.Go(func() error {
			err := s.erase(inner, v)
			if err != nil && v.id != "" && statusOf(err) == http.StatusBadRequest {
				mu.Lock()
				defer mu.Unlock()
				moved = err
				return nil
			}
			if err != nil {
				return unavailable("delete", v.key, err)
			}
			return nil
		})
		return nil
	}
	if s.Features().Versions {
		err = s.eachVersion(inner, prefix, remove)
	} else {
		err = s.List(inner, prefix, func(i blob.Info) error { return remove(version{key: i.Key}) })
	}
	if first := group.Wait(); first != nil {
		return found, moved, first
	}
	return found, moved, err
}

// unknown reports whether the service does not know what it was asked.
func unknown(err error) bool {
	status := statusOf(err)
	return status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed
}

// abortUploads ends uploads in parts. Homeport begins none, and no grant
// allows it; an operator's tool may have.
func (s *Store) abortUploads(ctx context.Context, prefix string) error {
	query := url.Values{"uploads": {""}, "prefix": {s.name(prefix)}}
	for {
		var page uploads
		err := s.page(ctx, prefix, query, &page)
		if unknown(err) {
			return nil // without uploads in parts there are none
		}
		if err != nil {
			return unavailable("list the uploads of", prefix, err)
		}
		for _, u := range page.Upload {
			key, ok := s.key(u.Key)
			if !ok {
				continue
			}
			res, _, err := s.do(ctx, call{method: http.MethodDelete, key: key, query: url.Values{"uploadId": {u.UploadID}}})
			if err != nil && statusOf(err) != http.StatusNotFound {
				return unavailable("end an upload of", key, err)
			}
			if err == nil {
				_ = res.Body.Close()
			}
		}
		if !page.IsTruncated {
			return nil
		}
		query.Set("key-marker", page.NextKeyMarker)
		query.Set("upload-id-marker", page.NextUploadIDMarker)
	}
}
