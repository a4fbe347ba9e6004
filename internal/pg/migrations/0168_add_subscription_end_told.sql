-- The end of a subscription of which the team was told, 72 hours before: the
-- period's end, so that another one is told of again.
alter table subscription add column end_told_at timestamptz;
create index subscription_ending on subscription (period_end_at) where cancels_at_period_end;
