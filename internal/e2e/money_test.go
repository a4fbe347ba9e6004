package e2e_test

import (
	"math/big"
	"testing"
	"time"

	"homeport.dev/homeport/internal/apitype"
)

// The second implementation of money: it knows the API's own figures and
// nothing of the wallet.

var microsPerHour = big.NewInt(3_600_000_000)

// micro reads a decimal of the API as whole micro-dollars.
func micro(t *testing.T, d apitype.Decimal) *big.Int {
	t.Helper()
	r, ok := new(big.Rat).SetString(string(d))
	if !ok {
		t.Fatalf("%q is no number", d)
	}
	r.Mul(r, big.NewRat(1_000_000, 1))
	if !r.IsInt() {
		t.Fatalf("%q has more than 6 decimals", d)
	}
	return r.Num()
}

// cost is floor(rate x elapsed) in micro-dollars.
func cost(rate *big.Int, from, to time.Time) *big.Int {
	elapsed := to.UnixMicro() - from.UnixMicro()
	if elapsed <= 0 {
		return new(big.Int)
	}
	c := new(big.Int).Mul(rate, big.NewInt(elapsed))
	return c.Div(c, microsPerHour)
}

// podCost is what a pod must have cost by the API's own timestamps.
func podCost(t *testing.T, p apitype.Pod, now time.Time) *big.Int {
	t.Helper()
	if p.ReadyAt == nil {
		return new(big.Int)
	}
	until := now
	if p.MeteredUntil != nil {
		until = *p.MeteredUntil
	}
	return cost(micro(t, p.Price), *p.ReadyAt, until)
}

// volumeCost is what a volume must have cost by its segments.
func volumeCost(t *testing.T, segments []apitype.Segment, now time.Time) *big.Int {
	t.Helper()
	sum := new(big.Int)
	for _, s := range segments {
		until := now
		if s.To != nil && s.To.Before(now) {
			until = *s.To
		}
		sum.Add(sum, cost(micro(t, s.Rate), s.From, until))
	}
	return sum
}

// checkMoney proves that the balance is what was paid less the exact integral
// of everything that ran, and that the transactions add up to it.
func (u *user) checkMoney(paid apitype.Decimal, pods []apitype.Pod, volumeIDs ...string) {
	u.t.Helper()
	ctx := u.t.Context()
	b := steady(u.t, func() (apitype.Balance, error) { return u.Balance(ctx) })
	want := micro(u.t, paid)
	for _, p := range pods {
		want.Sub(want, podCost(u.t, p, b.LastUpdated))
	}
	for _, v := range volumeIDs {
		segments := steady(u.t, func() ([]apitype.Segment, error) { return u.Segments(ctx, v) })
		want.Sub(want, volumeCost(u.t, segments, b.LastUpdated))
	}
	if got := micro(u.t, b.Balance); got.Cmp(want) != 0 {
		u.t.Errorf("the balance is %s micro-dollars, the integral says %s", got, want)
	}
	// The rows are read later: storage may have cost a little more by then.
	sum := new(big.Int)
	rows := steady(u.t, func() ([]apitype.Transaction, error) { return u.Transactions(ctx) })
	for _, r := range rows {
		sum.Add(sum, micro(u.t, r.Amount))
	}
	after := steady(u.t, func() (apitype.Balance, error) { return u.Balance(ctx) })
	if sum.Cmp(micro(u.t, b.Balance)) > 0 || sum.Cmp(micro(u.t, after.Balance)) < 0 {
		u.t.Errorf("the transactions add up to %s, the balance went from %s to %s", sum, b.Balance, after.Balance)
	}
}
