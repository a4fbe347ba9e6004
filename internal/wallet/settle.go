package wallet

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
)

// day is the length of a UTC day in microseconds.
const day = 86_400_000_000

// farthest is the last instant that is worth a deadline: the end of year 9999.
const farthest = 253_402_300_799_999_999

// dayStart is the UTC midnight that begins the day of us.
func dayStart(us int64) int64 { return us - us%day }

// monthStart is the UTC midnight that begins the calendar month of us.
func monthStart(us int64) int64 {
	t := clock.FromMicros(us)
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// settle posts all usage up to an instant, in windows that never cross a UTC
// midnight, and moves the watermark there, or to where nothing runs any more.
// An instant at or before the watermark is a no-op: time never runs backwards
// for money.
func (b *book) settle(to int64) error {
	for b.wallet.DueUS != nil && b.wallet.SettledUS < to {
		if err := b.window(min(to, dayStart(b.wallet.SettledUS)+day)); err != nil {
			return err
		}
		b.trim()
		b.dirty = true
	}
	return nil
}

// window posts what ran between the watermark and to, within one day. Flooring
// each segment by itself can leave a few micro-dollars above an empty wallet:
// they are the house's.
func (b *book) window(to int64) error {
	w, from := &b.wallet, b.wallet.SettledUS
	w.enterMonth(from)
	var over money.USD
	for i := range b.segments {
		s := &b.segments[i]
		cost := s.cost(to) - s.cost(from)
		first, last := max(s.StartedUS, from), min(s.end(), to)
		if s.Rate == 0 || last <= first {
			continue
		}
		paid := cost
		if w.ExhaustedUS == nil {
			paid = min(cost, w.Balance)
		}
		if paid == 0 {
			b.marks = append(b.marks, mark{Kind: s.Kind, Resource: s.ResourceID, From: first, To: last})
		}
		b.charge(s, paid, first, last, dayStart(first))
		b.writeOff(s, cost-paid, first, last)
		over += cost - paid
	}
	if over >= money.USD(max(1, len(b.segments))) {
		return fmt.Errorf("settle team %s to %d: %d micro-dollars are not covered, more than flooring explains", w.TeamID, to, over)
	}
	w.SettledUS = to
	return nil
}

// enterMonth begins the count of a month's usage, in its first charge.
func (w *walletRow) enterMonth(us int64) {
	if m := monthStart(us); m != w.MonthUS {
		w.MonthUS, w.MonthSpent = m, 0
	}
}

func (b *book) charge(s *segmentRow, amount money.USD, from, to, day int64) {
	if amount == 0 {
		return
	}
	w := &b.wallet
	p := posting{
		Debit: w.AccountID, Credit: s.Kind.usage(), Amount: amount, Code: charge, AtUS: to,
		Segment: s.ID, Resource: s.ResourceID, Kind: s.Kind, From: from, To: to, Day: day,
	}
	if w.ExhaustedUS == nil {
		w.Balance -= amount
	} else {
		p.Debit = w.ReceivableID
		w.Receivable += amount
	}
	w.MonthSpent += amount
	b.postings = append(b.postings, p)
}

func (b *book) writeOff(s *segmentRow, amount money.USD, from, to int64) {
	if amount == 0 {
		return
	}
	b.postings = append(b.postings, posting{
		Debit: writeoff, Credit: s.Kind.usage(), Amount: amount, Code: remainder, AtUS: to,
		Segment: s.ID, Resource: s.ResourceID, Kind: s.Kind, From: from, To: to,
	})
}

// trim recomputes when the next settlement is due, after the watermark moved.
func (b *book) trim() {
	w := &b.wallet
	w.DueUS = nil
	for i := range b.segments {
		if s := &b.segments[i]; s.Rate > 0 && s.end() > w.SettledUS {
			due := dayStart(w.SettledUS) + day
			w.DueUS = &due
			return
		}
	}
}

// exhausts is the first microsecond, not before now, at which what accrued
// reaches what there is; nil when that is not within this era. The open
// segments burn.
func (b *book) exhausts(now int64) *int64 { return b.costsBy(now, b.shown()) }

// costsBy is the first microsecond, not before now, at which what accrued
// reaches an amount; nil when that is not within this era.
func (b *book) costsBy(now int64, amount money.USD) *int64 {
	if b.accrued(now) >= amount {
		return &now
	}
	if b.wallet.Burn == 0 {
		return nil
	}
	low, high := now, b.latest(now, amount-b.accrued(now))
	if high > farthest {
		return nil
	}
	for low+1 < high { // low is too early, high is enough
		mid := low + (high-low)/2
		if b.accrued(mid) >= amount {
			high = mid
			continue
		}
		low = mid
	}
	return &high
}

// latest is an instant by which the open segments surely cost missing more:
// flooring takes less than one micro-dollar from each segment, twice.
func (b *book) latest(now int64, missing money.USD) int64 {
	need := uint64(missing) + 2*uint64(len(b.segments))
	hi, lo := bits.Mul64(need, money.MicrosPerHour)
	if hi >= uint64(b.wallet.Burn) {
		return forever
	}
	q, _ := bits.Div64(hi, lo, uint64(b.wallet.Burn))
	if q >= uint64(farthest) {
		return forever
	}
	return now + int64(q) + 1
}

// usageKey is the idempotency key of a window's transfer. sqlSettleDay makes
// the same.
func usageKey(segment uuid.UUID, from int64) string {
	return fmt.Sprintf("usage:%s:%d", segment, from)
}
