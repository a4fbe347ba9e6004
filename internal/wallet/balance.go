package wallet

import (
	"context"
	"math"
	"time"

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
	seen, err := b.at(now.UnixMicro())
	if err != nil {
		return Balance{}, err
	}
	w := &seen.wallet
	balance := Balance{
		Balance: seen.shown(), SpendingPerHour: w.Burn, LastUpdated: now,
		MonthSpent: seen.spentIn(now), MonthLimit: s.limit(seen, scope.Plan()),
	}
	depletes := w.ExhaustsUS
	if depletes == nil && w.Burn > 0 {
		depletes = w.ExhaustedUS
	}
	if depletes != nil {
		at := clock.FromMicros(*depletes)
		left := math.Max(0, math.Floor(at.Sub(now).Hours()*100)/100)
		balance.DepletesAt, balance.HoursRemaining = &at, &left
	}
	return balance, nil
}
