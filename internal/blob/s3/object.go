package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"homeport.dev/homeport/internal/blob"
)

// Put writes an object whole. The faults are ErrExists and ErrUnavailable.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	header := http.Header{}
	if s.Features().Conditional {
		header.Set("If-None-Match", "*")
	} else if _, err := s.Stat(ctx, key); !errors.Is(err, blob.ErrNotFound) {
		if err == nil {
			err = blob.ErrExists
		}
		return err
	}
	res, unsure, err := s.do(ctx, call{method: http.MethodPut, key: key, header: header, body: body})
	switch {
	case err == nil:
		return res.Body.Close()
	case statusOf(err) == http.StatusPreconditionFailed && unsure:
		return s.mine(ctx, key, body)
	case statusOf(err) == http.StatusPreconditionFailed:
		return blob.ErrExists
	default:
		return unavailable("write", key, err)
	}
}

// mine tells whether the object that is in the way is the one that a try whose
// answer was lost wrote.
func (s *Store) mine(ctx context.Context, key string, body []byte) error {
	r, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	there, err := io.ReadAll(io.LimitReader(r, int64(len(body))+1))
	if err != nil {
		return err
	}
	if !bytes.Equal(there, body) {
		return blob.ErrExists
	}
	return nil
}

// Stat returns the object's size. The faults are ErrNotFound and ErrUnavailable.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := checkKey(key); err != nil {
		return blob.Info{}, err
	}
	res, _, err := s.do(ctx, call{method: http.MethodHead, key: key})
	if statusOf(err) == http.StatusNotFound {
		return blob.Info{}, blob.ErrNotFound
	}
	if err != nil {
		return blob.Info{}, unavailable("stat", key, err)
	}
	defer res.Body.Close()
	if res.ContentLength < 0 {
		return blob.Info{}, unavailable("stat", key, errors.New("the store does not tell the size"))
	}
	return blob.Info{Key: key, Size: res.ContentLength}, nil
}

// Delete removes an object. In a bucket with versions it stays as an old one:
// only Purge takes those. The fault is ErrUnavailable.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return s.remove(ctx, version{key: key})
}
