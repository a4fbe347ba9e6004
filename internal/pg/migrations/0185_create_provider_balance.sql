-- What is left of our money at a cloud, as it said last. All instants are wall
-- time. A cloud whose API says nothing of it has no row.
-- owner: offer
create table provider_balance (
  adapter text primary key,
  asked_at timestamptz not null, -- raised before the call: of several nodes one asks
  read_at timestamptz,           -- when it said what follows
  balance_usd_micro bigint,      -- below zero: a debt
  trouble text not null,         -- why the last call said nothing; empty: it did
  check ((read_at is null) = (balance_usd_micro is null))
);
