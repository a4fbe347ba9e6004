-- What the agent found when it looked its machine over, before it restored.
alter table instance
  add column check_asked     boolean not null default false, -- the pod is not ready without the answer
  add column checked_wall_at timestamptz,
  add column found           jsonb; -- agentapi.Checked
