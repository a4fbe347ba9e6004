-- The test checkout keeps the card of a top-up whose team asked for it, and its
-- bank may issue a card anew.
alter table testpay_session
  add column saves_card boolean not null default false;
alter table testpay_card
  add column reissued integer not null default 0 check (reissued >= 0);

-- A saved card is read again now and then: its bank may have given it another
-- number or expiry. Wall time of the next reading; null: as soon as can be.
alter table payment_card
  add column read_at timestamptz;
create index payment_card_read on payment_card (coalesce(read_at, '-infinity')) where removed_at is null;
