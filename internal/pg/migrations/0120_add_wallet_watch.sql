-- What a wallet waits for, each as an instant that is computed when money or
-- burn change: nothing is found by looking at all wallets.
alter table wallet
  -- the earliest of everything below, and of exhausts_us and switch_off_us
  add column next_us bigint,
  -- the runways of 24 h, 1 h and 15 min that were told, as bits 1, 2 and 4
  add column warned smallint not null default 0 check (warned between 0 and 7),
  add column warn_us bigint,
  -- the balance is zero since; null once there is money
  add column empty_us bigint,
  -- the ladder of unpaid storage: which exhaustion it is on, and what was done
  add column arrears_us bigint,
  add column arrears_step smallint not null default 0 check (arrears_step between 0 and 4),
  -- when to look at the month's spend again; what was reached of its limit, in
  -- percent (101: the pods were ended), and since when it is used up
  add column spend_us bigint,
  add column spend_month_us bigint not null default 0,
  add column spend_stage smallint not null default 0 check (spend_stage in (0, 80, 95, 100, 101)),
  add column limit_us bigint,
  add constraint wallet_arrears_began check ((arrears_us is null) = (arrears_step = 0));

update wallet set spend_us = settled_us where burn_usd_micro_per_hour > 0;
update wallet set next_us = least(switch_off_us, exhausts_us, spend_us, exhausted_us + 604800000000);

drop index wallet_exhausts;
drop index wallet_switch_off;
create index wallet_next on wallet (next_us) where next_us is not null;
