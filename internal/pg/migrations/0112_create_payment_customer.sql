-- What a team is to a processor that keeps its cards and invoices.
-- owner: payment
create table payment_customer (
  team_id uuid not null,
  processor text not null check (processor in ('stripe', 'test')),
  customer_id text not null check (customer_id <> ''),
  created_at timestamptz not null,
  primary key (team_id, processor)
);
