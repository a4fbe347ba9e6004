-- What the nightly look at the whole of the books found, by the UTC day of
-- business time that it was made on.
-- owner: wallet
create table ledger_check (
  day_us bigint primary key,
  checked_at timestamptz not null,
  wallets bigint not null,
  segments bigint not null,
  transfers bigint not null,
  problems bigint not null,
  imbalance_usd_micro bigint not null check (imbalance_usd_micro >= 0)
);
