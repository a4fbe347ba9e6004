-- When a team was told that its grace ends soon; null once it is over or paid.
alter table team add column grace_warned_at timestamptz,
  add constraint team_grace_warned_in_grace check (grace_warned_at is null or grace_until is not null);
