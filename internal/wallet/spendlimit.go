package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// LimitGrace is how long pods go on once the month's limit is used up (server
// rule 38).
const LimitGrace = 60 * time.Minute

// ErrLimit occurs when a spend limit is not above zero, or not at or below the
// plan's.
var ErrLimit = fault.New(fault.Invalid, "spend_limit_invalid", "The spend limit must be above $0 and at most your plan's.")

// What is told of the limit, in percent. stageLanded follows the last one: the
// pods were ended.
var spendStages = [...]int16{80, 95, 100}

const stageLanded = 101

// A Spend is what came of a look at a month's spend.
type Spend struct {
	At    time.Time
	Stage int  // reached just now: 80, 95 or 100; 0: none
	Land  bool // the pods' time is over: they end at At
	Spent money.USD
	Limit money.USD
	// Spending is what was spent per hour then.
	Spending money.Rate
	// LandsAt is when the pods end; zero unless the limit is used up.
	LandsAt time.Time
}

// SpendTx looks at what a team spent this month, if a look is due by now, and
// computes when the next one is. The caller, who holds the locks of the team's
// pods, ends them where Land says so.
func (s *Service) SpendTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (Spend, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return Spend{}, err
	}
	w := &b.wallet
	if w.SpendUS == nil || *w.SpendUS > now.UnixMicro() {
		return Spend{}, nil
	}
	plan, err := team.PlanTx(ctx, tx, teamID)
	if err != nil {
		return Spend{}, err
	}
	seen, err := b.at(*w.SpendUS)
	if err != nil {
		return Spend{}, err
	}
	b.dirty = true
	out := w.look(seen, s.limit(b, plan))
	return out, s.save(ctx, tx, b)
}

// look is the pure part of SpendTx: seen is the book at the instant of the look.
func (w *walletRow) look(seen *book, limit money.USD) Spend {
	at := *w.SpendUS
	month := monthStart(at)
	spent := seen.spentIn(clock.FromMicros(at))
	out := Spend{At: clock.FromMicros(at), Spent: spent, Limit: limit, Spending: seen.wallet.Burn}
	if w.SpendMonthUS != month {
		w.SpendMonthUS, w.SpendStage, w.LimitUS = month, 0, nil
	}
	if limit == 0 || spent < limit {
		w.LimitUS = nil
		w.SpendStage = min(w.SpendStage, 95)
	}
	stage := int16(0)
	for _, p := range spendStages {
		if limit > 0 && spent >= part(limit, p) {
			stage = p
		}
	}
	if stage > w.SpendStage {
		w.SpendStage, out.Stage = stage, int(stage)
	}
	if w.SpendStage >= 100 && w.LimitUS == nil {
		w.LimitUS = &at
	}
	if w.LimitUS != nil {
		lands := *w.LimitUS + LimitGrace.Microseconds()
		out.LandsAt = clock.FromMicros(lands)
		if w.SpendStage == 100 && lands <= at {
			w.SpendStage, out.Land = stageLanded, true
		}
	}
	w.SpendUS = w.nextLook(seen, limit, spent, at)
	return out
}

// nextLook is when the next percentage is reached, or the pods' time is over,
// or the next month begins; nil when nothing runs and nothing was reached.
func (w *walletRow) nextLook(seen *book, limit, spent money.USD, at int64) *int64 {
	next := nextMonth(at)
	if w.SpendStage == 0 && seen.wallet.Burn == 0 {
		return nil
	}
	if w.SpendStage == 100 {
		lands := *w.LimitUS + LimitGrace.Microseconds()
		next = min(next, lands)
	}
	for _, p := range spendStages {
		if limit > 0 && p > w.SpendStage {
			if reached, ok := seen.reaches(part(limit, p)-spent, at, next); ok {
				next = reached
			}
			break
		}
	}
	return &next
}

// reaches is the first instant, after at and before the end, at which the usage
// since at comes to an amount. The book is settled to at.
func (b *book) reaches(amount money.USD, at, end int64) (int64, bool) {
	if b.accrued(end-1) < amount {
		return 0, false
	}
	low, high := at, end-1
	for low+1 < high {
		mid := low + (high-low)/2
		if b.accrued(mid) >= amount {
			high = mid
			continue
		}
		low = mid
	}
	return high, true
}

// part is a number of percent of a limit, rounded up.
func part(limit money.USD, percent int16) money.USD {
	return limit/100*money.USD(percent) + (limit%100*money.USD(percent)+99)/100
}

// nextMonth is the UTC midnight that ends the calendar month of us.
func nextMonth(us int64) int64 {
	t := clock.FromMicros(us)
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

const sqlSetLimit = `
update wallet set month_limit_usd_micro = $2, spend_us = $3, spend_stage = 0, next_us = least(next_us, $3), version = version + 1
where team_id = $1`

// SetLimitTx gives a team a monthly spend limit of its own, at most its plan's;
// the plan's own amount means the plan's. The team is locked. The fault is
// ErrLimit.
func (s *Service) SetLimitTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan team.Plan, limit money.USD, now time.Time) error {
	most := s.PlanLimit(plan)
	if limit <= 0 {
		return ErrLimit
	}
	if most > 0 && limit > most {
		return ErrLimit.With("The spend limit of this team can be at most $%s per month.", most.Decimal())
	}
	own := &limit
	if limit == most {
		own = nil
	}
	if _, err := tx.Exec(ctx, sqlSetLimit, teamID, own, now.UnixMicro()); err != nil {
		return fmt.Errorf("set the spend limit of team %s: %w", teamID, err)
	}
	return nil
}

const sqlLookAgain = `
update wallet set spend_us = $2, spend_stage = 0, next_us = least(next_us, $2), version = version + 1 where team_id = $1`

// LookTx has a team's month looked at again: its plan, and so its limit,
// changed.
func (s *Service) LookTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlLookAgain, teamID, now.UnixMicro()); err != nil {
		return fmt.Errorf("look at the spend of team %s: %w", teamID, err)
	}
	return nil
}

// PlanLimit is the monthly spend limit of a plan; 0: none.
func (s *Service) PlanLimit(plan team.Plan) money.USD {
	if plan == team.Free {
		plan = team.Hobby
	}
	return s.Limits[plan]
}
