-- owner: pod
create table installation (
  only_row    boolean     primary key check (only_row),
  env4        text        not null check (env4 ~ '^[a-z0-9]{4}$'),
  created_at  timestamptz not null
);

-- owner: pod
create table node (
  id           uuid        primary key,
  seen_wall_at timestamptz not null
);

-- owner: pod
create table pod (
  id                          uuid        primary key,
  team_id                     uuid        not null references team (id),
  created_by                  uuid        not null,
  volume_id                   uuid        not null references volume (id),
  volume_epoch                bigint      not null,
  ssh_key_id                  uuid        not null,
  status                      text        not null check (status in
    ('pending', 'starting', 'mounting', 'ready', 'switching_off', 'deleting', 'deleted')),
  status_reason               text        not null,
  status_detail               text        not null,
  progress                    integer     not null check (progress between 0 and 100),
  offer                       jsonb       not null,
  adapter                     text        not null,
  provider                    text        not null,
  country                     text        not null,
  gpu_type                    text        not null,
  gpu_count                   integer     not null check (gpu_count > 0),
  rate_usd_micro_per_hour     bigint      not null check (rate_usd_micro_per_hour >= 0),
  max_rate_usd_micro_per_hour bigint      not null check (max_rate_usd_micro_per_hour >= rate_usd_micro_per_hour),
  list_rate_usd_micro_per_hour bigint     not null,
  ssh_port                    integer     not null,
  ssh_host                    text        not null,
  host_key_sealed             bytea       not null,
  host_key_fingerprint        text        not null,
  probe_key_sealed            bytea       not null,
  probe_key_line              text        not null,
  attempts                    integer     not null,
  created_at                  timestamptz not null,
  ready_at                    timestamptz,
  delete_requested_at         timestamptz,
  stopped_at                  timestamptz,
  synced_at                   timestamptz,
  ended_at                    timestamptz,
  status_wall_at              timestamptz not null,
  progress_wall_at            timestamptz not null,
  restored_wall_at            timestamptz,
  final_wall_at               timestamptz,
  ended_wall_at               timestamptz,
  next_wall_at                timestamptz,
  ended_by_user_early         boolean     not null,
  check ((status = 'deleted') = (ended_at is not null)),
  check (status <> 'ready' or ready_at is not null)
);
create unique index pod_first_segment on pod (left(id::text, 8)) where status <> 'deleted';
create unique index pod_volume on pod (volume_id) where status <> 'deleted';
create index pod_team on pod (team_id, created_at desc);
create index pod_due on pod (next_wall_at) where next_wall_at is not null;

-- owner: pod
create table instance (
  id                 uuid        primary key,
  pod_id             uuid        not null references pod (id),
  attempt            integer     not null,
  name               text        not null unique,
  provider           text        not null,
  offer              jsonb       not null,
  state              text        not null check (state in ('intent', 'ambiguous', 'running', 'terminating', 'gone')),
  node_id            uuid        not null,
  token_hash         bytea       not null unique,
  ref                text        not null,
  host               text        not null,
  ssh_port           integer     not null,
  reason             text        not null,
  created_wall_at    timestamptz not null,
  state_wall_at      timestamptz not null,
  agent_seen_wall_at timestamptz,
  probed_wall_at     timestamptz,
  gone_seen_wall_at  timestamptz,
  tries              integer     not null,
  next_wall_at       timestamptz,
  unique (pod_id, attempt)
);
create index instance_open on instance (provider, name) where state <> 'gone';
create index instance_due on instance (next_wall_at) where next_wall_at is not null;

-- owner: pod
create table ssh_port (
  port          integer primary key,
  pod_id        uuid unique,
  freed_wall_at timestamptz
);
create index ssh_port_free on ssh_port (freed_wall_at nulls first, port) where pod_id is null;

-- owner: pod
create table orphan (
  provider           text        not null,
  ref                text        not null,
  name               text        not null,
  first_seen_wall_at timestamptz not null,
  primary key (provider, ref)
);
