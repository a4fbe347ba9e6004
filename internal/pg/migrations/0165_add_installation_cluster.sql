alter table installation
  add column cluster         text        not null default '', -- which history of the database was seen last; '' = none yet
  add column restored_wall_at timestamptz;                     -- set: the database was restored, and the operator has not confirmed yet
