-- Only usage has a window. The index held a row for every credit as well, all
-- under null, and each credit wrote to it.
alter table transfer drop constraint transfer_window_once;
create unique index transfer_window_once on transfer (segment_id, from_us) where segment_id is not null;
