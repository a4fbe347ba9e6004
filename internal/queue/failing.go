package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/job"
)

// maxError is how many characters of an error are told.
const maxError = 300

// River keeps the jobs that it gave up for seven days.
const sqlListFailing = `
with failing as (
  select kind, state, finalized_at, scheduled_at, attempted_at, errors,
    row_number() over (partition by kind order by attempted_at desc nulls last, id desc) as n
  from river_job where state in ('retryable', 'discarded')
)
select kind, count(*) filter (where state = 'retryable') as retrying, count(*) filter (where state = 'discarded') as given_up,
  count(*) filter (where state = 'discarded' and finalized_at > $1) as given_up_day,
  coalesce(left(max(errors[array_upper(errors, 1)]->>'error') filter (where n = 1), 1000), '') as last_error,
  max(attempted_at) as last_at, min(scheduled_at) filter (where state = 'retryable') as next_at
from failing group by kind order by given_up_day desc, retrying desc, given_up desc, kind`

// Failing lists the kinds of jobs that fail, the worst first. now is wall time.
func Failing(ctx context.Context, pool *pgxpool.Pool, now time.Time) ([]job.Failing, error) {
	rows, _ := pool.Query(ctx, sqlListFailing, now.Add(-24*time.Hour))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[job.Failing])
	if err != nil {
		return nil, fmt.Errorf("list failing jobs: %w", err)
	}
	for i := range list {
		list[i].LastError = line(list[i].LastError)
	}
	return list, nil
}

// line is a text as one line of at most maxError characters.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxError {
		text = string(runes[:maxError-1]) + "…"
	}
	return text
}
