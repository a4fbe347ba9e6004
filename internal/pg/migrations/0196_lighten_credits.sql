-- What several columns of a wallet or a charge must agree on is a trigger's to
-- say, which is compiled once in a session and looks where such a column is
-- written only: as CHECKs they were parsed anew for each credit, which writes
-- none of them (ADR 17).
alter table wallet
  drop constraint wallet_two_accounts, drop constraint wallet_pod_burn_is_a_part,
  drop constraint wallet_check, drop constraint wallet_check1,
  drop constraint wallet_arrears_began, drop constraint wallet_arrears_end_follows;

create function refuse_unsound_wallet() returns trigger language plpgsql as $$
declare
  broken text := case
    when new.account_id = new.receivable_account_id then 'wallet_two_accounts'
    when new.pod_burn_usd_micro_per_hour > new.burn_usd_micro_per_hour then 'wallet_pod_burn_is_a_part'
    when new.due_us <= new.settled_us then 'wallet_due_is_ahead'
    when new.exhausts_us < new.settled_us then 'wallet_exhausts_ahead'
    when (new.arrears_us is null) <> (new.arrears_step = 0) then 'wallet_arrears_began'
    when new.arrears_end_us is not null and new.arrears_us is null then 'wallet_arrears_end_follows'
  end;
begin
  if broken is not null then
    raise exception 'wallet of team % violates %', new.team_id, broken using errcode = 'check_violation', constraint = broken, table = 'wallet';
  end if;
  return new;
end
$$;
create trigger wallet_sound before insert or update of account_id, receivable_account_id, burn_usd_micro_per_hour,
  pod_burn_usd_micro_per_hour, settled_us, due_us, exhausts_us, arrears_us, arrears_step, arrears_end_us
  on wallet for each row execute function refuse_unsound_wallet();

alter table transfer drop constraint transfer_charge_has_window;

create function refuse_unsound_charge() returns trigger language plpgsql as $$
begin
  if new.kind is null or new.resource_id is null or new.segment_id is null or new.day_us is null
    or (new.from_us < new.to_us and new.to_us >= new.day_us and new.to_us <= new.day_us + 86400000000) is not true then
    raise exception 'charge % has no window', new.key using errcode = 'check_violation', constraint = 'transfer_charge_has_window', table = 'transfer';
  end if;
  return new;
end
$$;
create trigger transfer_charge_sound before insert on transfer for each row when (new.code = 'charge')
  execute function refuse_unsound_charge();

-- Whose wallet a payment is in is found by the key of what gave it back.
drop index transfer_payment;
