-- A line of a processor's own book, as it was read: money that it took or gave
-- for us, what it kept, and what it paid out.
-- owner: payment
create table clearing_movement (
  processor text not null check (processor in ('stripe', 'test')),
  id text not null check (id <> ''),
  kind text not null check (kind in ('payment', 'refund', 'dispute', 'fee', 'payout', 'other')),
  -- by the processor's clock
  at timestamptz not null,
  -- what came in is above zero; with the tax
  amount_usd_micro bigint not null,
  fee_usd_micro bigint not null,
  currency text not null,
  payment_id text not null,
  case_id text not null,
  order_id uuid,
  subscription_id text not null,
  primary key (processor, id)
);
create index clearing_movement_payment on clearing_movement (processor, payment_id) where payment_id <> '';
create index clearing_movement_day on clearing_movement (processor, at);

-- A day of that book. It is read as a whole, then compared with ours.
-- owner: payment
create table clearing_day (
  processor text not null check (processor in ('stripe', 'test')),
  day date not null,
  movements integer not null,
  payments_usd_micro bigint not null,
  refunds_usd_micro bigint not null,
  disputes_usd_micro bigint not null,
  fees_usd_micro bigint not null,
  payouts_usd_micro bigint not null,
  others_usd_micro bigint not null,
  read_at timestamptz not null,
  compared_at timestamptz,
  primary key (processor, day)
);
create index clearing_day_open on clearing_day (processor, day) where compared_at is null;

-- Where the two books differ. Nothing is adjusted for it: the row stays until
-- they agree about what it is about.
-- owner: payment
create table clearing_problem (
  processor text not null check (processor in ('stripe', 'test')),
  -- the payment, refund, dispute or line that it is about, and its payment, if any
  subject text not null check (subject <> ''),
  payment_id text not null,
  kind text not null,
  detail text not null,
  off_usd_micro bigint not null check (off_usd_micro >= 0),
  found_at timestamptz not null,
  ended_at timestamptz,
  primary key (processor, subject)
);
create index clearing_problem_open on clearing_problem (processor) where ended_at is null;

-- The test checkout's own book, in business time.
-- owner: payment/testpay
create table testpay_movement (
  id text primary key check (id like 'txn_test_%'),
  kind text not null check (kind in ('payment', 'refund', 'dispute')),
  payment_id text not null,
  case_id text not null,
  order_id uuid,
  subscription_id text not null,
  amount_usd_micro bigint not null check (amount_usd_micro <> 0),
  created_at timestamptz not null
);
create index testpay_movement_created on testpay_movement (created_at);

-- What there was before the book.
insert into testpay_movement (id, kind, payment_id, case_id, order_id, subscription_id, amount_usd_micro, created_at)
select 'txn_test_' || payment_id, 'payment', payment_id, '', order_id, '', amount_usd_micro, created_at
from testpay_session where status = 'complete' and mode in ('payment', 'charge')
union all
select 'txn_test_' || i.payment_id, 'payment', i.payment_id, '', s.order_id, s.id, i.amount_usd_micro, i.created_at
from testpay_invoice i join testpay_subscription s on s.id = i.subscription_id where i.status = 'paid'
union all
select 'txn_test_' || c.id, case when c.id like 're\_%' then 'refund' else 'dispute' end, s.payment_id, c.id, s.order_id, '',
  -c.amount_usd_micro, c.created_at
from testpay_case c join testpay_session s on s.id = c.session_id
union all
select 'txn_test_back_' || c.id, case when c.id like 're\_%' then 'refund' else 'dispute' end, s.payment_id, c.id, s.order_id, '',
  c.amount_usd_micro, c.created_at
from testpay_case c join testpay_session s on s.id = c.session_id where c.status in ('failed', 'won');
