-- Something that a team was told about its money, once: the key names it for
-- ever. The facts are what it says, as they were then.
-- owner: notice
create table notice (
  id uuid primary key,
  team_id uuid not null,
  kind text not null check (kind <> ''),
  key text not null check (key <> ''),
  facts jsonb not null,
  posted_at timestamptz not null,
  unique (team_id, key)
);
create index notice_team on notice (team_id, posted_at desc);

-- A letter of a notice to one person; its job is made with the row.
-- owner: notice
create table notice_letter (
  notice_id uuid not null references notice (id),
  user_id uuid not null,
  queued_at timestamptz not null,
  primary key (notice_id, user_id)
);

-- Who does not want to see a notice any more.
-- owner: notice
create table notice_dismissal (
  notice_id uuid not null references notice (id),
  user_id uuid not null,
  dismissed_at timestamptz not null,
  primary key (notice_id, user_id)
);
