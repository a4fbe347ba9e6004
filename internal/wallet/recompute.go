package wallet

// The recomputation is a second writing of the rules, in SQL alone: none of it
// calls what moved the money. Each statement returns the rows that are wrong.

// sqlVerifyBalances recomputes every balance from the transfers alone.
const sqlVerifyBalances = `
with moved as (
  select account_id, sum(amount)::bigint as amount from (
    select credit_account_id as account_id, amount_usd_micro as amount from transfer
    union all
    select debit_account_id, -amount_usd_micro from transfer
  ) m group by account_id
)
select 'balance' as kind, 'wallet ' || w.team_id as row, w.team_id,
  'the balance is ' || w.balance_usd_micro || ', its transfers make ' || coalesce(m.amount, 0) as detail,
  abs(w.balance_usd_micro - coalesce(m.amount, 0)) as off
from wallet w left join moved m on m.account_id = w.account_id
where w.balance_usd_micro <> coalesce(m.amount, 0)
order by w.team_id`

// sqlVerifyReceivables recomputes what every team owes.
const sqlVerifyReceivables = `
with moved as (
  select account_id, sum(amount)::bigint as amount from (
    select credit_account_id as account_id, -amount_usd_micro as amount from transfer
    union all
    select debit_account_id, amount_usd_micro from transfer
  ) m group by account_id
)
select 'receivable' as kind, 'wallet ' || w.team_id as row, w.team_id,
  'it owes ' || w.receivable_usd_micro || ', its transfers make ' || coalesce(m.amount, 0) as detail,
  abs(w.receivable_usd_micro - coalesce(m.amount, 0)) as off
from wallet w left join moved m on m.account_id = w.receivable_account_id
where w.receivable_usd_micro <> coalesce(m.amount, 0)
order by w.team_id`

// sqlVerifyBurn recomputes what every team spends per hour.
const sqlVerifyBurn = `
with open as (
  select team_id, sum(rate_usd_micro_per_hour)::bigint as every,
    coalesce(sum(rate_usd_micro_per_hour) filter (where kind = 'pod-runtime'), 0)::bigint as pods
  from segment where stopped_us is null group by team_id
)
select 'burn' as kind, 'wallet ' || w.team_id as row, w.team_id,
  'it spends ' || w.burn_usd_micro_per_hour || ' per hour, pods ' || w.pod_burn_usd_micro_per_hour
    || '; its open segments make ' || coalesce(o.every, 0) || ', pods ' || coalesce(o.pods, 0) as detail,
  0::bigint as off
from wallet w left join open o on o.team_id = w.team_id
where w.burn_usd_micro_per_hour <> coalesce(o.every, 0) or w.pod_burn_usd_micro_per_hour <> coalesce(o.pods, 0)
order by w.team_id`

// sqlVerifyExhaustion finds deadlines at which there would still be money.
const sqlVerifyExhaustion = `
with due as (
  select w.team_id, w.exhausts_us, w.balance_usd_micro - w.receivable_usd_micro as have, sum(
      (least(s.stopped_us, w.exhausts_us) - s.started_us) / 3600000000 * s.rate_usd_micro_per_hour
      + (least(s.stopped_us, w.exhausts_us) - s.started_us) % 3600000000 * s.rate_usd_micro_per_hour / 3600000000
      - greatest(0, w.settled_us - s.started_us) / 3600000000 * s.rate_usd_micro_per_hour
      - greatest(0, w.settled_us - s.started_us) % 3600000000 * s.rate_usd_micro_per_hour / 3600000000
    ) filter (where s.started_us < w.exhausts_us) as accrued
  from wallet w
  left join segment s on s.team_id = w.team_id and coalesce(s.stopped_us, 9223372036854775807) > w.settled_us
  where w.exhausts_us is not null
  group by w.team_id
)
select 'exhaustion' as kind, 'wallet ' || team_id as row, team_id,
  'its pods end at ' || exhausts_us || ' us, when ' || (have - coalesce(accrued, 0)) || ' are left' as detail,
  0::bigint as off
from due where coalesce(accrued, 0) < have
order by team_id`

// sqlVerifyParties finds transfers between accounts that such a transfer may
// not be between, and usage that is not of the segment it names.
const sqlVerifyParties = `
with seen as (
  select t.id, t.team_id, t.code, d.id as debit_id, c.id as credit_id, s.id as segment_id,
    d.kind as debit_kind, c.kind as credit_kind, t.kind as kind, t.segment_id as names,
    d.team_id is null or d.team_id = t.team_id as debit_own, c.team_id is null or c.team_id = t.team_id as credit_own,
    s.team_id = t.team_id and s.resource_id = t.resource_id and s.kind = t.kind as same
  from transfer t
  left join account d on d.id = t.debit_account_id
  left join account c on c.id = t.credit_account_id
  left join segment s on s.id = t.segment_id
)
select 'parties' as kind, 'transfer ' || id as row, team_id,
  case
    when debit_id is null or credit_id is null then 'it names an account that is not there'
    when not debit_own or not credit_own then 'it names an account of another team'
    when names is not null and segment_id is null then 'it names a segment that is not there'
    when not same then 'it is not of the team, resource and kind of its segment'
    else 'a ' || code || ' may not go from ' || debit_kind || ' to ' || credit_kind
  end as detail,
  0::bigint as off
from seen
where debit_id is null or credit_id is null or not debit_own or not credit_own
  or names is not null and (segment_id is null or not same)
  or code in ('charge', 'refund') and names is null
  or not coalesce(case code
    when 'credit' then debit_kind in ('stripe_clearing', 'test_clearing', 'promo', 'dispute') and credit_kind = 'wallet'
    when 'charge' then debit_kind in ('wallet', 'receivable')
      and credit_kind = case kind when 'pod-runtime' then 'usage_pod' else 'usage_storage' end
    when 'refund' then debit_kind = case kind when 'pod-runtime' then 'usage_pod' else 'usage_storage' end
      and credit_kind = 'wallet'
    when 'debit' then debit_kind in ('wallet', 'receivable')
      and credit_kind in ('stripe_clearing', 'test_clearing', 'promo', 'dispute')
    when 'repayment' then debit_kind = 'wallet' and credit_kind = 'receivable'
    when 'writeoff' then debit_kind = 'writeoff' and credit_kind in ('usage_pod', 'usage_storage')
  end, false)
order by id`

// sqlVerifyWindows compares every charge with the exact cost of its window,
// and the windows of a segment with each other. What was not worth a
// micro-dollar has no charge, so a gap between windows may be there as long as
// it cost nothing that was not written off.
const sqlVerifyWindows = `
with written as (
  select reference_id, split_part(key, ':', 4)::bigint as from_us, sum(amount_usd_micro)::bigint as amount
  from transfer where code = 'writeoff' group by 1, 2
), windows as (
  select t.id, t.team_id, t.segment_id, t.from_us, t.to_us, t.amount_usd_micro as amount,
    coalesce(lag(t.to_us) over (partition by t.segment_id order by t.from_us, t.id), s.started_us) as before_us,
    s.started_us, s.rate_usd_micro_per_hour as rate, s.id as known
  from transfer t left join segment s on s.id = t.segment_id
  where t.code = 'charge'
), priced as (
  select w.id, w.team_id, w.segment_id, w.from_us, w.to_us, w.before_us, w.started_us,
    w.amount + coalesce(o.amount, 0) as amount,
    (w.to_us - w.started_us) / 3600000000 * w.rate + (w.to_us - w.started_us) % 3600000000 * w.rate / 3600000000
      - (w.from_us - w.started_us) / 3600000000 * w.rate - (w.from_us - w.started_us) % 3600000000 * w.rate / 3600000000
      as exact,
    (w.from_us - w.started_us) / 3600000000 * w.rate + (w.from_us - w.started_us) % 3600000000 * w.rate / 3600000000
      - (w.before_us - w.started_us) / 3600000000 * w.rate - (w.before_us - w.started_us) % 3600000000 * w.rate / 3600000000
      as skipped
  from windows w left join written o on o.reference_id = w.segment_id::text and o.from_us = w.from_us
  where w.known is not null
), told as (
  select p.id, p.team_id, p.segment_id, p.from_us, p.to_us, p.before_us, p.started_us, p.amount, p.exact,
    p.skipped - case when p.skipped <= 0 then 0 else coalesce((select sum(o.amount) from written o
      where o.reference_id = p.segment_id::text and o.from_us >= p.before_us and o.from_us < p.from_us
        and not exists (select from transfer x where x.segment_id = p.segment_id and x.from_us = o.from_us)), 0)::bigint
    end as missing
  from priced p
)
select case when from_us < before_us or amount <> exact then 'window' else 'gap' end as kind,
  'transfer ' || id as row, team_id,
  case
    when from_us < started_us then 'its window begins at ' || from_us || ' us, before its segment does at ' || started_us
    when from_us < before_us then 'its window begins at ' || from_us || ' us, within the one before, which ends at ' || before_us
    when amount <> exact then 'it is ' || amount || ' for its window from ' || from_us || ' to ' || to_us || ' us, exactly ' || exact
    else 'of segment ' || segment_id || ', what ran from ' || before_us || ' to ' || from_us || ' us, before it, was not posted: '
      || missing
  end as detail,
  0::bigint as off
from told where from_us < before_us or amount <> exact or missing <> 0
order by id`

// sqlVerifyTotals compares what was posted for each segment with its exact
// cost up to the watermark: never above it, and below it by no more than was
// written off.
const sqlVerifyTotals = `
with posted as (
  select segment_id, sum(case code when 'charge' then amount_usd_micro else -amount_usd_micro end)::bigint as amount
  from transfer where segment_id is not null and code in ('charge', 'refund') group by segment_id
), written as (
  select reference_id, sum(amount_usd_micro)::bigint as amount from transfer where code = 'writeoff' group by reference_id
), ran as (
  select s.id, s.team_id, greatest(0, least(coalesce(s.stopped_us, w.settled_us), w.settled_us) - s.started_us) as us,
    s.rate_usd_micro_per_hour as rate
  from segment s join wallet w on w.team_id = s.team_id
), exact as (
  select id, team_id, us / 3600000000 * rate + us % 3600000000 * rate / 3600000000 as amount from ran
)
select 'total' as kind, 'segment ' || e.id as row, e.team_id,
  'posted ' || coalesce(p.amount, 0) || ' + ' || coalesce(o.amount, 0) || ' written off, exactly ' || e.amount as detail,
  greatest(coalesce(p.amount, 0) - e.amount, e.amount - coalesce(p.amount, 0) - coalesce(o.amount, 0)) as off
from exact e
left join posted p on p.segment_id = e.id
left join written o on o.reference_id = e.id::text
where coalesce(p.amount, 0) > e.amount or coalesce(p.amount, 0) + coalesce(o.amount, 0) < e.amount
order by e.id`

// sqlVerifySegments finds a resource that cost two rates at once, and segments
// of a wallet that is not there.
const sqlVerifySegments = `
with ordered as (
  select id, team_id, resource_id, started_us,
    lag(coalesce(stopped_us, 9223372036854775807)) over (partition by resource_id order by started_us, id) as before_us
  from segment where coalesce(stopped_us, 9223372036854775807) > started_us
)
select 'segment' as kind, 'segment ' || s.id as row, s.team_id,
  case when w.team_id is null then 'its team has no wallet'
    else 'it begins at ' || s.started_us || ' us, within the segment before of resource ' || s.resource_id end as detail,
  0::bigint as off
from ordered s left join wallet w on w.team_id = s.team_id
where w.team_id is null or s.started_us < s.before_us
order by s.id`
