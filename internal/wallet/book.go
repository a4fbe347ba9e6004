package wallet

import (
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// forever is the end of a segment that goes on.
const forever = math.MaxInt64

// A walletRow is a row of table wallet.
type walletRow struct {
	TeamID       uuid.UUID  `db:"team_id"`
	AccountID    uuid.UUID  `db:"account_id"`
	ReceivableID uuid.UUID  `db:"receivable_account_id"`
	Balance      money.USD  `db:"balance_usd_micro"`
	Receivable   money.USD  `db:"receivable_usd_micro"`
	SettledUS    int64      `db:"settled_us"`
	DueUS        *int64     `db:"due_us"`
	Burn         money.Rate `db:"burn_usd_micro_per_hour"`
	PodBurn      money.Rate `db:"pod_burn_usd_micro_per_hour"`
	ExhaustsUS   *int64     `db:"exhausts_us"`
	ExhaustedUS  *int64     `db:"exhausted_us"`
	SwitchOffUS  *int64     `db:"switch_off_us"`
	MonthUS      int64      `db:"month_us"`
	MonthSpent   money.USD  `db:"month_spent_usd_micro"`
	MonthLimit   *money.USD `db:"month_limit_usd_micro"`
	Warned       int16      `db:"warned"`
	WarnUS       *int64     `db:"warn_us"`
	EmptyUS      *int64     `db:"empty_us"`
	ArrearsUS    *int64     `db:"arrears_us"`
	ArrearsStep  int16      `db:"arrears_step"`
	ArrearsEndUS *int64     `db:"arrears_end_us"`
	SpendUS      *int64     `db:"spend_us"`
	SpendMonthUS int64      `db:"spend_month_us"`
	SpendStage   int16      `db:"spend_stage"`
	LimitUS      *int64     `db:"limit_us"`
	LowBelow     *money.USD `db:"low_usd_micro"`
	LowUS        *int64     `db:"low_us"`
	LowTold      bool       `db:"low_told"`
}

// A segmentRow is a row of table segment.
type segmentRow struct {
	ID          uuid.UUID  `db:"id"`
	TeamID      uuid.UUID  `db:"team_id"`
	ResourceID  uuid.UUID  `db:"resource_id"`
	Kind        Kind       `db:"kind"`
	Rate        money.Rate `db:"rate_usd_micro_per_hour"`
	StartedUS   int64      `db:"started_us"`
	StoppedUS   *int64     `db:"stopped_us"`
	Description string     `db:"description"`

	change change
}

// A change says what a book did to a segment since it was read.
type change uint8

const (
	unchanged change = iota
	opened
	closed
)

func (s *segmentRow) end() int64 {
	if s.StoppedUS == nil {
		return forever
	}
	return *s.StoppedUS
}

// cost is the exact price of the segment from its start to t.
func (s *segmentRow) cost(t int64) money.USD {
	return money.Cost(s.Rate, s.StartedUS, min(t, s.end()))
}

// A code is what a transfer is for.
type code string

const (
	credit    code = "credit"
	charge    code = "charge"
	refund    code = "refund"
	debit     code = "debit"
	repayment code = "repayment" // a wallet pays its receivable: no row of the history
	remainder code = "writeoff"  // what flooring left above an empty wallet: the house's
)

// A posting is a transfer that a book wants made. The fields from Segment on
// are empty unless it is about usage.
type posting struct {
	Debit, Credit uuid.UUID
	Amount        money.USD
	Code          code
	Key           string
	Reference     string
	Description   string
	AtUS          int64

	Segment  uuid.UUID
	Resource uuid.UUID
	Kind     Kind
	From, To int64
	Day      int64 // of the history and the statements that it is entered in
}

// A mark is a window that cost less than a micro-dollar.
type mark struct {
	Kind     Kind
	Resource uuid.UUID
	From, To int64
}

// A book is a wallet with the segments that are not settled to their end, and
// what is to be written of it. It is a value: what happens to it is computed
// without a database, so that a read can look at a copy of the future.
type book struct {
	wallet   walletRow
	segments []segmentRow
	postings []posting
	marks    []mark
	dirty    bool
}

// clone returns a copy to simulate on, with nothing to be written.
func (b *book) clone() *book {
	return &book{wallet: b.wallet, segments: append([]segmentRow(nil), b.segments...)}
}

// shown is the balance a team sees, as of the watermark.
func (b *book) shown() money.USD { return b.wallet.Balance - b.wallet.Receivable }

// accrued is what the segments cost from the watermark to t, not posted yet.
func (b *book) accrued(t int64) money.USD {
	var sum money.USD
	for i := range b.segments {
		s := &b.segments[i]
		sum += s.cost(max(t, b.wallet.SettledUS)) - s.cost(b.wallet.SettledUS)
	}
	return sum
}

// at returns the book as it is at now: everything due done, all usage posted.
func (b *book) at(now int64) (*book, error) {
	c := b.clone()
	if err := c.roll(now); err != nil {
		return nil, err
	}
	return c, c.settle(now)
}

// roll does what was due by now: when the balance reached zero, everything up
// to that instant is posted and pods cost nothing from it on; storage costs
// nothing from seven days later on.
func (b *book) roll(now int64) error {
	if err := b.exhaust(now); err != nil {
		return err
	}
	return b.endStorage(now)
}

func (b *book) exhaust(now int64) error {
	x := b.wallet.ExhaustsUS
	if x == nil || *x > now {
		return nil
	}
	at := *x
	if err := b.settle(at); err != nil {
		return err
	}
	for i := range b.segments {
		if s := &b.segments[i]; s.Kind == PodRuntime && s.StoppedUS == nil {
			s.close(at)
		}
	}
	if b.wallet.SwitchOffUS == nil {
		b.wallet.SwitchOffUS = &at
	}
	if b.wallet.EmptyUS == nil {
		b.wallet.EmptyUS = &at
	}
	b.refresh(at)
	if b.wallet.Burn > 0 && b.wallet.ExhaustedUS == nil {
		b.wallet.ExhaustedUS = &at
		b.refresh(at)
	}
	return nil
}

// refresh recomputes what follows from balance and segments. It ends every
// change of them. now is when the change takes effect.
func (b *book) refresh(now int64) {
	w := &b.wallet
	b.dirty = true
	burnt := w.Burn
	w.Burn, w.PodBurn, w.DueUS = 0, 0, nil
	for i := range b.segments {
		s := &b.segments[i]
		if s.Rate > 0 && s.end() > w.SettledUS {
			due := dayStart(w.SettledUS) + day
			w.DueUS = &due
		}
		if s.StoppedUS != nil {
			continue
		}
		w.Burn += s.Rate
		if s.Kind == PodRuntime {
			w.PodBurn += s.Rate
		}
	}
	w.ExhaustsUS = nil
	if w.PodBurn > 0 || w.Burn > 0 && w.ExhaustedUS == nil {
		w.ExhaustsUS = b.exhausts(max(now, w.SettledUS))
	}
	if w.Burn != burnt {
		at := now
		w.SpendUS = &at
	}
	b.foresee(now)
	b.foreseeLow(now)
}

// receive books money that came in, at now: the receivable first.
func (b *book) receive(p posting, now int64) error {
	w := &b.wallet
	if w.ExhaustedUS != nil {
		if err := b.settle(now); err != nil {
			return err
		}
	}
	b.postings = append(b.postings, p)
	w.Balance += p.Amount
	if pay := min(w.Balance, w.Receivable); pay > 0 {
		b.postings = append(b.postings, posting{
			Debit: w.AccountID, Credit: w.ReceivableID, Amount: pay, Code: repayment,
			Key: "repay:" + p.Key, AtUS: p.AtUS,
		})
		w.Balance -= pay
		w.Receivable -= pay
	}
	if b.shown() >= 0 {
		b.redeem(now)
	}
	if b.shown() > 0 {
		w.EmptyUS = nil
	}
	b.refresh(now)
	return nil
}

// start opens a segment at an instant that is not before the watermark.
func (b *book) start(s Start) error {
	at := max(s.At.UnixMicro(), b.wallet.SettledUS)
	if open := b.open(s.ResourceID); open != nil {
		if open.Rate == s.Rate && open.Kind == s.Kind {
			return nil
		}
		return fmt.Errorf("start metering %s at %s/h: it is metered at %s/h already", s.ResourceID, s.Rate.Decimal(), open.Rate.Decimal())
	}
	if b.wallet.DueUS == nil {
		// Nothing ran before, so there is nothing to settle. The watermark stays
		// behind, for a start that was earlier but comes later.
		b.wallet.SettledUS = max(b.wallet.SettledUS, dayStart(at-money.MicrosPerHour))
	}
	b.segments = append(b.segments, segmentRow{
		ID: id.New(), TeamID: b.wallet.TeamID, ResourceID: s.ResourceID, Kind: s.Kind,
		Rate: s.Rate, StartedUS: at, Description: s.Description, change: opened,
	})
	b.refresh(at)
	return nil
}

// rerate ends the open segment of a resource and opens one at another rate at
// the same instant. It says whether there was an open one.
func (b *book) rerate(resource uuid.UUID, rate money.Rate, now int64) (bool, error) {
	open := b.open(resource)
	if open == nil {
		return false, nil
	}
	if open.Rate == rate {
		return true, nil
	}
	if err := b.bound(now); err != nil {
		return true, err
	}
	at := max(now, b.wallet.SettledUS, open.StartedUS)
	next := Start{
		TeamID: open.TeamID, ResourceID: resource, Kind: open.Kind, Rate: rate,
		At: time.UnixMicro(at), Description: open.Description,
	}
	open.close(at)
	return true, b.start(next)
}

// maxEnded is how many ended segments a wallet carries unsettled. A volume that
// grows with each sync ends thousands a day, and each read goes through them.
const maxEnded = 200

// bound settles to now when the wallet carries many ended segments.
func (b *book) bound(now int64) error {
	ended := 0
	for i := range b.segments {
		if b.segments[i].StoppedUS != nil {
			ended++
		}
	}
	if ended < maxEnded {
		return nil
	}
	return b.settle(now)
}

// close ends the segment at an instant, but not before it began.
func (s *segmentRow) close(at int64) {
	at = max(at, s.StartedUS)
	s.StoppedUS = &at
	if s.change == unchanged {
		s.change = closed
	}
}

// open returns the open segment of a resource, or nil.
func (b *book) open(resource uuid.UUID) *segmentRow {
	for i := range b.segments {
		if s := &b.segments[i]; s.ResourceID == resource && s.StoppedUS == nil {
			return s
		}
	}
	return nil
}
