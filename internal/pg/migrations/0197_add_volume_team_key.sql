-- A volume whose key only its team holds. key_file is the key file of its
-- repository, which the team's key opens. What opens the volume without that,
-- key_sealed, is there only while the volume is unlocked: until unlocked_until
-- at least, and as long as a pod holds the volume. Its chunker key is derived,
-- and nobody draws a password.
alter table volume
  add column team_key boolean not null default false,
  add column key_file bytea,
  add column unlocked_until timestamptz,
  drop constraint volume_keys_together,
  drop constraint volume_repository_has_key,
  add constraint volume_keys_together check (team_key or (key_sealed is null) = (password_sealed is null)
    and (key_sealed is null) = (chunker_key_sealed is null)),
  add constraint volume_repository_has_key check (not repository_made or team_key or key_sealed is not null),
  add constraint volume_team_key_has_file check ((team_key or key_file is null and unlocked_until is null)
    and (not team_key or key_file is not null or purged_at is not null)),
  add constraint volume_team_key_rests_nowhere check (not team_key
    or password_sealed is null and chunker_key_sealed is null and (key_sealed is null or unlocked_until is not null)),
  add constraint volume_held_is_unlocked check (not team_key or pod_id is null or key_sealed is not null);
create index volume_unlocked on volume (unlocked_until) where team_key and key_sealed is not null and pod_id is null;
