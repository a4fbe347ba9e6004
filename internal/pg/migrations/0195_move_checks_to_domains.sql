-- What a column may hold by itself is a domain's to say: PostgreSQL parses the
-- CHECKs of a table anew in each statement that writes to it, two fifths of the
-- time of a credit, but keeps those of a domain for the session, and looks at
-- the columns only that a statement sets (ADR 17). What two columns must agree
-- on stays a CHECK.
create domain usd_micro as bigint check (value >= 0);
create domain usd_micro_above_zero as bigint check (value > 0);
create domain instant_us as bigint check (value > 0);
create domain usage_kind as text check (value in ('pod-runtime', 'volume-storage'));
create domain transfer_code as text check (value in ('credit', 'charge', 'refund', 'debit', 'repayment', 'writeoff'));
create domain arrears_step as smallint check (value between 0 and 4);
create domain spend_stage as smallint check (value in (0, 80, 95, 100, 101));
create domain warnings as smallint check (value between 0 and 7);

alter table wallet
  drop constraint wallet_balance_usd_micro_check, alter column balance_usd_micro type usd_micro,
  drop constraint wallet_receivable_usd_micro_check, alter column receivable_usd_micro type usd_micro,
  drop constraint wallet_burn_usd_micro_per_hour_check, alter column burn_usd_micro_per_hour type usd_micro,
  drop constraint wallet_pod_burn_usd_micro_per_hour_check, alter column pod_burn_usd_micro_per_hour type usd_micro,
  drop constraint wallet_low_usd_micro_check, alter column low_usd_micro type usd_micro_above_zero,
  drop constraint wallet_month_limit_usd_micro_check, alter column month_limit_usd_micro type usd_micro_above_zero,
  drop constraint wallet_settled_us_check, alter column settled_us type instant_us,
  drop constraint wallet_arrears_step_check, alter column arrears_step type arrears_step,
  drop constraint wallet_spend_stage_check, alter column spend_stage type spend_stage,
  drop constraint wallet_warned_check, alter column warned type warnings;

alter table transfer
  drop constraint transfer_amount_usd_micro_check, alter column amount_usd_micro type usd_micro_above_zero,
  drop constraint transfer_code_check, alter column code type transfer_code,
  drop constraint transfer_kind_check, alter column kind type usage_kind;
