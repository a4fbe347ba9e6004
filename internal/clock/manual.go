package clock

import (
	"sync/atomic"
	"time"
)

// A Manual clock stands still until it is moved.
type Manual struct {
	*Clock
	us atomic.Int64
}

// Fixed returns a clock that stands at t, for tests.
func Fixed(t time.Time) *Manual {
	m := &Manual{}
	m.us.Store(t.UnixMicro())
	m.Clock = From(func() time.Time { return time.UnixMicro(m.us.Load()) })
	return m
}

// Advance moves both readings forward by d.
func (m *Manual) Advance(d time.Duration) { m.us.Add(d.Microseconds()) }
