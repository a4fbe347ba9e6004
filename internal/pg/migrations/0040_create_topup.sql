-- An order to add money to a team's wallet. It is open until the processor
-- says what came of it.
-- owner: payment
create table topup (
  id uuid primary key,
  team_id uuid not null,
  user_id uuid not null,
  amount_usd_micro bigint not null check (amount_usd_micro between 10000 and 10000000000 and amount_usd_micro % 10000 = 0),
  processor text not null check (processor in ('stripe', 'test')),
  status text not null check (status in ('open', 'paid', 'failed', 'expired')),
  session_id text unique,
  payment_id text unique,
  created_at timestamptz not null,
  -- wall time of the order's making: how long a checkout stays open is the processor's, and real
  opened_at timestamptz not null,
  -- wall time at which the checkout is read again, in case its event got lost
  read_at timestamptz,
  reads integer not null default 0,
  closed_at timestamptz,
  constraint topup_paid_names_payment check (status <> 'paid' or payment_id is not null),
  constraint topup_open_is_read check ((status = 'open') = (read_at is not null))
);
create index topup_read on topup (read_at) where read_at is not null;
create index topup_team on topup (team_id, created_at);

-- A processor's event that was handled: claimed in the transaction of its effect.
-- owner: payment
create table payment_event (
  id text primary key check (id <> ''),
  processor text not null,
  kind text not null,
  topup_id uuid,
  outcome text not null,
  received_at timestamptz not null
);
