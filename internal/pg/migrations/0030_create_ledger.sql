-- The books: double entry, as one-row transfers between accounts. Amounts are
-- whole micro-USD, instants in arithmetic are microseconds since the epoch.

-- owner: wallet
create table account (
  id uuid primary key,
  team_id uuid,
  kind text not null,
  constraint account_kind check (case when team_id is null
    then kind in ('stripe_clearing', 'test_clearing', 'usage_pod', 'usage_storage', 'dispute', 'promo', 'writeoff')
    else kind in ('wallet', 'receivable') end),
  constraint account_once unique nulls not distinct (team_id, kind),
  constraint account_of_team unique (id, team_id)
);

-- The accounts of the house. They carry no balance row: it would be the one
-- row that every settlement fights for.
insert into account (id, team_id, kind) values
  ('00000000-0000-4000-8000-000000000001', null, 'stripe_clearing'),
  ('00000000-0000-4000-8000-000000000002', null, 'test_clearing'),
  ('00000000-0000-4000-8000-000000000003', null, 'usage_pod'),
  ('00000000-0000-4000-8000-000000000004', null, 'usage_storage'),
  ('00000000-0000-4000-8000-000000000005', null, 'dispute'),
  ('00000000-0000-4000-8000-000000000006', null, 'promo'),
  ('00000000-0000-4000-8000-000000000007', null, 'writeoff');

-- The one balance row of a team. Its lock orders everything that happens to
-- the team's money.
-- owner: wallet
create table wallet (
  team_id uuid primary key,
  account_id uuid not null,
  receivable_account_id uuid not null,
  balance_usd_micro bigint not null check (balance_usd_micro >= 0),
  -- what the team owes beyond its balance: the balance of its receivable account
  receivable_usd_micro bigint not null check (receivable_usd_micro >= 0),
  -- everything before this instant is posted
  settled_us bigint not null check (settled_us > 0),
  -- the next midnight, while there is something to post at it
  due_us bigint check (due_us > settled_us),
  -- the open segments' rates, all and those of pods
  burn_usd_micro_per_hour bigint not null check (burn_usd_micro_per_hour >= 0),
  pod_burn_usd_micro_per_hour bigint not null check (pod_burn_usd_micro_per_hour >= 0),
  -- the instant at which the balance reaches zero as things stand
  exhausts_us bigint check (exhausts_us >= settled_us),
  -- storage goes on without money since this instant
  exhausted_us bigint,
  -- the team's pods have to be switched off: their meters ended at this instant
  switch_off_us bigint,
  -- usage posted in the calendar month that starts at month_us, less refunds
  month_us bigint not null,
  month_spent_usd_micro bigint not null,
  -- the limit an admin set; null: the plan's
  month_limit_usd_micro bigint check (month_limit_usd_micro > 0),
  version bigint not null,
  created_at timestamptz not null,
  constraint wallet_account foreign key (account_id, team_id) references account (id, team_id),
  constraint wallet_receivable foreign key (receivable_account_id, team_id) references account (id, team_id),
  constraint wallet_two_accounts check (account_id <> receivable_account_id),
  constraint wallet_owes_only_when_empty check (balance_usd_micro = 0 or receivable_usd_micro = 0),
  constraint wallet_pod_burn_is_a_part check (pod_burn_usd_micro_per_hour <= burn_usd_micro_per_hour)
) with (fillfactor = 50);
create index wallet_due on wallet (due_us) where due_us is not null;
create index wallet_exhausts on wallet (exhausts_us) where exhausts_us is not null;
create index wallet_switch_off on wallet (switch_off_us) where switch_off_us is not null;

-- Reasons for which a team may not start pods: an open dispute, a spend limit
-- that was reached, frozen storage.
-- owner: wallet
create table wallet_hold (
  team_id uuid not null references wallet,
  kind text not null check (kind in ('dispute', 'spend_limit', 'frozen')),
  reference_id text not null,
  placed_at timestamptz not null,
  primary key (team_id, kind, reference_id)
);

-- A stretch of time in which a resource costs one rate.
-- owner: wallet
create table segment (
  id uuid primary key,
  team_id uuid not null references wallet,
  resource_id uuid not null,
  kind text not null check (kind in ('pod-runtime', 'volume-storage')),
  rate_usd_micro_per_hour bigint not null check (rate_usd_micro_per_hour between 0 and 2500000000),
  started_us bigint not null check (started_us > 0),
  stopped_us bigint check (stopped_us >= started_us),
  description text not null
);
create unique index segment_open_once on segment (resource_id) where stopped_us is null;
create index segment_unsettled on segment (team_id, (coalesce(stopped_us, 9223372036854775807)));
create index segment_of_resource on segment (resource_id, started_us);

-- One movement of money, never changed. There are no foreign keys: their
-- per-row triggers would halve the speed of a settlement; `ledger verify`
-- recomputes every balance from these rows instead.
-- owner: wallet
create table transfer (
  id bigint generated always as identity primary key,
  debit_account_id uuid not null,
  credit_account_id uuid not null,
  amount_usd_micro bigint not null check (amount_usd_micro > 0),
  code text not null check (code in ('credit', 'charge', 'refund', 'debit', 'repayment', 'writeoff')),
  key text not null,
  team_id uuid not null,
  kind text check (kind in ('pod-runtime', 'volume-storage')),
  resource_id uuid,
  segment_id uuid,
  from_us bigint,
  to_us bigint,
  day_us bigint,
  reference_id text,
  description text not null,
  created_at timestamptz not null,
  constraint transfer_moves check (debit_account_id <> credit_account_id),
  constraint transfer_key_once unique (key),
  constraint transfer_window_once unique (segment_id, from_us),
  constraint transfer_charge_has_window check (code <> 'charge' or (kind is not null and resource_id is not null
    and segment_id is not null and day_us is not null and from_us >= day_us and from_us < to_us and to_us <= day_us + 86400000000))
);
create index transfer_day on transfer (team_id, kind, day_us, resource_id) where code = 'charge';
create index transfer_money on transfer (team_id, id) where code in ('credit', 'refund', 'debit');

create function refuse_transfer_change() returns trigger language plpgsql as $$
begin
  raise exception 'transfer is append-only: % is refused', tg_op using errcode = 'restrict_violation';
end
$$;
create trigger transfer_append_only before update or delete or truncate on transfer
  for each statement execute function refuse_transfer_change();

-- A day on which a resource ran at a price but cost less than a micro-dollar
-- in some window: its transaction row is shown, with what the day's transfers
-- sum up to, if any.
-- owner: wallet
create table day_mark (
  team_id uuid not null,
  kind text not null check (kind in ('pod-runtime', 'volume-storage')),
  day_us bigint not null,
  resource_id uuid not null,
  from_us bigint not null check (from_us >= day_us and from_us < day_us + 86400000000),
  to_us bigint not null check (to_us >= from_us),
  primary key (team_id, kind, day_us, resource_id)
);
