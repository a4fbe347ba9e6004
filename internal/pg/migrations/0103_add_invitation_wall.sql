-- Wall time of the asking, for the limit per hour; null in older rows.
alter table invitation add column created_wall_at timestamptz;
create index invitation_asked on invitation (team_id, created_wall_at);
