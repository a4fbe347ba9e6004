-- A checkout of the built-in test processor.
-- owner: payment/testpay
create table testpay_session (
  id text primary key check (id like 'cs_test_%'),
  order_id uuid not null unique,
  team_id uuid not null,
  payment_id text not null unique check (payment_id like 'pi_test_%'),
  amount_usd_micro bigint not null check (amount_usd_micro > 0),
  status text not null check (status in ('open', 'complete')),
  declines integer not null default 0,
  success_url text not null,
  cancel_url text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

-- An event on its way to our own webhook.
-- owner: payment/testpay
create table testpay_event (
  id text primary key check (id like 'evt_test_%'),
  session_id text not null references testpay_session,
  kind text not null,
  payload bytea not null,
  created_at timestamptz not null,
  -- wall time of the next try; null once delivered
  due_at timestamptz,
  attempts integer not null default 0,
  unique (session_id, kind)
);
create index testpay_event_due on testpay_event (due_at) where due_at is not null;

-- The installation's webhook secret, sealed.
-- owner: payment/testpay
create table testpay_secret (
  single boolean primary key check (single),
  sealed bytea not null
);
