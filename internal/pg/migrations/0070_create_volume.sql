-- A team's /workspace. pod_id names the pod that holds it: null is free. Every
-- attach and every release raises the epoch; what was signed or committed
-- under an older one is refused.
-- owner: volume
create table volume (
  id uuid primary key,
  team_id uuid not null references team (id),
  name text not null check (name <> '' and length(name) <= 80),
  created_by uuid not null,
  created_at timestamptz not null,
  size_bytes bigint not null check (size_bytes >= 0),
  entries bigint not null check (entries >= 0),
  -- a meter runs, at the rate of size_bytes
  metered boolean not null,
  frozen_at timestamptz,
  deleted_at timestamptz,
  deleted_by uuid,
  purge_at timestamptz,
  purged_at timestamptz,
  -- the attachment
  epoch bigint not null check (epoch >= 0),
  pod_id uuid unique,
  restored boolean not null,
  -- the repository: master key, password of its key file and chunker key, each
  -- sealed; null until the first attachment
  key_sealed bytea,
  password_sealed bytea,
  chunker_key_sealed bytea,
  repository_made boolean not null,
  -- the head; its time in nanoseconds, because the next one must be later
  head_snapshot bytea check (length(head_snapshot) = 32),
  head_tree bytea check (length(head_tree) = 32),
  head_seq bigint not null check (head_seq >= 0),
  head_time_ns bigint,
  last_commit_at timestamptz,
  constraint volume_free_has_no_restore check (pod_id is not null or not restored),
  constraint volume_deleted_is_free check (deleted_at is null or pod_id is null),
  constraint volume_deleted_is_not_metered check (deleted_at is null or not metered),
  constraint volume_frozen_is_not_metered check (frozen_at is null or not metered),
  constraint volume_trash_has_purge check ((deleted_at is null) = (purge_at is null)),
  constraint volume_keys_together check ((key_sealed is null) = (password_sealed is null)
    and (key_sealed is null) = (chunker_key_sealed is null)),
  constraint volume_repository_has_key check (not repository_made or key_sealed is not null),
  constraint volume_head_together check ((head_snapshot is null) = (head_tree is null)
    and (head_snapshot is null) = (head_time_ns is null) and (head_snapshot is null) = (head_seq = 0))
);
create index volume_team on volume (team_id, created_at desc);
create index volume_purge_at on volume (purge_at) where purge_at is not null and purged_at is null;

-- An object of a volume's repository: a pack or an index. Without
-- committed_seq it was only granted to the attachment of that epoch.
-- owner: volume
create table volume_pack (
  volume_id uuid not null references volume (id),
  id bytea not null check (length(id) = 32),
  kind text not null check (kind in ('data', 'tree', 'index')),
  size_bytes bigint not null check (size_bytes between 1 and 67108864),
  epoch bigint not null,
  committed_seq bigint,
  created_at timestamptz not null,
  primary key (volume_id, id)
);
create index volume_pack_uncommitted on volume_pack (volume_id, epoch) where committed_seq is null;
create index volume_pack_index on volume_pack (volume_id) where kind = 'index';

-- A committed snapshot. Its object is published after the commit.
-- owner: volume
create table volume_snapshot (
  volume_id uuid not null references volume (id),
  seq bigint not null check (seq > 0),
  snapshot_id bytea not null check (length(snapshot_id) = 32),
  tree_id bytea not null check (length(tree_id) = 32),
  parent_id bytea check (length(parent_id) = 32),
  time_ns bigint not null,
  epoch bigint not null,
  pod_id uuid not null,
  final boolean not null,
  size_bytes bigint not null check (size_bytes >= 0),
  entries bigint not null check (entries >= 0),
  skipped bigint not null check (skipped >= 0),
  unstable bigint not null check (unstable >= 0),
  created_at timestamptz not null,
  published_at timestamptz,
  primary key (volume_id, seq),
  unique (volume_id, snapshot_id)
);
create index volume_snapshot_unpublished on volume_snapshot (created_at) where published_at is null;
create index volume_snapshot_final on volume_snapshot (volume_id, pod_id) where final;
