package wallet

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// sqlVerifyWallets recomputes every balance from the transfers alone.
const sqlVerifyWallets = `
with moved as (
  select account_id, sum(amount)::bigint as amount from (
    select credit_account_id as account_id, amount_usd_micro as amount from transfer
    union all
    select debit_account_id, -amount_usd_micro from transfer
  ) m group by account_id
)
select 'wallet of team ' || w.team_id || ': balance ' || w.balance_usd_micro || ', transfers make ' || coalesce(b.amount, 0)
  || '; owes ' || w.receivable_usd_micro || ', transfers make ' || -coalesce(r.amount, 0)
from wallet w
left join moved b on b.account_id = w.account_id
left join moved r on r.account_id = w.receivable_account_id
where w.balance_usd_micro <> coalesce(b.amount, 0) or w.receivable_usd_micro <> -coalesce(r.amount, 0)
order by 1`

// sqlVerifyAccounts finds transfers that name an account which is not there.
const sqlVerifyAccounts = `
select 'transfer ' || t.id || ' names an unknown account' from transfer t
where not exists (select from account a where a.id = t.debit_account_id)
  or not exists (select from account a where a.id = t.credit_account_id)
order by t.id`

// sqlVerifySegments compares what was posted for each segment with its exact
// cost up to the watermark: never above it, and below it by no more than was
// written off.
const sqlVerifySegments = `
with posted as (
  select segment_id, sum(case code when 'charge' then amount_usd_micro else -amount_usd_micro end)::bigint as amount
  from transfer where segment_id is not null and code in ('charge', 'refund') group by segment_id
), written as (
  select reference_id, sum(amount_usd_micro)::bigint as amount from transfer where code = 'writeoff' group by reference_id
), ran as (
  select s.id, greatest(0, least(coalesce(s.stopped_us, w.settled_us), w.settled_us) - s.started_us) as us,
    s.rate_usd_micro_per_hour as rate
  from segment s join wallet w on w.team_id = s.team_id
), exact as (
  select id, us / 3600000000 * rate + us % 3600000000 * rate / 3600000000 as amount from ran
)
select 'segment ' || e.id || ': posted ' || coalesce(p.amount, 0) || ' + ' || coalesce(o.amount, 0)
  || ' written off, exactly ' || e.amount
from exact e
left join posted p on p.segment_id = e.id
left join written o on o.reference_id = e.id::text
where coalesce(p.amount, 0) > e.amount or coalesce(p.amount, 0) + coalesce(o.amount, 0) < e.amount
order by 1`

// Verify recomputes the books from the transfers and the segments, and returns
// one line for each thing that is not as it must be. It reads everything: for
// an operator's command and for tests.
func (s *Service) Verify(ctx context.Context) ([]string, error) {
	var problems []string
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.Pool, snapshot, func(tx pgx.Tx) error {
		for _, sql := range []string{sqlVerifyWallets, sqlVerifyAccounts, sqlVerifySegments} {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return fmt.Errorf("verify the books: %w", err)
			}
			found, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return fmt.Errorf("verify the books: %w", err)
			}
			problems = append(problems, found...)
		}
		return nil
	})
	return problems, err
}
