-- What a cloud sells, as its adapter saw it last. All instants are wall time.
-- owner: offer
create table offer (
  adapter text not null,
  provider text not null,
  cloud_id text not null,
  gpu_type text not null,
  gpu_count integer not null check (gpu_count > 0),
  socket text not null,
  country text not null,
  data_center_id text not null,
  is_spot boolean not null,
  security text not null,
  gpu_memory_gb integer not null check (gpu_memory_gb >= 0),
  memory_gb integer not null check (memory_gb >= 0),
  vcpu integer not null check (vcpu >= 0),
  image text not null,
  disk_gb integer not null check (disk_gb >= 0),
  disk_price_usd_micro_per_hour bigint not null check (disk_price_usd_micro_per_hour >= 0),
  disk_included boolean not null,
  upstream_usd_micro_per_hour bigint not null check (upstream_usd_micro_per_hour > 0),
  seen_at timestamptz not null,
  sold_out_until timestamptz,
  primary key (provider, cloud_id, gpu_type, gpu_count, socket, country, data_center_id, is_spot, security, adapter)
);
create index offer_seen_at on offer (seen_at);
create index offer_gpu on offer (gpu_type, gpu_count);

-- When an adapter was asked, and how it went.
-- owner: offer
create table offer_source (
  adapter text primary key,
  asked_at timestamptz not null,
  listed_at timestamptz,
  offers integer not null,
  trouble text not null,
  suspended_until timestamptz
);

-- Raised by every change of the catalogue, so that nodes know when to read it.
-- owner: offer
create table offer_version (
  single boolean primary key check (single),
  version bigint not null
);
insert into offer_version (single, version) values (true, 1);
