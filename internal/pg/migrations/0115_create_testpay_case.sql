-- A refund or a dispute of a payment at the built-in test processor.
-- owner: payment/testpay
create table testpay_case (
  id text primary key check (id like 're_test_%' or id like 'dp_test_%'),
  session_id text not null references testpay_session,
  amount_usd_micro bigint not null check (amount_usd_micro > 0),
  status text not null check (case when id like 're_test_%'
    then status in ('succeeded', 'failed') else status in ('needs_response', 'won', 'lost') end),
  created_at timestamptz not null
);
create index testpay_case_session on testpay_case (session_id);
create unique index testpay_case_one_dispute on testpay_case (session_id) where id like 'dp_test_%';

-- How badly events are delivered, on purpose. Without the row: as well as can be.
-- owner: payment/testpay
create table testpay_chaos (
  single boolean primary key check (single),
  duplicate boolean not null,
  reorder boolean not null,
  delay_seconds integer not null check (delay_seconds between 0 and 300)
);

-- How often an event is delivered again after it was delivered.
alter table testpay_event
  add column copies integer not null default 0 check (copies >= 0);
