//go:build linux

package agent

import (
	"context"
	"hash/fnv"
	"time"
)

// backoff spaces the tries of one thing. Its jitter comes from a name, so that
// the agents of a node do not all come back at one instant.
type backoff struct {
	first, most time.Duration
	seed        uint64
	tries       uint64
}

func newBackoff(first, most time.Duration, name string) *backoff {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &backoff{first: first, most: most, seed: h.Sum64()}
}

// next is how long to wait before the next try: doubling up to most, less up
// to half of it.
func (b *backoff) next() time.Duration {
	d := b.most
	if b.tries < 32 {
		d = min(b.first<<b.tries, b.most)
	}
	b.tries++
	x := b.seed + b.tries*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x ^= x >> 27
	return d - time.Duration(x%uint64(d/2+1))
}

// sleep waits for next, or returns the context's error.
func (b *backoff) sleep(ctx context.Context) error { return sleep(ctx, b.next()) }

// reset begins anew after a success.
func (b *backoff) reset() { b.tries = 0 }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
