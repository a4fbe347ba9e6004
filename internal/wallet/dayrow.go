package wallet

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// A dayRow is the usage of one resource on one UTC day: all its transfers, and
// what accrued since, in one row.
type dayRow struct {
	DayUS    int64
	Resource uuid.UUID
	Amount   money.USD
	FromUS   int64 // the first instant metered that day
	RanUS    int64
}

// newerDay orders day rows: the newest day first, then by resource.
func newerDay(a, b dayRow) int {
	if c := cmp.Compare(b.DayUS, a.DayUS); c != 0 {
		return c
	}
	return bytes.Compare(b.Resource[:], a.Resource[:])
}

// mergeDays merges lists of day rows into one in order, each key once.
func mergeDays(lists ...[]dayRow) []dayRow {
	all := slices.Concat(lists...)
	slices.SortFunc(all, newerDay)
	merged := all[:0]
	for _, r := range all {
		last := len(merged) - 1
		if last < 0 || newerDay(merged[last], r) != 0 {
			merged = append(merged, r)
			continue
		}
		merged[last].Amount += r.Amount
		merged[last].RanUS += r.RanUS
		merged[last].FromUS = min(merged[last].FromUS, r.FromUS)
	}
	return merged
}

// unposted lists the usage of one kind in a book that was settled in memory
// only, of days that sort after the position.
func (b *book) unposted(kind Kind, after position) []dayRow {
	var rows []dayRow
	add := func(k Kind, resource uuid.UUID, amount money.USD, from, to int64) {
		r := dayRow{DayUS: dayStart(from), Resource: resource, Amount: amount, FromUS: from, RanUS: to - from}
		if k == kind && newerDay(after.row(), r) < 0 {
			rows = append(rows, r)
		}
	}
	for i := range b.postings {
		if p := &b.postings[i]; p.Code == charge {
			add(p.Kind, p.Resource, p.Amount, p.From, p.To)
		}
	}
	for _, m := range b.marks {
		add(m.Kind, m.Resource, 0, m.From, m.To)
	}
	return rows
}

// transaction writes a day row as the team sees it. Its id stays the same
// while the day's amount grows.
func (r dayRow) transaction(kind Kind, what string) Transaction {
	date := clock.FromMicros(r.DayUS).Format(time.DateOnly)
	own := id.Derive(r.Resource, string(kind), date)
	return Transaction{
		ID: own, CreatedAt: clock.FromMicros(r.FromUS), Type: string(charge), ResourceType: kind,
		ResourceID: r.Resource, Amount: -r.Amount, ReferenceID: own.String(),
		Description: kind.usedFor(what, time.Duration(r.RanUS)*time.Microsecond),
	}
}
