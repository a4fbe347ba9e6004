-- A difference between the two books that an operator looked into: as it stood
-- then. One that changes, or comes back after it ended, is another one.
-- owner: payment
create table clearing_acknowledgement (
  processor text not null check (processor in ('stripe', 'test')),
  subject text not null check (subject <> ''),
  kind text not null,
  off_usd_micro bigint not null,
  found_at timestamptz not null,
  acknowledged_at timestamptz not null,
  acknowledged_by text not null check (acknowledged_by <> ''),
  note text not null check (note <> ''),
  primary key (processor, subject, found_at, kind, off_usd_micro)
);
