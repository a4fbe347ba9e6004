package wallet

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/team"
)

// Balance is what the scope's team has at now, exact to the microsecond, with
// what it spends and how long that lasts. It reads one statement and locks
// nothing.
func (s *Service) Balance(ctx context.Context, scope team.Scope, now time.Time) (Balance, error) {
	b, err := readBook(ctx, s.Pool, scope.TeamID())
	if err != nil {
		return Balance{}, err
	}
	return s.balanceAt(b, scope, now)
}

// BalanceClaimed is Balance for a claim, which it proves in the same trip.
func (s *Service) BalanceClaimed(ctx context.Context, c team.Claim, now time.Time) (balance Balance, proven team.Scope, err error) {
	err = c.Read(ctx, s.Pool, sqlReadBook, []any{c.TeamID()}, func(scope team.Scope, rows pgx.Rows) error {
		b, err := collectBook(rows, scope.TeamID())
		if err != nil {
			return err
		}
		proven = scope
		balance, err = s.balanceAt(b, scope, now)
		return err
	})
	return balance, proven, err
}

func (s *Service) balanceAt(b *book, scope team.Scope, now time.Time) (Balance, error) {
	seen, err := b.at(now.UnixMicro())
	if err != nil {
		return Balance{}, err
	}
	balance := seen.balance(now)
	balance.MonthLimit = s.limit(seen, scope.Plan())
	return balance, nil
}

// balance is what a book that is settled to now shows.
func (b *book) balance(now time.Time) Balance {
	w := &b.wallet
	balance := Balance{Balance: b.shown(), SpendingPerHour: w.Burn, LastUpdated: now, MonthSpent: b.spentIn(now)}
	depletes := w.ExhaustsUS
	if depletes == nil && w.Burn > 0 {
		depletes = w.ExhaustedUS
	}
	if depletes != nil {
		at := clock.FromMicros(*depletes)
		left := math.Max(0, math.Floor(at.Sub(now).Hours()*100)/100)
		balance.DepletesAt, balance.HoursRemaining = &at, &left
	}
	return balance
}
