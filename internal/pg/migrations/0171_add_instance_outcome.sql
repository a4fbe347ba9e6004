-- How a machine did, for its cloud's score.
alter table instance
  add column outcome         text not null default '' check (outcome in ('', 'ready', 'slow', 'failed', 'bad_host', 'lost')),
  add column outcome_wall_at timestamptz;
create index instance_outcome on instance (outcome_wall_at, provider) where outcome <> '';
