-- A team: who owns pods, volumes, keys and a wallet. A personal team names its
-- one person, and can never be Pro, have seats or be deleted.
-- owner: team
create table team (
  id uuid primary key,
  name text not null check (name <> '' and length(name) <= 80),
  description text not null check (length(description) <= 1000),
  plan text not null check (plan in ('free', 'hobby', 'pro')),
  state text not null check (state in ('inactive', 'active', 'deleted')),
  personal_of uuid unique,
  max_members integer check (max_members between 1 and 100),
  subscription_id text unique check (subscription_id <> ''),
  subscriber_id uuid,
  grace_until timestamptz,
  expires_at timestamptz,
  created_by uuid not null,
  created_at timestamptz not null,
  deleted_by uuid,
  deleted_at timestamptz,
  check (personal_of is null
    or (plan <> 'pro' and state = 'active' and max_members is null and subscription_id is null)),
  check ((state = 'deleted') = (deleted_at is not null)),
  check ((state = 'inactive') = (expires_at is not null))
);
create index team_expires_at on team (expires_at) where expires_at is not null;
create index team_grace_until on team (grace_until) where grace_until is not null;

-- A person in a team. role_before is what an unpaid plan took away.
-- owner: team
create table membership (
  id uuid primary key,
  team_id uuid not null references team (id),
  user_id uuid not null,
  role text not null check (role in ('admin', 'member', 'viewer')),
  role_before text check (role_before in ('admin', 'member', 'viewer')),
  created_at timestamptz not null,
  unique (team_id, user_id)
);
create index membership_user on membership (user_id);

-- Somebody asked into a team who has no account yet. The e-mail is case-folded.
-- owner: team
create table invitation (
  id uuid primary key,
  team_id uuid not null references team (id),
  email text not null check (email <> '' and length(email) <= 255),
  state text not null check (state in ('pending', 'accepted', 'cancelled')),
  invited_by uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  closed_at timestamptz,
  check ((state = 'pending') = (closed_at is null))
);
create unique index invitation_pending on invitation (team_id, email) where state = 'pending';
create index invitation_email on invitation (email) where state = 'pending';
