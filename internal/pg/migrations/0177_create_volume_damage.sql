-- When the object is read and held against its name next.
alter table volume_pack add column check_at timestamptz;
create index volume_pack_check_at on volume_pack (check_at nulls first) where committed_seq is not null;

-- An object that the store does not give back as it was written.
-- last_good_seq is the newest version that does without it; null: none, or
-- that could not be found out.
-- owner: volume
create table volume_damage (
  volume_id uuid not null references volume (id),
  kind text not null check (kind in ('data', 'tree', 'index')),
  id bytea not null check (length(id) = 32),
  what text not null check (what in ('missing', 'differs')),
  found_at timestamptz not null,
  last_good_seq bigint,
  -- it is whole again, or not needed any more
  ended_at timestamptz,
  primary key (volume_id, kind, id)
);
create index volume_damage_open on volume_damage (volume_id) where ended_at is null;
