package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// checksumHeader is the header that S3 checks a body with, in base64.
const checksumHeader = "X-Amz-Checksum-Sha256"

// longest is the longest that services let a presigned URL live.
const longest = 7 * 24 * time.Hour

// Sign returns the right to move one object as a presigned URL. A write is
// bound to its length, and to whatever the service enforces of its SHA-256 and
// of never overwriting.
func (s *Store) Sign(ctx context.Context, a blob.Access) (blob.Grant, error) {
	if err := checkKey(a.Key); err != nil {
		return blob.Grant{}, err
	}
	now := s.config.Wall()
	left := a.Expires.Sub(now).Truncate(time.Second)
	if left <= 0 || left > longest {
		return blob.Grant{}, fmt.Errorf("sign %s: a grant of %s", a.Key, left)
	}
	if !a.Put {
		return s.presign(ctx, http.MethodGet, a.Key, http.Header{}, 0, left, now)
	}
	if len(a.SHA256) != sha256.Size || a.Size < 0 || a.Size > maxObject {
		return blob.Grant{}, fmt.Errorf("sign %s: a write of %d bytes with a checksum of %d", a.Key, a.Size, len(a.SHA256))
	}
	return s.presign(ctx, http.MethodPut, a.Key, putHeader(s.Features(), a.SHA256), a.Size, left, now)
}

// putHeader is what a write must be sent with.
func putHeader(f Features, sum []byte) http.Header {
	header := http.Header{}
	if f.Checksum {
		header.Set(checksumHeader, base64.StdEncoding.EncodeToString(sum))
	}
	if f.Conditional {
		header.Set("If-None-Match", "*")
	}
	return header
}

// presign signs a request with these headers and, for a write, this length. It
// holds from at for left.
func (s *Store) presign(
	ctx context.Context, method, key string, header http.Header, size int64, left time.Duration, at time.Time,
) (blob.Grant, error) {
	query := url.Values{"X-Amz-Expires": {strconv.FormatInt(int64(left/time.Second), 10)}}
	req, err := http.NewRequestWithContext(ctx, method, s.url(key, query), nil)
	if err != nil {
		return blob.Grant{}, fmt.Errorf("sign %s: %w", key, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.ContentLength = size
	signed, _, err := s.signer.PresignHTTP(ctx, s.creds, req, "UNSIGNED-PAYLOAD", "s3", s.config.Region, at)
	if err != nil {
		return blob.Grant{}, fmt.Errorf("sign %s: %w", key, err)
	}
	return blob.Grant{Method: method, URL: signed, Header: header}, nil
}
