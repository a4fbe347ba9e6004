package meter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/meter"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

func (y *yard) limit(scope team.Scope, limit money.USD) {
	y.t.Helper()
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		return y.w.SetLimitTx(ctx, tx, scope.TeamID(), scope.Plan(), limit, y.clock.Now())
	})
	y.wait(0)
}

func (y *yard) create(scope team.Scope) (err error) {
	y.t.Helper()
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		err = y.w.RequireTx(ctx, tx, scope.TeamID(), money.Cent, y.clock.Now())
		return nil
	})
	return err
}

func TestTheSpendLimitLandsAfterAnHour(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, pod := y.run(100*money.Dollar, 1_000_000)
	y.fleet.stop = func(ctx context.Context, tx pgx.Tx, _ uuid.UUID, at time.Time) error {
		return y.w.StopTx(ctx, tx, pod, at)
	}
	y.limit(scope, 10*money.Dollar)
	y.wait(8 * time.Hour)
	y.wantLetters("80% of this month's spend limit of Test team is used")
	y.wait(90 * time.Minute)
	y.wantLetters("95% of this month's spend limit of Test team is used")
	if err := y.create(scope); err != nil {
		t.Errorf("a pod was refused at 95 %%: %v", err)
	}
	y.wait(30 * time.Minute)
	if got := y.kinds(scope); got != "spend_limit" {
		t.Errorf("told %q", got)
	}
	if err := y.create(scope); !errors.Is(err, wallet.ErrSpendLimit) {
		t.Errorf("a pod at 100 %%: %v", err)
	}
	y.wait(59 * time.Minute)
	if len(y.fleet.off) > 0 {
		t.Fatalf("ended after 59 minutes: %v", y.fleet.off)
	}
	y.wait(40 * day)
	want := []off{{scope.TeamID(), noon.Add(11 * time.Hour), meter.ReasonSpendLimit}}
	if !slices.Equal(y.fleet.off, want) {
		t.Errorf("switched off %v, want %v", y.fleet.off, want)
	}
	if b := y.balance(scope); b.Balance != 89*money.Dollar {
		t.Errorf("balance %s, want 11 hours charged", b.Balance.Decimal())
	}
	y.wantLetters()
	if err := y.create(scope); err != nil {
		t.Errorf("a pod in the next month: %v", err)
	}
}

func TestAHigherLimitCancelsTheStop(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(100*money.Dollar, 1_000_000)
	y.limit(scope, 10*money.Dollar)
	y.wait(10*time.Hour + 30*time.Minute)
	y.limit(scope, 20*money.Dollar)
	y.wait(2 * time.Hour)
	if len(y.fleet.off) > 0 {
		t.Errorf("ended although the limit was raised: %v", y.fleet.off)
	}
	if err := y.create(scope); err != nil {
		t.Errorf("a pod after the limit was raised: %v", err)
	}
	y.letters()
	y.wait(4 * time.Hour)
	y.wantLetters("80% of this month's spend limit of Test team is used")
}

// The limit is used up, raised in time, and lowered again to what it was: the
// second hour is told like the first.
func TestASecondStopInAMonthIsToldAgain(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(100*money.Dollar, 1_000_000)
	y.limit(scope, 10*money.Dollar)
	y.wait(10 * time.Hour)
	y.limit(scope, 20*money.Dollar)
	y.wait(2 * time.Hour)
	y.limit(scope, 10*money.Dollar)
	list, err := y.notices.List(t.Context(), scope, y.clock.Now())
	if want := noon.Add(13 * time.Hour); err != nil || len(list) != 1 || list[0].Facts.EndsAt == nil || !list[0].Facts.EndsAt.Equal(want) {
		t.Errorf("told %+v (%v), want an end at %v", list, err, want)
	}
	y.must(y.notices.Dismiss(t.Context(), scope, list[0].ID))
	y.limit(scope, 10*money.Dollar) // the same stop
	if got := y.kinds(scope); got != "" {
		t.Errorf("one stop was told twice: %q", got)
	}
	y.wait(time.Hour)
	if len(y.fleet.off) != 1 {
		t.Errorf("switched off %v", y.fleet.off)
	}
}

func TestANewMonthCancelsTheStop(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clock.Advance(time.Date(2027, 3, 31, 23, 30, 0, 0, time.UTC).Sub(noon))
	scope, _ := y.run(100*money.Dollar, 1_000_000)
	y.limit(scope, money.Cent)
	y.wait(10 * time.Minute)
	if err := y.create(scope); !errors.Is(err, wallet.ErrSpendLimit) {
		t.Errorf("a pod at 100 %%: %v", err)
	}
	y.wait(25 * time.Minute) // the next month
	y.limit(scope, 50*money.Dollar)
	y.wait(40 * time.Minute)
	if len(y.fleet.off) > 0 {
		t.Errorf("ended although a new month began: %v", y.fleet.off)
	}
}

func TestTheLimitIsAtMostThePlans(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope := y.team(team.Hobby)
	for limit, ok := range map[money.USD]bool{0: false, -1: false, 1: true, 1000 * money.Dollar: true, 1000*money.Dollar + 1: false} {
		var err error
		y.tx(func(ctx context.Context, tx pgx.Tx) error {
			err = y.w.SetLimitTx(ctx, tx, scope.TeamID(), scope.Plan(), limit, y.clock.Now())
			return nil
		})
		if (err == nil) != ok || err != nil && !errors.Is(err, wallet.ErrLimit) {
			t.Errorf("limit %s: %v", limit.Decimal(), err)
		}
		if b := y.balance(scope); ok && b.MonthLimit != limit {
			t.Errorf("limit %s is shown as %s", limit.Decimal(), b.MonthLimit.Decimal())
		}
	}
}
