package offer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

// A row is an offer as it is stored.
type row struct {
	Adapter                  string
	Provider                 string
	CloudID                  string
	GPUType                  string
	GPUCount                 int
	Socket                   string
	Country                  string
	DataCenterID             string
	IsSpot                   bool
	Security                 string
	GPUMemoryGB              int
	MemoryGB                 int
	VCPU                     int `db:"vcpu"`
	Image                    string
	DiskGB                   int
	DiskPriceUSDMicroPerHour int64
	DiskIncluded             bool
	UpstreamUSDMicroPerHour  int64
	SeenAt                   time.Time
	OffSaleUntil             *time.Time // sold out or its adapter suspended
}

func (r row) offer() provider.Offer {
	return provider.Offer{
		Provider: r.Provider, CloudID: r.CloudID, GPUType: r.GPUType, GPUCount: r.GPUCount,
		GPUMemoryGB: r.GPUMemoryGB, MemoryGB: r.MemoryGB, VCPU: r.VCPU, Socket: r.Socket,
		Country: r.Country, DataCenterID: r.DataCenterID, Security: r.Security, IsSpot: r.IsSpot,
		Image: r.Image, DiskGB: r.DiskGB, DiskPrice: money.Rate(r.DiskPriceUSDMicroPerHour),
		DiskIncluded: r.DiskIncluded, UpstreamPrice: money.Rate(r.UpstreamUSDMicroPerHour),
	}
}

// live says whether the offer may be shown and sold.
func (r row) live(wall time.Time) bool {
	return r.SeenAt.Add(VisibleFor).After(wall) && (r.OffSaleUntil == nil || !r.OffSaleUntil.After(wall))
}

const sqlListOffers = `
select o.adapter, o.provider, o.cloud_id, o.gpu_type, o.gpu_count, o.socket, o.country,
  o.data_center_id, o.is_spot, o.security, o.gpu_memory_gb, o.memory_gb, o.vcpu, o.image,
  o.disk_gb, o.disk_price_usd_micro_per_hour, o.disk_included, o.upstream_usd_micro_per_hour,
  o.seen_at, greatest(o.sold_out_until, s.suspended_until) as off_sale_until
from offer o join offer_source s on s.adapter = o.adapter
where o.adapter = any(@adapters) and o.seen_at > @since`

const sqlFindTuple = `
select o.adapter, o.provider, o.cloud_id, o.gpu_type, o.gpu_count, o.socket, o.country,
  o.data_center_id, o.is_spot, o.security, o.gpu_memory_gb, o.memory_gb, o.vcpu, o.image,
  o.disk_gb, o.disk_price_usd_micro_per_hour, o.disk_included, o.upstream_usd_micro_per_hour,
  o.seen_at, greatest(o.sold_out_until, s.suspended_until) as off_sale_until
from offer o join offer_source s on s.adapter = o.adapter
where o.adapter = any(@adapters) and o.seen_at > @since
  and o.provider = @provider and o.cloud_id = @cloud_id and o.gpu_type = @gpu_type
  and o.gpu_count = @gpu_count and o.socket = @socket and o.country = @country
  and o.data_center_id = @data_center_id and o.is_spot = @is_spot and o.security = @security`

const sqlListOfType = `
select o.adapter, o.provider, o.cloud_id, o.gpu_type, o.gpu_count, o.socket, o.country,
  o.data_center_id, o.is_spot, o.security, o.gpu_memory_gb, o.memory_gb, o.vcpu, o.image,
  o.disk_gb, o.disk_price_usd_micro_per_hour, o.disk_included, o.upstream_usd_micro_per_hour,
  o.seen_at, greatest(o.sold_out_until, s.suspended_until) as off_sale_until
from offer o join offer_source s on s.adapter = o.adapter
where o.adapter = any(@adapters) and o.seen_at > @since and o.gpu_type = @gpu_type`

func (s *Service) query(ctx context.Context, q pg.Querier, sql string, args pgx.NamedArgs) ([]row, error) {
	args["adapters"] = slices.Sorted(maps.Keys(s.Adapters))
	rows, err := q.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return found, nil
}

func (s *Service) findTuple(ctx context.Context, q pg.Querier, t Tuple, since time.Time) ([]row, error) {
	args := tupleArgs(t)
	args["since"] = since
	return s.query(ctx, q, sqlFindTuple, args)
}

func tupleArgs(t Tuple) pgx.NamedArgs {
	return pgx.NamedArgs{
		"provider": t.Provider, "cloud_id": t.CloudID, "gpu_type": t.GPUType, "gpu_count": t.GPUCount,
		"socket": t.Socket, "country": t.Country, "data_center_id": t.DataCenterID,
		"is_spot": t.IsSpot, "security": t.Security,
	}
}

const sqlBumpVersion = `update offer_version set version = version + 1 where single`

const sqlMarkSoldOut = `
update offer set sold_out_until = @until
where provider = @provider and cloud_id = @cloud_id and gpu_type = @gpu_type
  and gpu_count = @gpu_count and socket = @socket and country = @country
  and data_center_id = @data_center_id and is_spot = @is_spot and security = @security`

// MarkSoldOut takes an offer off sale for two minutes, after a launch found it
// sold out although it was listed.
func (s *Service) MarkSoldOut(ctx context.Context, t Tuple, wall time.Time) error {
	args := tupleArgs(t)
	args["until"] = wall.Add(soldOutFor)
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlMarkSoldOut, args); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlBumpVersion)
		return err
	})
	if err != nil {
		return fmt.Errorf("mark an offer sold out: %w", err)
	}
	return nil
}
