-- The operator's view asks which pods were metered and which machines there were
-- in a stretch of days.
create index pod_metered on pod ((coalesce(stopped_at, 'infinity'::timestamptz))) where ready_at is not null;
create index instance_gone on instance (state_wall_at) where state = 'gone' and ref <> '';
