package cloudapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
)

// A Rate is what a cloud allows: Burst calls at once, and one more per Every.
type Rate struct {
	Every time.Duration
	Burst int // 0 = 1
}

// Per is the rate of n calls in a time, evenly.
func Per(n int, d time.Duration) Rate { return Rate{Every: d / time.Duration(n), Burst: 1} }

// A Bucket is what a cloud counts together: a class of calls of an account.
type Bucket struct{ Account, Class string }

// A Limiter gives turns. Those of several nodes share their buckets.
type Limiter interface {
	// Wait returns when a call may be made. When its turn would come after the
	// end of ctx it does not wait: the fault is ErrRateLimited and no turn is used.
	Wait(ctx context.Context, b Bucket, r Rate) error
	// Hold gives no turn for a time: the cloud said that it had enough.
	Hold(ctx context.Context, b Bucket, r Rate, d time.Duration) error
}

// Late is the fault of a turn that comes too late, after d.
func Late(d time.Duration) error {
	return provider.ErrRateLimited.After(seconds(d)).Because(fmt.Errorf("the next turn is in %s", d.Round(time.Millisecond)))
}

// Local is the Limiter of one process, for tests and for tools.
type Local struct {
	clock *clock.Clock
	mu    sync.Mutex
	next  map[Bucket]time.Time // when all turns given so far are used up
}

// NewLocal returns a Limiter whose buckets are full.
func NewLocal(c *clock.Clock) *Local { return &Local{clock: c, next: map[Bucket]time.Time{}} }

// Wait implements Limiter.
func (l *Local) Wait(ctx context.Context, b Bucket, r Rate) error {
	l.mu.Lock()
	now := l.clock.Wall()
	next, wait := r.Take(l.next[b], now)
	// Deadlines are by this host's own clock.
	if deadline, ok := ctx.Deadline(); ok && now.Add(wait-l.clock.Skew()).After(deadline) {
		l.mu.Unlock()
		return Late(wait)
	}
	l.next[b] = next
	l.mu.Unlock()
	return Pause(ctx, wait)
}

// Hold implements Limiter.
func (l *Local) Hold(_ context.Context, b Bucket, r Rate, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := l.clock.Wall().Add(d + r.Slack()); until.After(l.next[b]) {
		l.next[b] = until
	}
	return nil
}

// Take gives the next turn of a bucket that is used up at next: what next is
// then, and how long the turn is to wait for.
func (r Rate) Take(next, now time.Time) (time.Time, time.Duration) {
	if next.Before(now) {
		next = now
	}
	return next.Add(r.Every), max(0, next.Sub(now)-r.Slack())
}

// Slack is how far ahead of its pace a full bucket may be.
func (r Rate) Slack() time.Duration { return time.Duration(max(r.Burst, 1)-1) * r.Every }

// Pause waits, or returns early with the context's error.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
}
