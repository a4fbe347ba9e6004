-- A team's public SSH key. A deleted one keeps its row, so that pods that were
-- made with it can name it.
-- owner: sshkey
create table ssh_key (
  id uuid primary key,
  team_id uuid not null references team (id),
  name text not null check (name <> '' and length(name) <= 80),
  public_key text not null check (public_key ~ '^[^ \n\r]+ [A-Za-z0-9+/=]+$'),
  key_type text not null check (key_type <> ''),
  fingerprint text not null check (fingerprint like 'SHA256:%'),
  created_by uuid not null,
  created_at timestamptz not null,
  deleted_at timestamptz
);
create unique index ssh_key_once on ssh_key (team_id, fingerprint) where deleted_at is null;
create index ssh_key_team on ssh_key (team_id, created_at desc) where deleted_at is null;
