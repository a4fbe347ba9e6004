-- The receipt of a paid top-up, on the processor's own page. Such addresses end
-- after a while, so it is known when one was read.
alter table topup
  add column receipt_url text check (receipt_url <> ''),
  -- wall times: of the reading of the address, and of the next one while there is none
  add column receipt_seen_at timestamptz,
  add column receipt_read_at timestamptz,
  add column receipt_reads integer not null default 0;
create index topup_receipt on topup (coalesce(receipt_read_at, '-infinity')) where status = 'paid' and receipt_url is null and receipt_reads < 20;
