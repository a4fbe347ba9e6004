package wallet_test

import (
	"math/big"

	"github.com/google/uuid"
)

// The model is a second implementation of a team's money: amounts are unbounded
// integers, everything is computed anew from the list of what happened, and it
// shares no code with the wallet. Instants are microseconds.

const hour = 3_600_000_000

type modelSegment struct {
	resource    uuid.UUID
	pod         bool
	rate        int64
	start, stop int64 // stop 0: goes on
}

func (s *modelSegment) cost(t int64) *big.Int {
	if s.stop != 0 && t > s.stop {
		t = s.stop
	}
	if t <= s.start {
		return new(big.Int)
	}
	n := new(big.Int).Mul(big.NewInt(s.rate), big.NewInt(t-s.start))
	return n.Div(n, big.NewInt(hour))
}

type model struct {
	in        *big.Int // all credits
	given     *big.Int // what flooring left above an empty wallet
	segments  []*modelSegment
	exhausted bool
	since     int64 // exhausted since
	now       int64
	switchOff int64 // not yet reported end of the money; 0: none
}

func newModel(now int64) *model {
	return &model{in: new(big.Int), given: new(big.Int), now: now}
}

// shown is the balance at t, if nothing ends by then.
func (m *model) shown(t int64) *big.Int {
	sum := new(big.Int).Add(m.in, m.given)
	for _, s := range m.segments {
		sum.Sub(sum, s.cost(t))
	}
	return sum
}

// burn is the open rates, all and those of pods.
func (m *model) burn() (all, pods int64) {
	for _, s := range m.segments {
		if s.stop == 0 {
			all += s.rate
			if s.pod {
				pods += s.rate
			}
		}
	}
	return all, pods
}

// ends is the first instant from now on at which the money is gone, if that is
// by the limit.
func (m *model) ends(limit int64) (int64, bool) {
	all, pods := m.burn()
	if all == 0 || m.exhausted && pods == 0 || m.shown(limit).Sign() > 0 {
		return 0, false
	}
	low, high := m.now-1, limit // at low there is money, at high there is none
	for low+1 < high {
		mid := low + (high-low)/2
		if m.shown(mid).Sign() > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return high, true
}

// advance lets time pass.
func (m *model) advance(to int64) {
	if at, ok := m.ends(to); ok {
		// What a debit left to be owed stays owed.
		if left := m.shown(at); !m.exhausted && left.Sign() < 0 && m.shown(at-1).Sign() > 0 {
			m.given.Sub(m.given, left)
		}
		for _, s := range m.segments {
			if s.pod && s.stop == 0 {
				s.stop = max(at, s.start)
			}
		}
		if m.switchOff == 0 {
			m.switchOff = at
		}
		if all, _ := m.burn(); all > 0 && !m.exhausted {
			m.exhausted, m.since = true, at
		}
	}
	// Storage that nobody pays for goes on for seven days.
	if all, _ := m.burn(); m.exhausted && all > 0 && m.since+7*24*hour <= to {
		for _, s := range m.segments {
			if !s.pod && s.stop == 0 {
				s.stop = max(m.since+7*24*hour, s.start)
			}
		}
	}
	m.now = max(m.now, to)
}

func (m *model) credit(amount int64) {
	m.in.Add(m.in, big.NewInt(amount))
	if m.shown(m.now).Sign() >= 0 {
		m.exhausted = false
	}
}

// debit takes money at once; pods do not run on debt.
func (m *model) debit(amount int64) {
	m.in.Sub(m.in, big.NewInt(amount))
	all, pods := m.burn()
	if m.shown(m.now).Sign() > 0 || all == 0 || m.exhausted && pods == 0 {
		return
	}
	for _, s := range m.segments {
		if s.pod && s.stop == 0 {
			s.stop = max(m.now, s.start)
		}
	}
	if m.switchOff == 0 {
		m.switchOff = m.now
	}
	if all > pods && !m.exhausted {
		m.exhausted, m.since = true, m.now
	}
}

func (m *model) start(resource uuid.UUID, pod bool, rate int64) {
	m.segments = append(m.segments, &modelSegment{resource: resource, pod: pod, rate: rate, start: m.now})
}

func (m *model) open(resource uuid.UUID) *modelSegment {
	for _, s := range m.segments {
		if s.resource == resource && s.stop == 0 {
			return s
		}
	}
	return nil
}

// stop ends a resource at an instant that may be past.
func (m *model) stop(resource uuid.UUID, at int64) {
	moved := false
	for _, s := range m.segments {
		if s.resource == resource && (s.stop == 0 || s.stop > at) {
			s.stop, moved = max(at, s.start), true
		}
	}
	if moved && m.shown(m.now).Sign() >= 0 {
		m.exhausted = false // what went on without money never ran
	}
}

// until is when a resource's meter ended, 0 when it runs.
func (m *model) until(resource uuid.UUID) (last int64) {
	for _, s := range m.segments {
		if s.resource == resource {
			if s.stop == 0 {
				return 0
			}
			last = max(last, s.stop)
		}
	}
	return last
}
