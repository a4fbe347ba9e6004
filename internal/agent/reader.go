//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

// maxBreaks bounds how often one read may break off without a byte between.
const maxBreaks = 8

// errStalled occurs when a transfer stopped moving.
var errStalled = errors.New("the transfer stalled")

// reader reads an object's part through as many requests as it takes.
type reader struct {
	ctx    context.Context // of the Get that made it
	store  *store
	op     agentapi.Op
	offset int64 // of the next byte
	left   int64 // bytes; below 0: to the end, not known yet

	body   io.ReadCloser
	cancel context.CancelCauseFunc
	stall  *time.Timer
	breaks int
}

// open makes the request for what is left.
func (r *reader) open() error {
	if r.left == 0 {
		r.body = http.NoBody
		return nil
	}
	return r.store.try(r.ctx, r.op, r.request)
}

func (r *reader) request(ctx context.Context, g agentapi.Grant) error {
	ctx, cancel := context.WithCancelCause(ctx)
	req, via, err := r.store.request(ctx, g, nil)
	if err != nil {
		cancel(nil)
		return err
	}
	if h := rangeHeader(r.offset, r.left); h != "" {
		req.Header.Set("Range", h)
	}
	stall := time.AfterFunc(storeStall, func() { cancel(errStalled) })
	res, err := via.Do(req)
	if err == nil {
		err = r.accept(res)
		if err != nil {
			res.Body.Close()
		}
	} else {
		err = errAgain{withoutURL(err)}
	}
	if err != nil {
		stall.Stop()
		cancel(nil)
		return err
	}
	r.body, r.cancel, r.stall = res.Body, cancel, stall
	return nil
}

// accept checks that the answer begins at offset, and learns its length.
func (r *reader) accept(res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusPartialContent:
	case res.StatusCode == http.StatusOK && r.offset == 0: // the whole object: the rest is not read
	case res.StatusCode == http.StatusOK:
		return errors.New("the store does not answer ranges")
	default:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		return storeRefusal(res.StatusCode, text)
	}
	if r.left < 0 && res.ContentLength >= 0 {
		r.left = res.ContentLength
	}
	return nil
}

// Read reads on, through breaks.
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
			r.stall.Reset(storeStall)
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

// again makes a new request for the rest after a break.
func (r *reader) again(cause error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.breaks++; r.breaks > maxBreaks {
		return fmt.Errorf("read object %s: %w", r.op.Object.ID, cause)
	}
	r.close()
	return r.open()
}

func (r *reader) close() {
	if r.cancel != nil {
		r.stall.Stop()
		r.body.Close()
		r.cancel(nil)
		r.cancel = nil
	}
}

// Close ends the transfer.
func (r *reader) Close() error {
	r.close()
	return nil
}

// withoutURL takes the address, with the signature in it, out of an error.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
