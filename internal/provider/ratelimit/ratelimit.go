// Package ratelimit shares a cloud's rate limits between the nodes of an
// installation: it is cloudapi.Limiter on PostgreSQL. It owns the table
// provider_rate, one row per account and class of calls. A turn is taken by one
// statement, so that no crash keeps a turn or a lock; rows are never removed,
// there are a few per account.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// A Shared limiter is the same for all nodes on one database.
type Shared struct {
	pool  *pgxpool.Pool
	clock *clock.Clock
}

// New returns the limiter.
func New(pool *pgxpool.Pool, c *clock.Clock) *Shared { return &Shared{pool, c} }

// sqlTakeTurn is Rate.Take on the row; it changes nothing and returns nothing
// when the turn would come after the caller's patience.
const sqlTakeTurn = `
insert into provider_rate as r (account, class, next_us)
values (@account, @class, @now::bigint + @every::bigint)
on conflict (account, class) do update set next_us = greatest(r.next_us, @now::bigint) + @every::bigint
where r.next_us - @now::bigint - @slack::bigint <= @patience::bigint
returning greatest(0, next_us - @every::bigint - @now::bigint - @slack::bigint)`

const sqlReadTurn = `
select greatest(0, next_us - @now::bigint - @slack::bigint) from provider_rate where account = @account and class = @class`

// forever is the patience of a caller without a deadline.
const forever = time.Hour

// Wait implements cloudapi.Limiter.
func (s *Shared) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	now := s.clock.Wall()
	patience := forever
	if deadline, ok := ctx.Deadline(); ok {
		patience = deadline.Sub(now.Add(-s.clock.Skew())) // deadlines are by this host's own clock
	}
	args := pgx.NamedArgs{
		"account": b.Account, "class": b.Class, "now": clock.Micros(now), "every": r.Every.Microseconds(),
		"slack": r.Slack().Microseconds(), "patience": patience.Microseconds(),
	}
	var wait int64
	err := s.pool.QueryRow(ctx, sqlTakeTurn, args).Scan(&wait)
	late := errors.Is(err, pgx.ErrNoRows)
	if late {
		err = s.pool.QueryRow(ctx, sqlReadTurn, args).Scan(&wait)
	}
	if err != nil {
		return fmt.Errorf("take a turn at %s: %w", b.Account, err)
	}
	if late {
		return cloudapi.Late(time.Duration(wait) * time.Microsecond)
	}
	return cloudapi.Pause(ctx, time.Duration(wait)*time.Microsecond)
}

const sqlHoldTurns = `
insert into provider_rate as r (account, class, next_us) values (@account, @class, @until)
on conflict (account, class) do update set next_us = greatest(r.next_us, excluded.next_us)`

// Hold implements cloudapi.Limiter.
func (s *Shared) Hold(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate, d time.Duration) error {
	until := s.clock.Wall().Add(d + r.Slack())
	_, err := s.pool.Exec(ctx, sqlHoldTurns, pgx.NamedArgs{"account": b.Account, "class": b.Class, "until": clock.Micros(until)})
	if err != nil {
		return fmt.Errorf("hold the calls to %s: %w", b.Account, err)
	}
	return nil
}
