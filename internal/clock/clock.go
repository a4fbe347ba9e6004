// Package clock is the only source of time. It has two readings: business time
// rules money and everything a user is billed or warned by, and can be moved
// forward by the development door; wall time rules liveness and security and
// cannot be moved. Both are UTC, cut to microseconds so that what is stored
// reads back equal.
package clock

import (
	"sync/atomic"
	"time"
)

// A Clock gives the two readings. The zero value is not usable; see New and Fixed.
type Clock struct {
	wall   func() time.Time
	skew   atomic.Int64 // microseconds to add so that wall follows the database's clock
	offset atomic.Int64 // microseconds that business time runs ahead of wall time
}

// New returns the clock of a running node. Its readings follow the machine's
// clock until SetSkew and SetOffset say otherwise.
func New() *Clock { return &Clock{wall: time.Now} }

// From returns a clock that reads wall from a function: for tests.
func From(wall func() time.Time) *Clock { return &Clock{wall: wall} }

// Now is business time.
func (c *Clock) Now() time.Time {
	return c.Wall().Add(time.Duration(c.offset.Load()) * time.Microsecond)
}

// Wall is wall time, corrected to the database's clock.
func (c *Clock) Wall() time.Time {
	return c.wall().UTC().Add(time.Duration(c.skew.Load()) * time.Microsecond).Truncate(time.Microsecond)
}

// Offset is how far business time runs ahead of wall time.
func (c *Clock) Offset() time.Duration {
	return time.Duration(c.offset.Load()) * time.Microsecond
}

// SetOffset moves business time to d ahead of wall time. Backward moves are
// ignored: business time never runs backwards.
func (c *Clock) SetOffset(d time.Duration) {
	for want := d.Microseconds(); ; {
		have := c.offset.Load()
		if want <= have || c.offset.CompareAndSwap(have, want) {
			return
		}
	}
}

// Skew is how far wall time is corrected from this machine's clock.
func (c *Clock) Skew() time.Duration { return time.Duration(c.skew.Load()) * time.Microsecond }

// SetSkew says how far the database's clock is ahead of this machine's.
func (c *Clock) SetSkew(d time.Duration) { c.skew.Store(d.Microseconds()) }

// Micros is t in microseconds since the epoch: the form in which instants
// enter arithmetic.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the instant of Micros.
func FromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
