package wallet

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
)

// batchSize is how many wallets one transaction of the settlement locks.
const batchSize = 2000

const sqlFindDueDay = `
select min(due_us) from wallet
where due_us > $1 and due_us <= $2 and (exhausts_us is null or exhausts_us > due_us)
  and (exhausted_us is null or exhausted_us + 604800000000 > due_us)`

// SettleDue posts the usage of every UTC day that ended by now, the oldest
// first, and returns how many wallets it settled. Several nodes may run it at
// once: each takes the wallets that no one else holds. It may die anywhere and
// run again. Wallets that ran out before the day's end, or whose storage ends by
// then, wait for ExhaustTx and ArrearsTx.
func (s *Service) SettleDue(ctx context.Context, now time.Time) (int, error) {
	settled, last := 0, int64(0)
	for {
		var due *int64
		if err := s.Pool.QueryRow(ctx, sqlFindDueDay, last, now.UnixMicro()).Scan(&due); err != nil {
			return settled, fmt.Errorf("find the next day to settle: %w", err)
		}
		if due == nil {
			return settled, nil
		}
		n, err := s.settleDay(ctx, *due)
		settled += n
		if err != nil {
			return settled, err
		}
		s.Logger.InfoContext(ctx, "a day was settled", slog.Time("ended", clock.FromMicros(*due)), slog.Int("wallets", n))
		last = *due
	}
}

// othersPause is how long SettleAll waits between two looks at wallets that
// somebody else holds.
const othersPause = 20 * time.Millisecond

// SettleAll is SettleDue that returns only once every day that ended by now is
// posted, also of wallets that others were settling meanwhile.
func (s *Service) SettleAll(ctx context.Context, now time.Time) error {
	for {
		if _, err := s.SettleDue(ctx, now); err != nil {
			return err
		}
		var due *int64
		if err := s.Pool.QueryRow(ctx, sqlFindDueDay, 0, now.UnixMicro()).Scan(&due); err != nil {
			return fmt.Errorf("look for days that others settle: %w", err)
		}
		if due == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for days that others settle: %w", ctx.Err())
		case <-time.After(othersPause):
		}
	}
}

// settleDay settles the day that ends at an instant, batch by batch.
func (s *Service) settleDay(ctx context.Context, end int64) (int, error) {
	settled := 0
	for {
		n, err := s.settleBatch(ctx, end, batchSize)
		settled += n
		if err != nil || n == 0 {
			return settled, err
		}
	}
}

// sqlLockDue needs no order: it waits for nobody.
const sqlLockDue = `
select team_id from wallet
where due_us = $1 and (exhausts_us is null or exhausts_us > $1)
  and (exhausted_us is null or exhausted_us + 604800000000 > $1)
limit $2
for update skip locked`

// sqlSettleDay posts a day's usage of many wallets at once. It is book.window
// for wallets that do not run out within the window: a wallet that did,
// storage going on, owes instead of paying. Costs are money.Cost, inlined:
// a function call per row would double the time.
const sqlSettleDay = `
with due as materialized (
  select team_id, account_id, receivable_account_id, settled_us, exhausted_us
  from wallet where team_id = any(@teams)
), used as materialized (
  select d.team_id, d.exhausted_us, s.id, s.resource_id, s.kind,
    case when d.exhausted_us is null then d.account_id else d.receivable_account_id end as debit_account_id,
    greatest(s.started_us, d.settled_us) as from_us,
    least(s.stopped_us, @end) as to_us,
    s.id is not null and coalesce(s.stopped_us, 9223372036854775807) > @end as goes_on,
    (least(s.stopped_us, @end) - s.started_us) / 3600000000 * s.rate_usd_micro_per_hour
      + (least(s.stopped_us, @end) - s.started_us) % 3600000000 * s.rate_usd_micro_per_hour / 3600000000
      - (greatest(s.started_us, d.settled_us) - s.started_us) / 3600000000 * s.rate_usd_micro_per_hour
      - (greatest(s.started_us, d.settled_us) - s.started_us) % 3600000000 * s.rate_usd_micro_per_hour / 3600000000
      as amount
  from due d
  left join segment s on s.team_id = d.team_id and coalesce(s.stopped_us, 9223372036854775807) > d.settled_us
    and s.rate_usd_micro_per_hour > 0 and s.started_us < coalesce(s.stopped_us, 9223372036854775807)
), posted as (
  insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
    segment_id, from_us, to_us, day_us, description, created_at)
  select u.debit_account_id, case u.kind when 'pod-runtime' then @usage_pod::uuid else @usage_storage::uuid end,
    u.amount, 'charge', 'usage:' || u.id || ':' || u.from_us, u.team_id, u.kind, u.resource_id,
    u.id, u.from_us, u.to_us, @day_start::bigint, '', @at::timestamptz
  from used u where u.amount > 0 and u.from_us < u.to_us
), marked as (
  insert into day_mark (team_id, kind, day_us, resource_id, from_us, to_us)
  select u.team_id, u.kind, @day_start::bigint, u.resource_id, u.from_us, u.to_us
  from used u where u.amount = 0 and u.from_us < u.to_us
  order by u.from_us
  on conflict (team_id, kind, day_us, resource_id) do nothing
), spent as (
  select team_id, exhausted_us, coalesce(sum(amount) filter (where from_us < to_us), 0)::bigint as amount,
    bool_or(goes_on) as goes_on
  from used group by team_id, exhausted_us
)
update wallet w set
  balance_usd_micro = w.balance_usd_micro - case when p.exhausted_us is null then p.amount else 0 end,
  receivable_usd_micro = w.receivable_usd_micro + case when p.exhausted_us is null then 0 else p.amount end,
  settled_us = @end,
  due_us = case when p.goes_on then @end + 86400000000 end,
  month_spent_usd_micro = p.amount + case when w.month_us = @month::bigint then w.month_spent_usd_micro else 0 end,
  month_us = @month::bigint,
  version = w.version + 1
from spent p
where w.team_id = p.team_id`

// settleBatch settles some of the wallets that are due at the end of a day.
// Locking is a statement of its own: one that locks and posts would see the
// segments as they were before a writer it just missed.
func (s *Service) settleBatch(ctx context.Context, end int64, size int) (int, error) {
	settled := 0
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlLockDue, end, size)
		if err != nil {
			return fmt.Errorf("lock wallets to settle: %w", err)
		}
		teams, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return fmt.Errorf("lock wallets to settle: %w", err)
		}
		if settled = len(teams); settled == 0 {
			return nil
		}
		_, err = tx.Exec(ctx, sqlSettleDay, pgx.NamedArgs{
			"teams": teams, "end": end, "day_start": end - day, "month": monthStart(end - day),
			"at": clock.FromMicros(end), "usage_pod": usagePod, "usage_storage": usageStorage,
		})
		if err != nil {
			return fmt.Errorf("settle the day that ended at %s: %w", clock.FromMicros(end).Format(time.RFC3339), err)
		}
		fail.Point("wallet.settle.inserted")
		return nil
	})
	if err != nil {
		return 0, err
	}
	if settled > 0 {
		fail.Point("wallet.settle.committed")
	}
	return settled, nil
}
