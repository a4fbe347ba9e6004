-- A test subscription that ends with its month, as Stripe's can.
alter table testpay_subscription
  add column cancels_at_period_end boolean not null default false;
