-- What a volume cost while it lay in the trash is charged when it is taken out,
-- and entered on that day: a day that is over may be in a statement. Its window
-- ends on the day of its row, but may have begun before.
alter table transfer drop constraint transfer_charge_has_window,
  add constraint transfer_charge_has_window check (code <> 'charge' or (kind is not null and resource_id is not null
    and segment_id is not null and day_us is not null and from_us < to_us and to_us >= day_us and to_us <= day_us + 86400000000));
