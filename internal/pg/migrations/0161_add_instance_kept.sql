-- When the cloud was last told to end the machine later; null = at its launch.
alter table instance add column kept_wall_at timestamptz;
