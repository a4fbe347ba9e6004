package dir

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/blob"
)

// Prefix is the path below which Handler serves grants.
const Prefix = "/agent/v1/o/"

// maxObject is the size in bytes of the largest object a grant may write.
const maxObject = 64 << 20

// checksumHeader is the header that S3 checks a body with, in base64.
const checksumHeader = "X-Amz-Checksum-Sha256"

// Sign returns the right to move one object. The URL is a path on this node.
func (s *Store) Sign(_ context.Context, a blob.Access) (blob.Grant, error) {
	if err := checkKey(a.Key); err != nil {
		return blob.Grant{}, err
	}
	c := claim{method: http.MethodGet, key: a.Key, expires: a.Expires.Unix()}
	header := http.Header{}
	if a.Put {
		if len(a.SHA256) != sha256.Size || a.Size < 0 || a.Size > maxObject {
			return blob.Grant{}, fmt.Errorf("sign %s: a write of %d bytes with a checksum of %d", a.Key, a.Size, len(a.SHA256))
		}
		c.method, c.sum, c.size = http.MethodPut, hex.EncodeToString(a.SHA256), a.Size
		header.Set(checksumHeader, base64.StdEncoding.EncodeToString(a.SHA256))
		header.Set("If-None-Match", "*")
	}
	return blob.Grant{Method: c.method, URL: c.url((*s.secrets.Load())[0]), Header: header}, nil
}

// A claim is what a grant's URL says and its signature proves.
type claim struct {
	method  string
	key     string
	sum     string // hex; writes only
	size    int64  // writes only
	expires int64  // Unix seconds
}

func (c claim) signature(secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	// No part but the key can hold a line break, and the key comes last.
	fmt.Fprintf(mac, "homeport object 1\n%s\n%d\n%d\n%s\n%s", c.method, c.expires, c.size, c.sum, c.key)
	return mac.Sum(nil)
}

func (c claim) url(secret []byte) string {
	q := url.Values{}
	q.Set("e", strconv.FormatInt(c.expires, 10))
	if c.method == http.MethodPut {
		q.Set("h", c.sum)
		q.Set("n", strconv.FormatInt(c.size, 10))
	}
	q.Set("s", base64.RawURLEncoding.EncodeToString(c.signature(secret)))
	return Prefix + (&url.URL{Path: c.key}).EscapedPath() + "?" + q.Encode()
}

var errClaim = errors.New("store: not a grant")

// readClaim returns the claim of a request that one of the secrets proves, not
// looking at its expiry.
func readClaim(r *http.Request, secrets [][]byte) (claim, error) {
	key, ok := strings.CutPrefix(r.URL.Path, Prefix)
	if !ok || checkKey(key) != nil {
		return claim{}, errClaim
	}
	q := r.URL.Query()
	c := claim{method: r.Method, key: key, sum: q.Get("h")}
	if c.method == http.MethodHead {
		c.method = http.MethodGet
	}
	var err error
	if c.expires, err = strconv.ParseInt(q.Get("e"), 10, 64); err != nil {
		return claim{}, errClaim
	}
	if c.method == http.MethodPut {
		if c.size, err = strconv.ParseInt(q.Get("n"), 10, 64); err != nil {
			return claim{}, errClaim
		}
	}
	given, err := base64.RawURLEncoding.DecodeString(q.Get("s"))
	signed := slices.ContainsFunc(secrets, func(secret []byte) bool { return hmac.Equal(given, c.signature(secret)) })
	if err != nil || !signed {
		return claim{}, errClaim
	}
	return c, nil
}
