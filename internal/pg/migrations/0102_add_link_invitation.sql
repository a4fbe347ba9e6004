-- The invitation that a sign-in link was sent with: the link lives as long as
-- the invitation waits. Null: somebody asked for the link themselves.
alter table auth_link add column invitation_id uuid;
