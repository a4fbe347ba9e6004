-- An order for a new team, with what it takes to make the team whenever the
-- money comes. It is open until the processor says what came of it, or until
-- its day is over.
-- owner: payment
create table team_checkout (
  id uuid primary key,
  team_id uuid not null unique,
  user_id uuid not null,
  name text not null,
  description text not null,
  seats integer not null check (seats between 1 and 100),
  seat_usd_micro bigint not null check (seat_usd_micro > 0 and seat_usd_micro % 10000 = 0),
  processor text not null check (processor in ('stripe', 'test')),
  status text not null check (status in ('open', 'paid', 'expired')),
  session_id text unique,
  subscription_id text unique,
  created_at timestamptz not null,
  -- business time at which an unpaid order ends
  expires_at timestamptz not null,
  -- wall times: of its making, of its last reading, and of the next one, in case its event got lost
  opened_at timestamptz not null,
  seen_at timestamptz not null,
  read_at timestamptz,
  reads integer not null default 0,
  closed_at timestamptz,
  constraint team_checkout_paid_names_subscription check ((status = 'paid') = (subscription_id is not null)),
  constraint team_checkout_open_is_read check ((status = 'open') = (read_at is not null))
);
create index team_checkout_read on team_checkout (read_at) where read_at is not null;
create index team_checkout_due on team_checkout (expires_at) where status = 'open';
create index team_checkout_user on team_checkout (user_id, created_at) where status = 'open';

-- A team's subscription as it last stood at the processor. What an event says
-- of it is never stored: an event only asks for a reading.
-- owner: payment
create table subscription (
  id text primary key check (id <> ''),
  processor text not null check (processor in ('stripe', 'test')),
  team_id uuid not null,
  user_id uuid not null,
  seat_usd_micro bigint not null check (seat_usd_micro > 0),
  status text not null check (status in
    ('incomplete', 'incomplete_expired', 'trialing', 'active', 'past_due', 'unpaid', 'canceled', 'paused')),
  seats integer not null check (seats > 0),
  -- null until the first reading
  customer_id text check (customer_id <> ''),
  anchor_at timestamptz,
  period_start_at timestamptz,
  period_end_at timestamptz,
  cancels_at_period_end boolean not null default false,
  -- readings asked for so far, and how many of them the stored state answers
  asked bigint not null default 1,
  answered bigint not null default 0,
  -- wall time of the next reading; null once it has ended
  read_at timestamptz,
  reads integer not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint subscription_answers_what_was_asked check (answered <= asked),
  constraint subscription_period_runs_forward check (period_end_at > period_start_at)
);
create unique index subscription_of_team on subscription (team_id) where status not in ('canceled', 'incomplete_expired');
create index subscription_read on subscription (read_at) where read_at is not null;

alter table payment_event
  add column team_checkout_id uuid,
  add column subscription_id text;

-- The test checkout sells subscriptions too. The times of such a session are
-- business time.
alter table testpay_session
  add column mode text not null default 'payment' check (mode in ('payment', 'subscription')),
  add column team_name text not null default '',
  add column email text not null default '',
  add column quantity integer not null default 1 check (quantity > 0),
  add column customer_id text,
  add column subscription_id text unique,
  add column invoice_id text unique,
  add constraint testpay_session_sells_a_subscription check
    ((mode = 'subscription' and status = 'complete') = (subscription_id is not null and customer_id is not null and invoice_id is not null));

-- A subscription at the built-in test processor. Its periods are counted from
-- its anchor, all in business time.
-- owner: payment/testpay
create table testpay_subscription (
  id text primary key check (id like 'sub_test_%'),
  session_id text not null unique references testpay_session,
  order_id uuid not null,
  team_id uuid not null,
  customer_id text not null check (customer_id like 'cus_test_%'),
  item_id text not null check (item_id like 'si_test_%'),
  quantity integer not null check (quantity > 0),
  seat_usd_micro bigint not null check (seat_usd_micro > 0),
  status text not null check (status in ('active', 'past_due', 'canceled')),
  anchor_at timestamptz not null,
  period integer not null check (period >= 0),
  period_start_at timestamptz not null,
  period_end_at timestamptz not null check (period_end_at > period_start_at),
  latest_invoice_id text not null
);

-- One month of a subscription, as it is charged.
-- owner: payment/testpay
create table testpay_invoice (
  id text primary key check (id like 'in_test_%'),
  subscription_id text not null references testpay_subscription,
  period integer not null,
  payment_id text not null unique check (payment_id like 'pi_test_%'),
  amount_usd_micro bigint not null check (amount_usd_micro > 0),
  status text not null check (status in ('open', 'paid')),
  attempts integer not null,
  period_start_at timestamptz not null,
  period_end_at timestamptz not null,
  created_at timestamptz not null,
  unique (subscription_id, period)
);

-- A subscription tells of each month in events of the same kinds.
alter table testpay_event
  add column subject text not null default '',
  drop constraint testpay_event_session_id_kind_key;
create unique index testpay_event_once on testpay_event (session_id, kind, subject);
