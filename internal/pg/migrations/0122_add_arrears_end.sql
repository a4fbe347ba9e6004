-- When unpaid storage was paid, until what that undoes is done.
alter table wallet add column arrears_end_us bigint,
  add constraint wallet_arrears_end_follows check (arrears_end_us is null or arrears_us is not null);
update wallet set arrears_end_us = settled_us, next_us = least(next_us, settled_us)
  where arrears_us is not null and exhausted_us is distinct from arrears_us;
