package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/pg"
)

// LandingNotice is how long before their end pods are told of it (server rule
// 36).
const LandingNotice = 15 * time.Minute

// A Landing is the instant at which a team's pods end as things stand.
type Landing struct {
	At    time.Time
	Limit bool // because of the month's spend limit, not of the balance
}

const sqlFindLanding = `
select exhausts_us, case when spend_stage = 100 and spend_month_us = $2 then limit_us + $3 end as limit_us
from wallet where team_id = $1 and pod_burn_usd_micro_per_hour > 0`

// LandingOf says when a team's pods end, if that is known and near: at most
// LandingNotice away for the balance, at most LimitGrace for the spend limit.
// It reads one row and locks nothing.
func (s *Service) LandingOf(ctx context.Context, db pg.Querier, teamID uuid.UUID, now time.Time) (*Landing, error) {
	var empty, limit *int64
	at := now.UnixMicro()
	err := db.QueryRow(ctx, sqlFindLanding, teamID, monthStart(at), LimitGrace.Microseconds()).Scan(&empty, &limit)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find when the pods of team %s end: %w", teamID, err)
	}
	return landing(empty, limit, at), nil
}

// landing is the pure part of LandingOf: the first of two instants that is
// still to come. A month that ends before the limit's hour is over cancels it.
func landing(empty, limit *int64, now int64) *Landing {
	var l *Landing
	if limit != nil && *limit > now && *limit < nextMonth(now) {
		l = &Landing{At: clock.FromMicros(*limit), Limit: true}
	}
	if empty != nil && *empty > now && *empty-now <= LandingNotice.Microseconds() && (l == nil || *empty <= l.At.UnixMicro()) {
		l = &Landing{At: clock.FromMicros(*empty)}
	}
	return l
}
