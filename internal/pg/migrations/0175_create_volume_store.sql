-- Where the volumes' objects lie, and what the store there was found to
-- enforce: one row.
-- owner: volume
create table volume_store (
  one boolean primary key check (one),
  place text not null,
  features jsonb not null,
  probed_at timestamptz not null
);
