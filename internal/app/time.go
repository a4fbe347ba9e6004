package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// advanceClock moves business time forward for all nodes. What came due is done
// when it returns.
func (a *App) advanceClock(ctx context.Context, by time.Duration) (time.Duration, error) {
	var offset time.Duration
	err := pg.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		var err error
		offset, err = pg.AdvanceClockTx(ctx, tx, by)
		return err
	})
	if err != nil {
		return 0, err
	}
	a.clock.SetOffset(offset)
	if err := a.meter.RunDue(ctx, a.clock.Now()); err != nil {
		return offset, err
	}
	if err := a.followSubscriptions(ctx); err != nil {
		return offset, err
	}
	if err := a.meter.FollowSweep(ctx); err != nil { // what other prices and limits made due
		return offset, err
	}
	if err := a.payments.FollowBook(ctx); err != nil {
		return offset, err
	}
	return offset, a.wallet.CheckNight(ctx, a.clock.Now())
}

// followSubscriptions bills the months that are over, and lets payments see
// what became of them without waiting for the events.
func (a *App) followSubscriptions(ctx context.Context) error {
	if a.testpay != nil {
		if err := a.testpay.RenewDue(ctx); err != nil {
			return err
		}
	}
	if err := a.payments.ReadOpen(ctx); err != nil {
		return err
	}
	if err := a.payments.FollowGraces(ctx); err != nil {
		return err
	}
	return a.payments.ExpireTeams(ctx)
}
