package wallet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

func TestRequirements(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.proScope()
	require := func(least money.USD) error {
		return h.try(func(ctx context.Context, tx pgx.Tx) error {
			return h.w.RequireTx(ctx, tx, scope.TeamID(), least, h.clock.Now())
		})
	}
	if err := require(money.Cent); !errors.Is(err, wallet.ErrInsufficient) {
		t.Errorf("with nothing: %v", err)
	}
	h.credit(scope.TeamID(), money.Cent)
	if err := require(money.Cent); err != nil {
		t.Errorf("with a cent: %v", err)
	}
	h.credit(scope.TeamID(), 20_000*money.Dollar)
	hold := wallet.Hold{TeamID: scope.TeamID(), ReferenceID: "dp_1"}
	for range 2 {
		h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.HoldTx(ctx, tx, hold, h.clock.Now()) })
	}
	if err := require(money.Cent); !errors.Is(err, wallet.ErrHeld) {
		t.Errorf("while a dispute is open: %v", err)
	}
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.LiftTx(ctx, tx, hold) })
	h.start(scope.TeamID(), wallet.PodRuntime, 1000*perHour)
	h.clock.Advance(10*time.Hour - time.Microsecond)
	if err := require(money.Cent); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	h.clock.Advance(time.Microsecond)
	if err := require(money.Cent); !errors.Is(err, wallet.ErrSpendLimit) {
		t.Errorf("at the month's limit: %v", err)
	}
	if b := h.balance(scope); b.MonthSpent != 10_000*money.Dollar || b.MonthLimit != 10_000*money.Dollar {
		t.Errorf("spent %s of %s", b.MonthSpent, b.MonthLimit)
	}
	h.clock.Advance(18 * 24 * time.Hour) // April
	h.credit(scope.TeamID(), 10*money.Dollar)
	if b := h.balance(scope); b.MonthSpent != 0 {
		t.Errorf("spent %s in a new month", b.MonthSpent)
	}
}

func TestSpendingOfAMonthStartsAtItsFirstInstant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 5_000*money.Dollar)
	h.start(scope.TeamID(), wallet.VolumeStorage, perHour)
	h.clock.Advance(18 * 24 * time.Hour) // 1 April, noon
	for range 2 {
		if b := h.balance(scope); b.MonthSpent != 12*money.Dollar {
			t.Errorf("spent %s in April, want $12", b.MonthSpent)
		}
		h.settle()
	}
}

func TestMetersThatDoNotRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	teamID := h.wallet()
	h.stop(id.New(), h.clock.Now())
	err := h.try(func(ctx context.Context, tx pgx.Tx) error { return h.w.RerateTx(ctx, tx, id.New(), 5, h.clock.Now()) })
	if !errors.Is(err, wallet.ErrNotMetered) {
		t.Errorf("rerate of nothing: %v", err)
	}
	for _, rate := range []money.Rate{-1, money.MaxRate + 1} {
		err := h.try(func(ctx context.Context, tx pgx.Tx) error {
			return h.w.StartTx(ctx, tx, wallet.Start{TeamID: teamID, ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: rate, At: noon})
		})
		if err == nil {
			t.Errorf("rate %d was taken", rate)
		}
	}
	h.credit(teamID, money.Dollar)
	start := wallet.Start{TeamID: teamID, ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: perHour, At: noon}
	for range 2 {
		h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.StartTx(ctx, tx, start) })
	}
	start.Rate *= 2
	if err := h.try(func(ctx context.Context, tx pgx.Tx) error { return h.w.StartTx(ctx, tx, start) }); err == nil {
		t.Error("one resource was started at two rates")
	}
}

func TestSegmentsOfAResource(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope, stranger := h.scope(), h.scope()
	h.credit(scope.TeamID(), money.Dollar)
	volume := h.start(scope.TeamID(), wallet.VolumeStorage, 0)
	h.clock.Advance(time.Hour)
	h.rerate(volume, 200)
	h.rerate(volume, 400) // at the same instant: the first has no length
	got, err := h.w.Segments(t.Context(), scope, volume)
	if err != nil || len(got) != 2 || got[0].Rate != 0 || !got[0].To.Equal(noon.Add(time.Hour)) ||
		got[1].Rate != 400 || !got[1].From.Equal(noon.Add(time.Hour)) || got[1].To != nil {
		t.Errorf("%+v (%v)", got, err)
	}
	if got, err := h.w.Segments(t.Context(), stranger, volume); err != nil || len(got) != 0 {
		t.Errorf("a stranger sees %+v (%v)", got, err)
	}
}

func TestOpeningAgainKeepsTheWallet(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), money.Dollar)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			err := h.try(func(ctx context.Context, tx pgx.Tx) error { return h.w.OpenTx(ctx, tx, scope.TeamID(), h.clock.Now()) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	h.wantBalance(scope, money.Dollar)
}
