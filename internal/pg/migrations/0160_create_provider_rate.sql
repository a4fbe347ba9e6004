-- What the nodes together have used of a cloud's rate limit. next_us is the
-- instant of wall time at which all turns given so far are used up.
-- owner: provider/ratelimit
create table provider_rate (
  account text not null,
  class text not null,
  next_us bigint not null,
  primary key (account, class)
);
