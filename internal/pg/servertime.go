package pg

import (
	"context"
	"fmt"
	"time"
)

// sqlServerTime is the one statement that may ask the database for the time:
// nodes follow its clock so that they agree with each other.
const sqlServerTime = `select clock_timestamp()`

// ServerTime reads the database's own clock, in UTC and cut to microseconds.
func ServerTime(ctx context.Context, q Querier) (time.Time, error) {
	var t time.Time
	if err := q.QueryRow(ctx, sqlServerTime).Scan(&t); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return t.UTC().Truncate(time.Microsecond), nil
}
