package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const sqlFindClockOffset = `select offset_us from clock_offset where single`

// ClockOffset is how far business time runs ahead of wall time, for all nodes.
func ClockOffset(ctx context.Context, q Querier) (time.Duration, error) {
	var us int64
	if err := q.QueryRow(ctx, sqlFindClockOffset).Scan(&us); err != nil {
		return 0, fmt.Errorf("read the clock offset: %w", err)
	}
	return time.Duration(us) * time.Microsecond, nil
}

const sqlAdvanceClock = `
update clock_offset set offset_us = offset_us + $1 where single returning offset_us`

// AdvanceClockTx moves business time forward by d and returns the new offset.
// A negative d is an error: business time never runs backwards.
func AdvanceClockTx(ctx context.Context, tx pgx.Tx, d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("advance the clock by %s: it only moves forward", d)
	}
	var us int64
	if err := tx.QueryRow(ctx, sqlAdvanceClock, d.Microseconds()).Scan(&us); err != nil {
		return 0, fmt.Errorf("advance the clock: %w", err)
	}
	return time.Duration(us) * time.Microsecond, nil
}
