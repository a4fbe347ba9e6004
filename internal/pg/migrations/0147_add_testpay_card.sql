-- The test checkout saves cards, which then pay without their owner. Such a
-- payment is a session that nobody visits. Ids of payments, refunds, disputes
-- and cards differ within the first eight characters, which is what is shown.
alter table testpay_session
  drop constraint testpay_session_payment_id_check,
  drop constraint testpay_session_amount_usd_micro_check,
  drop constraint testpay_session_status_check,
  drop constraint testpay_session_mode_check,
  add column card_id text,
  add column failure text check (failure in ('card_declined', 'authentication_required')),
  add constraint testpay_session_payment_id_check check (payment_id like 'pi\_%'),
  add constraint testpay_session_status_check check (status in ('open', 'complete', 'failed')),
  add constraint testpay_session_mode_check check (mode in ('payment', 'subscription', 'setup', 'charge')),
  add constraint testpay_session_amount_check check (case when mode = 'setup' then amount_usd_micro = 0 else amount_usd_micro > 0 end),
  add constraint testpay_session_fails_for_a_reason check ((status = 'failed') = (failure is not null)),
  add constraint testpay_session_charges_a_card check (mode <> 'charge' or card_id is not null);

-- A card that was saved, and how payments without its owner end.
-- owner: payment/testpay
create table testpay_card (
  id text primary key check (id like 'pm\_%'),
  session_id text not null unique references testpay_session,
  team_id uuid not null,
  nature text not null check (nature in ('good', 'declined', 'authentication')),
  created_at timestamptz not null,
  detached_at timestamptz
);

alter table testpay_case
  drop constraint testpay_case_id_check,
  drop constraint testpay_case_check,
  add constraint testpay_case_id_check check (id like 're\_%' or id like 'dp\_%'),
  add constraint testpay_case_status_check check (case when id like 're\_%'
    then status in ('succeeded', 'failed') else status in ('needs_response', 'won', 'lost') end);
drop index testpay_case_one_dispute;
create unique index testpay_case_one_dispute on testpay_case (session_id) where id like 'dp\_%';

alter table testpay_invoice
  drop constraint testpay_invoice_payment_id_check,
  add constraint testpay_invoice_payment_id_check check (payment_id like 'pi\_%');
