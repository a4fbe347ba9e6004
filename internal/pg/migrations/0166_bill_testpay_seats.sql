-- The test checkout charges more seats for the rest of their month at once, as
-- Stripe does: an invoice beside the month's own.
alter table testpay_invoice
  add column prorated boolean not null default false,
  drop constraint testpay_invoice_subscription_id_period_key;
create unique index testpay_invoice_month on testpay_invoice (subscription_id, period) where not prorated;
create index testpay_invoice_subscription on testpay_invoice (subscription_id);
