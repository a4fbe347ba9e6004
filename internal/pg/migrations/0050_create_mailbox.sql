-- owner: mail/mailbox
create table mailbox_message (
  seq     bigint generated always as identity primary key,
  id      uuid not null unique,
  key     text,
  to_addr text not null,
  subject text not null,
  body    text not null,
  html    text not null,
  sent_at timestamptz not null
);

-- The same letter sent twice is kept once.
create unique index mailbox_message_key on mailbox_message (key) where key is not null;
