package dir

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// Handler serves the grants of this store below Prefix, answering as S3 does:
// 403 for what the grant does not allow, 400 for a body that is not the
// promised one, 412 for a second write, 206 for a range.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	c, err := readClaim(r, *s.secrets.Load())
	if err != nil {
		refuse(w, http.StatusForbidden, "signature_does_not_match")
		return
	}
	if s.wall().Unix() >= c.expires {
		refuse(w, http.StatusForbidden, "grant_expired")
		return
	}
	switch c.method {
	case http.MethodPut:
		s.servePut(w, r, c)
	case http.MethodGet:
		s.serveGet(w, r, c)
	default:
		refuse(w, http.StatusForbidden, "signature_does_not_match")
	}
}

func (s *Store) serveGet(w http.ResponseWriter, r *http.Request, c claim) {
	f, err := s.open(c.key)
	if errors.Is(err, blob.ErrNotFound) {
		refuse(w, http.StatusNotFound, "no_such_key")
		return
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "store_unavailable")
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// buffers are for copying bodies.
var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

func (s *Store) servePut(w http.ResponseWriter, r *http.Request, c claim) {
	sum, err := hex.DecodeString(c.sum)
	if err != nil || r.Header.Get(checksumHeader) != base64.StdEncoding.EncodeToString(sum) || r.Header.Get("If-None-Match") != "*" {
		refuse(w, http.StatusForbidden, "signed_header_missing")
		return
	}
	if r.ContentLength > maxObject {
		refuse(w, http.StatusRequestEntityTooLarge, "entity_too_large")
		return
	}
	if r.ContentLength != c.size {
		refuse(w, http.StatusBadRequest, "object_checksum")
		return
	}
	if _, err := os.Lstat(s.file(c.key)); err == nil {
		refuse(w, http.StatusPreconditionFailed, "object_exists")
		return
	}
	err = s.receive(r.Body, c, sum)
	switch {
	case errors.Is(err, blob.ErrChecksum):
		refuse(w, http.StatusBadRequest, "object_checksum")
	case errors.Is(err, blob.ErrExists):
		refuse(w, http.StatusPreconditionFailed, "object_exists")
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, "store_unavailable")
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// receive stores a body of the claimed size and checksum.
func (s *Store) receive(body io.Reader, c claim, sum []byte) error {
	tmp, err := s.create()
	if err != nil {
		return err
	}
	defer tmp.discard()
	h := sha256.New()
	n, err := copyHashed(tmp.file, io.LimitReader(body, c.size+1), h)
	if err != nil {
		return unavailable("receive", c.key, err)
	}
	if n != c.size || string(h.Sum(nil)) != string(sum) {
		return blob.ErrChecksum
	}
	return s.publish(tmp, c.key)
}

func copyHashed(dst io.Writer, src io.Reader, h hash.Hash) (int64, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	// The wrapper hides the file's ReadFrom, which would bring its own buffer.
	return io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(dst, h)}, src, *buf)
}

// refuse answers in the form the agent reads refusals in.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": http.StatusText(status)})
}
