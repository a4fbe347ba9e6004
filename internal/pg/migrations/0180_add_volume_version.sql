-- A version that was restored is a snapshot without a pod: pod_id is the nil
-- UUID, restored_seq the snapshot whose tree it has again, restored_by the
-- person (nil: the operator). stored holds its object until that is published.
-- The counts of files that differ from the snapshot changes_since are filled in
-- when somebody looks; null where there were too many to count.
alter table volume_snapshot
  add column restored_seq bigint,
  add column restored_by uuid,
  add column stored bytea,
  add column changes_since bigint,
  add column files_added bigint,
  add column files_changed bigint,
  add column files_removed bigint,
  add constraint volume_snapshot_restored_together check ((restored_seq is null) = (restored_by is null)),
  add constraint volume_snapshot_counts_together check ((files_added is null) = (files_changed is null)
    and (files_added is null) = (files_removed is null) and (files_added is null or changes_since is not null));
