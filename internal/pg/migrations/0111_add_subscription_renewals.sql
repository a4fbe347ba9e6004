-- What is asked of a subscription besides reading it: its end, once its team
-- is deleted; and a reading at the end of each of its periods.
alter table subscription
  add column end_wanted boolean not null default false,
  -- the period end at which a reading was asked for last
  add column rolled_at timestamptz;
create index subscription_period on subscription (period_end_at) where status not in ('canceled', 'incomplete_expired');

-- How the test card of a subscription does at its renewals.
alter table testpay_subscription
  add column card text not null default 'good' check (card in ('good', 'declined')),
  add column canceled_at timestamptz,
  add constraint testpay_subscription_canceled check ((status = 'canceled') = (canceled_at is not null));
create index testpay_subscription_due on testpay_subscription (period_end_at) where status <> 'canceled';
