package pod_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// A plan that changes opens a new segment at the other price; what was before
// it costs what it cost.
func TestAPlansChangeReprices(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	pro := p.Rate
	if pro != 2_184_000 || p.ListRate != 2_600_000 {
		t.Fatalf("rate %s, list %s", pro.Decimal(), p.ListRate.Decimal())
	}
	reprice := func(plan team.Plan) time.Time {
		t.Helper()
		h.tx(func(tx pgx.Tx) error { return h.RepriceTx(t.Context(), tx, scope.TeamID(), plan, h.clock.Now()) })
		return h.clock.Now()
	}
	a.live(time.Minute)
	down := reprice(team.Hobby)
	reprice(team.Hobby)
	a.live(time.Minute)
	if got := h.find(scope, p).Rate; got != p.ListRate {
		t.Errorf("on Hobby the pod shows %s", got.Decimal())
	}
	up := reprice(team.Pro)
	a.live(time.Minute)
	if got := h.find(scope, p).Rate; got != pro {
		t.Errorf("back on Pro the pod shows %s", got.Decimal())
	}
	segments, err := h.wallet.Segments(t.Context(), scope, p.ID)
	h.must(err)
	if len(segments) != 3 || segments[0].Rate != pro || segments[1].Rate != p.ListRate || segments[2].Rate != pro ||
		!segments[1].From.Equal(down) || segments[1].To == nil || !segments[1].To.Equal(up) || segments[2].To != nil {
		t.Errorf("the segments are %+v", segments)
	}
}

// A pod that is still set up starts its meter at the price of the plan.
func TestAPodBeingSetUpIsRepriced(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 100*money.Dollar)
	p := h.rent(scope)
	h.tx(func(tx pgx.Tx) error { return h.RepriceTx(t.Context(), tx, scope.TeamID(), team.Hobby, h.clock.Now()) })
	if got := h.find(scope, p); got.Rate != p.ListRate || got.MaxRate < p.ListRate {
		t.Errorf("rate %s, at most %s", got.Rate.Decimal(), got.MaxRate.Decimal())
	}
}
