-- A last sync that takes long is charged (server rule 33): from when on, null
-- for one that is free, and when bytes moved last. progress_wall_at is moved on
-- for a store of ours that fails, too.
alter table pod add column final_paid_from_at timestamptz, add column moved_wall_at timestamptz;
