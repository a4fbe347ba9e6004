package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// maxBreaks bounds how often one read may break off without a byte between.
const maxBreaks = 4

// errStalled occurs when a transfer stopped moving.
var errStalled = errors.New("the transfer stalled")

// Get reads length bytes from offset. A transfer that breaks off or stalls is
// taken up again where it was. The faults are ErrNotFound and ErrUnavailable.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if length == 0 {
		_, err := s.Stat(ctx, key)
		return http.NoBody, err
	}
	r := &reader{ctx: ctx, store: s, key: key, offset: offset, left: length}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// A reader reads an object's part through as many requests as it takes.
type reader struct {
	ctx    context.Context // of the Get that made it
	store  *Store
	key    string
	offset int64 // of the next byte
	left   int64 // bytes; below 0: to the end, not known yet

	body   io.ReadCloser
	cancel context.CancelCauseFunc
	stall  *time.Timer
	breaks int
}

// open asks for what is left.
func (r *reader) open(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	header := http.Header{}
	if h := rangeHeader(r.offset, r.left); h != "" {
		header.Set("Range", h)
	}
	res, _, err := r.store.do(ctx, call{method: http.MethodGet, key: r.key, header: header})
	if err == nil && r.offset > 0 && res.StatusCode != http.StatusPartialContent {
		_ = res.Body.Close()
		err = errors.New("the store does not answer ranges")
	}
	if err != nil {
		cancel(nil)
		switch statusOf(err) {
		case http.StatusNotFound:
			return blob.ErrNotFound
		case http.StatusRequestedRangeNotSatisfiable: // it ends before
			r.left, r.body = 0, http.NoBody
			return nil
		}
		return unavailable("read", r.key, err)
	}
	if n := res.ContentLength; n >= 0 && (r.left < 0 || n < r.left) {
		r.left = n
	}
	r.body, r.cancel = res.Body, cancel
	r.stall = time.AfterFunc(stallAfter, func() { cancel(errStalled) })
	return nil
}

// rangeHeader asks for length bytes from offset; below 0 means to the end.
func rangeHeader(offset, length int64) string {
	from := "bytes=" + strconv.FormatInt(offset, 10) + "-"
	switch {
	case length >= 0:
		return from + strconv.FormatInt(offset+length-1, 10)
	case offset > 0:
		return from
	default:
		return ""
	}
}

// Read reads on, through breaks. The fault is ErrUnavailable.
func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.left == 0 {
			return 0, io.EOF
		}
		if r.left > 0 && int64(len(p)) > r.left {
			p = p[:r.left]
		}
		n, err := r.body.Read(p)
		if n > 0 {
			r.stall.Reset(stallAfter)
			r.breaks = 0
			r.offset += int64(n)
			if r.left > 0 {
				r.left -= int64(n)
			}
			return n, nil
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && r.left < 0 {
			r.left = 0
			return 0, io.EOF
		}
		if err := r.again(err); err != nil {
			return 0, err
		}
	}
}

// again asks anew for the rest after a break.
func (r *reader) again(cause error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.shut()
	if r.breaks++; r.breaks > maxBreaks {
		r.body = http.NoBody
		return unavailable("read", r.key, cause)
	}
	if err := pause(r.ctx, r.key, r.breaks); err != nil {
		return err
	}
	return r.open(r.ctx)
}

func (r *reader) shut() {
	if r.cancel != nil {
		r.stall.Stop()
		_ = r.body.Close()
		r.cancel(nil)
		r.cancel = nil
	}
}

// Close ends the transfer.
func (r *reader) Close() error {
	r.shut()
	return nil
}
