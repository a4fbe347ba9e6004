-- How far business time runs ahead of wall time, for all nodes. One row.
-- owner: pg
create table clock_offset (
  single boolean primary key check (single),
  offset_us bigint not null check (offset_us >= 0)
);
insert into clock_offset (single, offset_us) values (true, 0);

-- A time-limited right of one node to do what only one may do at a time.
-- owner: pg
create table lease (
  name text primary key check (name <> ''),
  holder text not null check (holder <> ''),
  epoch bigint not null check (epoch > 0),
  expires_at timestamptz not null
);
