-- Whether a cloud works, as the calls of all nodes found it. All instants are
-- wall time. An adapter without a row has never failed.
-- owner: offer
create table provider_breaker (
  adapter text primary key,
  state text not null check (state in ('closed', 'open', 'half')),
  reason text not null check (reason in ('', 'failures', 'funds')),
  failures integer not null check (failures >= 0), -- since since_at
  since_at timestamptz not null,
  opened_at timestamptz, -- off sale, or on trial, since then
  probe_at timestamptz,  -- open: when it is tried again
  opens integer not null check (opens >= 0), -- in a row
  trouble text not null, -- of the last failure
  check ((state = 'closed') = (reason = '')),
  check ((state = 'closed') = (opened_at is null)),
  check ((state = 'open') = (probe_at is not null))
);
