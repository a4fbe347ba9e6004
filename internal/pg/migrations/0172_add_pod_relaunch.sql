-- A pod whose machine was lost may be started again, as another pod with its name.
alter table pod
  add column auto_relaunch         boolean not null default false,
  add column relaunches            integer not null default 0, -- by itself, in this pod's line
  add column relaunch_of           uuid references pod (id),
  add column relaunched_as         uuid references pod (id),
  add column relaunch_until_wall_at timestamptz; -- set: it is being started again
create unique index pod_relaunch_of on pod (relaunch_of) where relaunch_of is not null;
-- The pod that had the port last: the one in its place gets it again.
alter table ssh_port add column freed_by uuid;
