-- Who did what, for ever: rows are only ever added.
-- owner: audit
create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  team_id uuid,
  actor_id uuid,
  action text not null check (action <> ''),
  object_id uuid,
  detail jsonb not null
);
create index audit_log_team on audit_log (team_id, id);

create function audit_log_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'audit_log is append-only';
end
$$;
create trigger audit_log_no_change before update or delete on audit_log
  for each row execute function audit_log_is_append_only();
create trigger audit_log_no_truncate before truncate on audit_log
  for each statement execute function audit_log_is_append_only();
