-- The amount below which somebody wants to hear of the balance, when it falls
-- below it, and whether it was told since it was last above.
alter table wallet
  add column low_usd_micro bigint check (low_usd_micro > 0),
  add column low_us bigint,
  add column low_told boolean not null default false;
