package wallet

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// epoch is 2027-03-14 12:00 UTC.
const epoch = 1_805_025_600_000_000

func emptyBook() *book {
	return &book{wallet: walletRow{
		TeamID: id.New(), AccountID: id.New(), ReceivableID: id.New(), SettledUS: epoch, MonthUS: monthStart(epoch),
	}}
}

// exact is the cost of a stretch by the second implementation: fractions of
// unbounded integers, floored once.
func exact(rate money.Rate, from, to int64) *big.Int {
	if to <= from {
		return new(big.Int)
	}
	n := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(to-from))
	return n.Div(n, big.NewInt(money.MicrosPerHour))
}

func exactAll(segments []segmentRow, to int64) *big.Int {
	sum := new(big.Int)
	for i := range segments {
		sum.Add(sum, exact(segments[i].Rate, segments[i].StartedUS, min(to, segments[i].end())))
	}
	return sum
}

func drawRate(t *rapid.T) money.Rate {
	return money.Rate(rapid.OneOf(
		// Equal rates tick together: the last tick can cost more than is left.
		rapid.SampledFrom([]int64{0, 1, 2_500_000, 2_500_000_000}), rapid.Int64Range(0, 100_000), rapid.Int64Range(0, int64(money.MaxRate)),
	).Draw(t, "rate"))
}

func drawKind(t *rapid.T) Kind {
	return rapid.SampledFrom([]Kind{PodRuntime, VolumeStorage}).Draw(t, "kind")
}

// drawBook makes a wallet with money and meters that started within an hour.
func drawBook(t *rapid.T) *book {
	b := emptyBook()
	amount := money.USD(rapid.OneOf(
		rapid.Int64Range(1, 100), rapid.Int64Range(1, 10_000_000), rapid.Int64Range(1, 1_000_000_000_000),
	).Draw(t, "amount"))
	must(t, b.receive(posting{Amount: amount, Key: "c", Code: credit}, epoch))
	at := int64(epoch)
	for range rapid.IntRange(1, 6).Draw(t, "segments") {
		at += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 600_000_000)).Draw(t, "pause")
		must(t, b.roll(at))
		kind, rate := drawKind(t), drawRate(t)
		for range rapid.IntRange(1, 2).Draw(t, "twins") {
			must(t, b.start(Start{TeamID: b.wallet.TeamID, ResourceID: id.New(), Kind: kind, Rate: rate, At: time.UnixMicro(at)}))
		}
	}
	return b
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (b *book) total(codes ...code) *big.Int {
	sum := new(big.Int)
	for _, p := range b.postings {
		for _, c := range codes {
			if p.Code == c {
				sum.Add(sum, big.NewInt(int64(p.Amount)))
			}
		}
	}
	return sum
}

func TestChargesAreTheExactIntegral(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		now := b.wallet.SettledUS
		for range rapid.IntRange(1, 8).Draw(t, "settlements") {
			now += rapid.Int64Range(1, 3*day).Draw(t, "step")
			must(t, b.roll(now))
			must(t, b.settle(now))
			if b.wallet.Balance < 0 || b.wallet.Receivable < 0 || b.wallet.Balance > 0 && b.wallet.Receivable > 0 {
				t.Fatalf("balance %d and receivable %d", b.wallet.Balance, b.wallet.Receivable)
			}
		}
		if got, want := b.total(charge, remainder), exactAll(b.segments, now); got.Cmp(want) != 0 {
			t.Errorf("charged and written off %s, want exactly %s", got, want)
		}
		if got := b.total(remainder); got.Cmp(big.NewInt(int64(len(b.segments)))) >= 0 {
			t.Errorf("wrote off %s with %d segments", got, len(b.segments))
		}
	})
}

func TestTotalsDoNotDependOnTheCadence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		often := drawBook(t)
		seldom := often.clone()
		end := often.wallet.SettledUS + rapid.Int64Range(1, 5*day).Draw(t, "span")
		for now := often.wallet.SettledUS; now < end; {
			now = min(end, now+rapid.Int64Range(1, day/2).Draw(t, "step"))
			before, err := often.at(now)
			must(t, err)
			must(t, often.roll(now))
			must(t, often.settle(now))
			if often.shown() != before.shown() {
				t.Fatalf("settling moved the shown balance from %d to %d", before.shown(), often.shown())
			}
		}
		must(t, seldom.roll(end))
		must(t, seldom.settle(end))
		if often.shown() != seldom.shown() || often.wallet.Receivable != seldom.wallet.Receivable {
			t.Errorf("settled often %d, once %d", often.shown(), seldom.shown())
		}
		if o, s := often.wallet.MonthSpent, seldom.wallet.MonthSpent; o != s {
			t.Errorf("spent this month %d when settled often, %d when once", o, s)
		}
	})
}

func TestWindowsAreContiguousWithinDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		now := b.wallet.SettledUS
		for range 4 {
			now += rapid.Int64Range(1, 2*day).Draw(t, "step")
			must(t, b.roll(now))
			must(t, b.settle(now))
		}
		last := map[uuid.UUID]int64{}
		for _, p := range b.postings {
			if p.Code != charge {
				continue
			}
			if dayStart(p.From) != dayStart(p.To-1) {
				t.Fatalf("a window crosses midnight: %d to %d", p.From, p.To)
			}
			if p.From < last[p.Segment] || p.To <= p.From {
				t.Fatalf("window %d to %d overlaps the one that ended at %d", p.From, p.To, last[p.Segment])
			}
			last[p.Segment] = p.To
		}
	})
}

func TestExhaustionIsTheFirstInstantWithoutMoney(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		x := b.wallet.ExhaustsUS
		if x == nil {
			if b.wallet.Burn > 0 && b.wallet.ExhaustedUS == nil && b.accrued(farthest) >= b.shown() {
				t.Fatal("the money runs out, without an instant")
			}
			return
		}
		if b.accrued(*x) < b.shown() {
			t.Errorf("at %d there is %d left", *x, b.shown()-b.accrued(*x))
		}
		if *x > b.lastStart() && b.accrued(*x-1) >= b.shown() {
			t.Errorf("the money ran out before %d", *x)
		}
		if *x > epoch+400*day {
			return // day by day, that is a long way
		}
		must(t, b.roll(*x))
		if b.wallet.Balance != 0 || b.wallet.PodBurn != 0 {
			t.Errorf("after the end: balance %d, pods burn %d", b.wallet.Balance, b.wallet.PodBurn)
		}
	})
}

func (b *book) lastStart() int64 {
	last := b.wallet.SettledUS
	for i := range b.segments {
		last = max(last, b.segments[i].StartedUS)
	}
	return last
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		now := b.wallet.SettledUS + rapid.Int64Range(1, day).Draw(t, "span")
		must(t, b.roll(now))
		must(t, b.settle(now))
		before, postings := b.wallet, len(b.postings)
		back := now - rapid.Int64Range(0, day).Draw(t, "back")
		must(t, b.roll(back))
		must(t, b.settle(back))
		if len(b.postings) != postings || b.wallet.Balance != before.Balance || b.wallet.SettledUS != before.SettledUS {
			t.Error("a clock that went back posted something")
		}
	})
}

func TestPodsNeverRunBelowZero(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		seen, err := b.at(b.wallet.SettledUS + rapid.Int64Range(1, 400*day).Draw(t, "span"))
		must(t, err)
		storage := new(big.Int)
		for _, p := range slices.Concat(b.postings, seen.postings) {
			if p.Code == charge && p.Kind == VolumeStorage {
				storage.Add(storage, big.NewInt(int64(p.Amount)))
			}
			if p.Code == charge && p.Kind == PodRuntime && p.Debit != b.wallet.AccountID {
				t.Fatal("a pod is owed for")
			}
		}
		if owed := big.NewInt(int64(seen.wallet.Receivable)); owed.Cmp(storage) > 0 {
			t.Errorf("owes %s, but storage cost %s", owed, storage)
		}
	})
}

func TestQuotasFillThePage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 1000).Draw(t, "limit")
		rows := rapid.IntRange(0, 1001)
		m, p, v := rows.Draw(t, "money"), rows.Draw(t, "pods"), rows.Draw(t, "storage")
		gotM, gotP, gotV := quotas(limit, m, p, v)
		if gotM < 0 || gotP < 0 || gotV < 0 || gotM > m || gotP > p || gotV > v {
			t.Fatalf("took %d %d %d of %d %d %d", gotM, gotP, gotV, m, p, v)
		}
		if sum := gotM + gotP + gotV; sum != min(limit, m+p+v) {
			t.Errorf("a page of %d has %d of %d rows", limit, sum, m+p+v)
		}
		if gotM < min(m, limit*3/10) {
			t.Errorf("only %d of %d money rows in a page of %d", gotM, m, limit)
		}
	})
	if m, p, v := quotas(1000, 500, 2000, 2000); m != 300 || p != 350 || v != 350 {
		t.Errorf("a full page has %d, %d and %d rows", m, p, v)
	}
}

func TestMonthsStartAtTheFirst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2028-02-29T23:59:59.999999Z": "2028-02-01T00:00:00Z",
		"2027-12-31T23:59:59Z":        "2027-12-01T00:00:00Z",
		"2028-01-01T00:00:00Z":        "2028-01-01T00:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339Nano, text)
		must(t, err)
		if got := time.UnixMicro(monthStart(at.UnixMicro())).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s is in the month that starts at %s, want %s", text, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for ran, want := range map[time.Duration]string{
		3*time.Hour + 12*time.Minute + 5*time.Second: "Pod runtime: 2x H100, 3 h 12 min",
		24 * time.Hour:         "Pod runtime: 2x H100, 24 h",
		90 * time.Second:       "Pod runtime: 2x H100, 1 min 30 s",
		2 * time.Minute:        "Pod runtime: 2x H100, 2 min",
		999 * time.Millisecond: "Pod runtime: 2x H100, 0 s",
	} {
		if got := PodRuntime.usedFor("2x H100", ran); got != want {
			t.Errorf("%v is told as %q, want %q", ran, got, want)
		}
	}
	if got := VolumeStorage.usedFor("", time.Hour); got != "Storage, 1 h" {
		t.Errorf("storage without a name is told as %q", got)
	}
}

func TestCursorsReadBack(t *testing.T) {
	t.Parallel()
	want := cursor{Money: 7, Pods: position{DayUS: epoch, Resource: id.New()}, Storage: top().Storage}
	if got, err := parseCursor(want.String()); err != nil || got != want {
		t.Errorf("read %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"x", "!!!", "bm8"} {
		if _, err := parseCursor(bad); err == nil {
			t.Errorf("cursor %q was read", bad)
		}
	}
}

// TestTheBalanceOnlyFallsBetweenCredits reads a book at two instants.
func TestTheBalanceOnlyFallsBetweenCredits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		first := b.wallet.SettledUS + rapid.Int64Range(0, 40*day).Draw(t, "first")
		sooner, err := b.at(first)
		must(t, err)
		later, err := b.at(first + rapid.Int64Range(0, 40*day).Draw(t, "span"))
		must(t, err)
		if later.shown() > sooner.shown() {
			t.Errorf("the balance rose from %d to %d", sooner.shown(), later.shown())
		}
	})
}
