-- A person whose address was proven by opening a link.
-- owner: auth
create table auth_user (
  id                 uuid primary key,
  email              text not null check (length(email) between 3 and 255),
  email_folded       text not null unique,
  created_at         timestamptz not null,
  email_confirmed_at timestamptz not null,
  last_sign_in_at    timestamptz not null
);

-- One accepted request for a link: what the limits count. Kept two hours.
-- owner: auth
create table auth_request (
  seq          bigint generated always as identity primary key,
  email_folded text not null,
  ip           text not null,
  browser_hash bytea not null,
  client_hash  bytea not null,
  requested_at timestamptz not null
);
create index auth_request_ip on auth_request (ip, requested_at);
create index auth_request_email on auth_request (email_folded, requested_at);
create index auth_request_browser on auth_request (browser_hash, requested_at);
create index auth_request_client on auth_request (client_hash, requested_at);
create index auth_request_age on auth_request (requested_at);

-- A sign-in link. The token is stored as its hash; sealed_token holds it,
-- encrypted, only until the mail is sent.
-- owner: auth
create table auth_link (
  id           uuid primary key,
  token_hash   bytea not null unique check (length(token_hash) = 32),
  sealed_token bytea,
  email        text not null,
  email_folded text not null,
  may_create   boolean not null,
  redirect_to  text not null,
  browser_hash bytea not null,
  client_hash  bytea not null,
  ip           text not null,
  user_agent   text not null,
  requested_at timestamptz not null,
  expires_at   timestamptz not null,
  sent_at      timestamptz,
  used_at      timestamptz,
  ended_at     timestamptz,
  check (expires_at > requested_at),
  check (used_at is null or ended_at is null),
  check (sealed_token is null or (used_at is null and ended_at is null))
);
create index auth_link_browser on auth_link (browser_hash) where used_at is null and ended_at is null;
create index auth_link_client on auth_link (client_hash) where used_at is null and ended_at is null;
create index auth_link_age on auth_link (expires_at);

-- One signed-in browser. Refresh tokens are made from the sealed secret and
-- the generation; no token is stored.
-- owner: auth
create table auth_session (
  id              uuid primary key,
  user_id         uuid not null references auth_user (id) on delete cascade,
  sealed_secret   bytea not null,
  generation      integer not null check (generation > 0),
  ip              text not null,
  user_agent      text not null,
  created_at      timestamptz not null,
  refreshed_at    timestamptz not null,
  idle_expires_at timestamptz not null,
  expires_at      timestamptz not null,
  revoked_at      timestamptz,
  revoked_by      text check (revoked_by in ('sign_out', 'reuse')),
  check ((revoked_at is null) = (revoked_by is null)),
  check (idle_expires_at <= expires_at)
);
create index auth_session_user on auth_session (user_id) where revoked_at is null;
create index auth_session_age on auth_session (expires_at);

-- A key that signs access tokens from activates_at until a newer one does; it
-- is published until retires_at.
-- owner: auth
create table auth_signing_key (
  kid            text primary key,
  sealed_private bytea not null,
  public_der     bytea not null,
  created_at     timestamptz not null,
  activates_at   timestamptz not null,
  retires_at     timestamptz,
  check (retires_at > activates_at)
);
