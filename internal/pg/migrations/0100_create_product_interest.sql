-- A team waits for a product that is not there yet. Who withdraws removes the
-- row.
-- owner: interest
create table product_interest (
  team_id uuid not null references team (id),
  product text not null check (product in ('batch-inference', 'multi-node-clusters')),
  user_id uuid not null,
  created_at timestamptz not null,
  primary key (team_id, product)
);
create index product_interest_product on product_interest (product, created_at);
