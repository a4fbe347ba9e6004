-- A refund or a dispute of a payment, as far as it was heard of: its state only
-- moves forward, so that events may come in any order.
-- owner: payment
create table payment_case (
  id text primary key check (id <> ''),
  processor text not null check (processor in ('stripe', 'test')),
  kind text not null check (kind in ('refund', 'dispute')),
  payment_id text not null check (payment_id <> ''),
  -- as the processor says, with the tax
  amount_usd_micro bigint not null check (amount_usd_micro > 0),
  -- taken: the money left; lost: it will not come back; returned: it came back
  state text not null check (state in ('taken', 'lost', 'returned')),
  -- whose wallet was debited, and by how much; null until the payment is credited
  team_id uuid,
  debit_usd_micro bigint check (debit_usd_micro >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint payment_case_debits_a_team check ((team_id is null) = (debit_usd_micro is null))
);
create index payment_case_payment on payment_case (payment_id);

-- What the payer paid, with the tax that is not credited; null before this column was.
alter table topup
  add column charged_usd_micro bigint check (charged_usd_micro >= amount_usd_micro);

-- The wallet that a payment's money is in.
create index transfer_payment on transfer (reference_id, id) where code = 'credit';
