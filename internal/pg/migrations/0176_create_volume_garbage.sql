-- Collections give a volume other packs and indexes. Each raises its
-- generation; seen_generation is that of the indexes which the agent of the
-- attachment has. collect_at is when the volume is looked at next.
alter table volume
  add column generation bigint not null default 0,
  add column seen_generation bigint not null default 0,
  add column collect_at timestamptz;
create index volume_collect_at on volume (collect_at nulls first)
  where repository_made and deleted_at is null and purged_at is null;

-- An object that no snapshot needs any more, to be deleted: not before a day
-- is over, and not while an agent may have indexes of an earlier generation.
-- owner: volume
create table volume_garbage (
  volume_id uuid not null references volume (id),
  kind text not null check (kind in ('data', 'tree', 'index', 'snapshot')),
  id bytea not null check (length(id) = 32),
  size_bytes bigint not null check (size_bytes >= 0),
  -- it was part of the volume, not only granted
  committed boolean not null,
  generation bigint not null,
  condemned_at timestamptz not null,
  primary key (volume_id, kind, id)
);
create index volume_garbage_condemned_at on volume_garbage (condemned_at);
