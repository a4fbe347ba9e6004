-- The objects of snapshots are looked at by the scrub too. check_at is when one
-- is read and held against its name next.
alter table volume_snapshot add column check_at timestamptz;
create index volume_snapshot_check_at on volume_snapshot (check_at nulls first) where published_at is not null;
alter table volume_damage
  drop constraint volume_damage_kind_check,
  add constraint volume_damage_kind_check check (kind in ('data', 'tree', 'index', 'snapshot'));
