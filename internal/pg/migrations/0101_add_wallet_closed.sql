-- When the wallet's team was deleted and what was left went back to the payers.
-- Money that comes later, from a checkout that was open then, goes the same way.
alter table wallet add column closed_at timestamptz;
create index wallet_closed on wallet (team_id) where closed_at is not null;
