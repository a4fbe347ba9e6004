package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// How often a call is tried while the service fails, and how far apart: 0.2, 0.4,
// 0.8 and 1.6 seconds, less up to half of each.
const (
	maxTries   = 5
	retryFirst = 200 * time.Millisecond
)

// A call is one request to the service in this node's own name.
type call struct {
	method string
	key    string // empty: the bucket itself
	query  url.Values
	header http.Header
	body   []byte
}

// A refusal is an answer that is not the one hoped for.
type refusal struct {
	Status  int    `xml:"-"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

func (r *refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("the store answered %d", r.Status)
	}
	return fmt.Sprintf("the store answered %d %s: %s", r.Status, r.Code, r.Message)
}

// passes reports whether trying again may help.
func (r *refusal) passes() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict: // two writes of one object at once, and neither is done
		return true
	case http.StatusBadRequest: // broken on the way
		return r.Code == "BadDigest" || r.Code == "XAmzContentSHA256Mismatch" || r.Code == "IncompleteBody" || r.Code == "RequestTimeout"
	default:
		return false
	}
}

// statusOf is the status of a refusal, 0 for other errors.
func statusOf(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// do makes a call until the service answers it, the tries are used up or ctx
// ends. A status of 300 or more is a *refusal. unsure says that an earlier try
// may have done what the last one was refused.
func (s *Store) do(ctx context.Context, c call) (res *http.Response, unsure bool, err error) {
	for try := 1; ; try++ {
		res, err = s.once(ctx, c)
		var r *refusal
		if err == nil || errors.As(err, &r) && !r.passes() {
			return res, unsure, err
		}
		if ctx.Err() != nil {
			return nil, true, context.Cause(ctx)
		}
		if try == maxTries {
			return nil, true, err
		}
		unsure = true
		if err := pause(ctx, c.key, try); err != nil {
			return nil, true, err
		}
	}
}

// pause waits before the next try. Its jitter comes from the key, so that what
// failed together does not come back together.
func pause(ctx context.Context, key string, try int) error {
	h := fnv.New64a()
	fmt.Fprint(h, key, try)
	d := retryFirst << (try - 1)
	timer := time.NewTimer(d - time.Duration(h.Sum64()%uint64(d/2)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (s *Store) once(ctx context.Context, c call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, s.url(c.key, c.query), bytes.NewReader(c.body))
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", c.key, err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	sum := sha256.Sum256(c.body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	if err := s.signer.SignHTTP(ctx, s.creds, req, hash, "s3", s.config.Region, s.config.Wall()); err != nil {
		return nil, fmt.Errorf("sign a call: %w", err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, readRefusal(res)
}

func readRefusal(res *http.Response) *refusal {
	r := &refusal{}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 16<<10)) // without the text the status has to do
	_ = xml.Unmarshal(text, r)
	r.Status = res.StatusCode
	return r
}

// url is the address of an object, or of the bucket.
func (s *Store) url(key string, query url.Values) string {
	u := *s.origin
	if key != "" {
		u.Path += s.name(key)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// withoutURL takes the address, which may hold a signature, out of an error.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// unavailable is the fault of a call that failed. Its cause is text alone: a
// broken connection must not be taken for the end of an object.
func unavailable(verb, key string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return blob.ErrUnavailable.Because(fmt.Errorf("%s %s: %v", verb, key, err)) //nolint:errorlint // see above
}
