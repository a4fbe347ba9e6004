-- The master keys under which this database's secrets are sealed. The keys
-- themselves lie with the nodes. mark is what stands in the values that a key
-- sealed; the first key leaves none. id tells keys apart: null until a node
-- with the first key has started.
-- owner: masterkey
create table master_key (
  mark       bytea primary key check (length(mark) = 8),
  id         bytea unique check (length(id) = 8),
  state      text  not null check (state in ('next', 'current', 'old', 'retired')),
  made_at    timestamptz,
  current_at timestamptz,
  retired_at timestamptz,
  -- What sealed values refer to, so that none is under a retired key.
  usable     bytea generated always as (case when state <> 'retired' then mark end) stored unique,
  check ((state = 'retired') = (retired_at is not null))
);
create unique index master_key_current on master_key (state) where state = 'current';
create unique index master_key_next on master_key (state) where state = 'next';

insert into master_key (mark, state) values ('\x0000000000000000', 'current');

-- What each node that serves holds, and under which key it seals.
-- owner: masterkey
create table master_key_node (
  node_id      uuid        primary key,
  host         text        not null,
  held         bytea[]     not null, -- ids
  sealing      bytea       not null, -- a mark
  seen_wall_at timestamptz not null
);

-- The mark of a value: of the key that sealed it.
create function sealed_by(sealed bytea) returns bytea
  language sql immutable strict parallel safe
  return case when substr(sealed, 1, 8) = '\x68707365616c6564'::bytea then substr(sealed, 9, 8)
    else '\x0000000000000000'::bytea end;

alter table auth_link
  add column sealed_token_by bytea generated always as (sealed_by(sealed_token)) stored references master_key (usable);
alter table auth_session
  add column sealed_secret_by bytea generated always as (sealed_by(sealed_secret)) stored references master_key (usable);
alter table auth_signing_key
  add column sealed_private_by bytea generated always as (sealed_by(sealed_private)) stored references master_key (usable);
alter table pod
  add column host_key_sealed_by bytea generated always as (sealed_by(host_key_sealed)) stored references master_key (usable),
  add column probe_key_sealed_by bytea generated always as (sealed_by(probe_key_sealed)) stored references master_key (usable);
alter table volume
  add column key_sealed_by bytea generated always as (sealed_by(key_sealed)) stored references master_key (usable),
  add column password_sealed_by bytea generated always as (sealed_by(password_sealed)) stored references master_key (usable),
  add column chunker_key_sealed_by bytea generated always as (sealed_by(chunker_key_sealed)) stored references master_key (usable);
alter table testpay_secret
  add column sealed_by bytea generated always as (sealed_by(sealed)) stored references master_key (usable);
