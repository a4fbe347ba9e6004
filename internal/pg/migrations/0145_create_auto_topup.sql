-- A card that a team saved at a processor, under the processor's id for it. The
-- one that was not removed is the team's.
-- owner: payment
create table payment_card (
  id text primary key check (id <> ''),
  team_id uuid not null,
  processor text not null check (processor in ('stripe', 'test')),
  -- who saved it: who gets back what is left of its payments
  user_id uuid not null,
  brand text not null check (brand <> ''),
  last4 text not null check (last4 ~ '^[0-9]{4}$'),
  exp_month smallint not null check (exp_month between 1 and 12),
  exp_year smallint not null check (exp_year > 2000),
  saved_at timestamptz not null,
  removed_at timestamptz,
  -- wall time at which the processor is asked to forget it; null: not to be, or it has
  detach_at timestamptz,
  detaches integer not null default 0,
  constraint payment_card_detached_is_removed check (detach_at is null or removed_at is not null)
);
create unique index payment_card_one on payment_card (team_id, processor) where removed_at is null;
create index payment_card_detach on payment_card (detach_at) where detach_at is not null;

-- A checkout at which a card is saved and nothing is paid.
-- owner: payment
create table card_setup (
  id uuid primary key,
  team_id uuid not null,
  user_id uuid not null,
  processor text not null check (processor in ('stripe', 'test')),
  status text not null check (status in ('open', 'saved', 'failed', 'expired')),
  session_id text unique,
  card_id text,
  created_at timestamptz not null,
  -- wall time of its making, and at which it is read again
  opened_at timestamptz not null,
  read_at timestamptz,
  reads integer not null default 0,
  closed_at timestamptz,
  constraint card_setup_saved_names_card check ((status = 'saved') = (card_id is not null)),
  constraint card_setup_open_is_read check ((status = 'open') = (read_at is not null))
);
create index card_setup_read on card_setup (read_at) where read_at is not null;

-- What a team's admins agreed to have paid by its card without being asked.
-- owner: payment
create table auto_topup (
  team_id uuid primary key,
  enabled boolean not null,
  threshold_usd_micro bigint not null check (threshold_usd_micro > 0),
  amount_usd_micro bigint not null check (amount_usd_micro between 10000 and 10000000000 and amount_usd_micro % 10000 = 0),
  month_cap_usd_micro bigint not null check (month_cap_usd_micro >= amount_usd_micro),
  -- payments that failed in a row
  failures smallint not null default 0,
  -- when a payment was last begun, and when the balance is looked at next; null: the wallet tells
  tried_at timestamptz,
  due_at timestamptz,
  -- what the next look waits for; and the notice that is true now
  waits text check (waits in ('pause', 'retry', 'cap', 'dispute')),
  news text,
  -- why it is off although nobody turned it off
  off_reason text check (off_reason in ('declined', 'authentication_required', 'card_removed')),
  updated_at timestamptz not null,
  constraint auto_topup_off_waits_for_nothing check (enabled or due_at is null),
  constraint auto_topup_on_has_no_reason check (not enabled or off_reason is null)
);
create index auto_topup_due on auto_topup (due_at) where due_at is not null;

-- A top-up that a card paid without its owner: one at a time for each team.
alter table topup
  add column automatic boolean not null default false,
  add column card_id text,
  -- wall time at which the processor was first asked for the payment
  add column asked_at timestamptz,
  add constraint topup_automatic_names_card check (automatic = (card_id is not null));
create unique index topup_one_automatic on topup (team_id) where automatic and status = 'open';
