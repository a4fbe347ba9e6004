-- The answer given under an Idempotency-Key, kept for a day of wall time.
-- owner: idem
create table idem_answer (
  scope text not null check (scope <> ''),
  key text not null check (key <> '' and length(key) <= 255),
  body_hash bytea not null,
  answer bytea,
  created_at timestamptz not null,
  primary key (scope, key)
);
create index idem_answer_created_at on idem_answer (created_at);
