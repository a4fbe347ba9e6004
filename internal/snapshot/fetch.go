package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"homeport.dev/homeport/internal/fault"
)

// fetchTries bounds how often a read is tried that broke off.
const fetchTries = 4

// fetch reads length bytes of an object from offset, to its end when length is
// below 0, into buf when that is large enough. A read that breaks off is tried
// again. The fault is ErrDamaged when the object, or that part, is not there.
func fetch(ctx context.Context, from getter, kind Kind, id ID, offset, length int64, buf []byte) ([]byte, error) {
	for try := 1; ; try++ {
		b, err := fetchOnce(ctx, from, kind, id, offset, length, buf)
		if err == nil {
			return b, nil
		}
		f := fault.Of(err)
		if f != nil && f.Kind == fault.NotFound {
			return nil, ErrDamaged.Because(fmt.Errorf("object %s is missing: %w", id, err))
		}
		short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if short && try == fetchTries {
			return nil, ErrDamaged.Because(fmt.Errorf("object %s is too short", id))
		}
		if ctx.Err() != nil || try == fetchTries || f != nil && f.Kind != fault.Unavailable {
			return nil, fmt.Errorf("read object %s: %w", id, err)
		}
		if err := sleep(ctx, time.Duration(try*try)*200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func fetchOnce(ctx context.Context, from getter, kind Kind, id ID, offset, length int64, buf []byte) ([]byte, error) {
	r, err := from.Get(ctx, kind, id, offset, length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if length < 0 {
		b, err := io.ReadAll(io.LimitReader(r, MaxObject+1))
		if err == nil && len(b) > MaxObject {
			return nil, ErrDamaged.Because(errors.New("object is too large"))
		}
		return b, err
	}
	if int64(cap(buf)) < length {
		buf = make([]byte, length)
	}
	n, err := io.ReadFull(r, buf[:length])
	return buf[:n], err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// twice runs a read, and once more when what it got was damaged: the damage
// may have happened on the way.
func twice(read func() error) error {
	err := read()
	if errors.Is(err, ErrDamaged) {
		err = read()
	}
	return err
}

// parallel calls fn for 0 to n-1 from up to so many goroutines, ends at the
// first error and returns it when all have ended.
func parallel(ctx context.Context, workers, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := fn(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}
