package offer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

const (
	leaseName  = "offer.refresh." // and the adapter
	leaseFor   = time.Minute      // longer than a refresh may take
	maxTrouble = 500              // bytes of an adapter's error that are kept
)

var errEmpty = errors.New("the list is empty, which is not believed")

// Refresh asks every adapter that is due for its list, all at once, and stores
// what it says. The error joins what went wrong with single adapters: their
// offers stay as they were and, without news, hide five minutes after they were
// last seen. So does an empty list, which no adapter is believed.
func (s *Service) Refresh(ctx context.Context) error { return s.all(ctx, s.RefreshOne) }

// RefreshNow asks every adapter at once, whichever node has the lease and
// whenever they were asked last: after something is known to have changed.
func (s *Service) RefreshNow(ctx context.Context) error {
	return s.all(ctx, func(ctx context.Context, name string) error {
		s.once[name].Lock()
		defer s.once[name].Unlock()
		return s.refreshOne(ctx, name)
	})
}

// RefreshOne asks one adapter for its list, if it is due. Of several nodes only
// the one that holds the adapter's lease does it. One that hangs holds up
// nobody but itself.
func (s *Service) RefreshOne(ctx context.Context, name string) error {
	s.once[name].Lock()
	defer s.once[name].Unlock()
	wall := s.Clock.Wall()
	mine, err := pg.TryLease(ctx, s.Pool, leaseName+name, s.Node, leaseFor, wall)
	if err != nil || !mine {
		return err
	}
	due, err := s.due(ctx, name, wall)
	if err != nil || !due {
		return err
	}
	return s.refreshOne(ctx, name)
}

// Close gives the leases back, so that another node need not wait for their end.
func (s *Service) Close(ctx context.Context) error {
	return s.all(ctx, func(ctx context.Context, name string) error {
		s.once[name].Lock()
		defer s.once[name].Unlock()
		return pg.ReleaseLease(ctx, s.Pool, leaseName+name, s.Node)
	})
}

// all calls fn for every adapter at once.
func (s *Service) all(ctx context.Context, fn func(context.Context, string) error) error {
	var wg sync.WaitGroup
	names := slices.Sorted(maps.Keys(s.Adapters))
	errs := make([]error, len(names))
	for i, name := range names {
		wg.Go(func() { errs[i] = fn(ctx, name) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

const sqlFindAsked = `
select s.asked_at, b.probe_at from offer_source s left join provider_breaker b on b.adapter = s.adapter
where s.adapter = $1`

// due says whether it is an adapter's turn. One whose breaker is open is asked
// when its probe is.
func (s *Service) due(ctx context.Context, name string, wall time.Time) (bool, error) {
	var asked time.Time
	var probe *time.Time
	err := s.Pool.QueryRow(ctx, sqlFindAsked, name).Scan(&asked, &probe)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read when %s was asked: %w", name, err)
	}
	if probe != nil {
		return !wall.Before(*probe), nil
	}
	return !wall.Before(asked.Add(s.Every[name])), nil
}

func (s *Service) refreshOne(ctx context.Context, name string) error {
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	list, err := s.Adapters[name].Offers(asking)
	if ctx.Err() != nil {
		return ctx.Err() // this node stops: that says nothing of the cloud
	}
	switch {
	case errors.Is(err, provider.ErrNoCapacity):
		list, err = nil, nil // it is well, and all of it is let
	case err == nil && len(list) == 0:
		err = errEmpty
	}
	wall := s.Clock.Wall() // when it answered, not when it was asked
	if err != nil {
		return errors.Join(fmt.Errorf("list the offers of %s: %w", name, err), s.storeTrouble(ctx, name, err, wall),
			s.NoteCall(ctx, name, CallOffers, err))
	}
	return errors.Join(s.storeList(ctx, name, s.sellable(list), wall), s.NoteCall(ctx, name, CallOffers, nil))
}

// sellable drops what cannot be stored or sold, and all but the cheapest of
// equal tuples, and orders the rest by tuple: the order in which rows lock.
func (s *Service) sellable(list []provider.Offer) []provider.Offer {
	best := make(map[Tuple]provider.Offer, len(list))
	for _, o := range list {
		if !valid(o) || listPrice(o.UpstreamPrice, s.MarkupPermille) > money.MaxRate {
			continue
		}
		have, ok := best[TupleOf(o)]
		if !ok || o.UpstreamPrice < have.UpstreamPrice {
			best[TupleOf(o)] = o
		}
	}
	out := make([]provider.Offer, 0, len(best))
	for _, o := range best {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b provider.Offer) int { return compareTuples(TupleOf(a), TupleOf(b)) })
	return out
}

func valid(o provider.Offer) bool {
	const mostGB, mostGPUs = 10_000_000, 1024
	for _, text := range []string{o.Provider, o.CloudID, o.GPUType, o.Socket, o.Country, o.DataCenterID, o.Security, o.Image} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 500 {
			return false
		}
	}
	for _, n := range []int{o.GPUMemoryGB, o.MemoryGB, o.VCPU, o.DiskGB} {
		if n < 0 || n > mostGB {
			return false
		}
	}
	return o.Provider != "" && o.GPUType != "" && o.GPUCount > 0 && o.GPUCount <= mostGPUs &&
		o.UpstreamPrice > 0 && o.UpstreamPrice <= money.MaxRate &&
		o.DiskPrice >= 0 && o.DiskPrice <= money.MaxRate
}

func compareTuples(a, b Tuple) int {
	spot := func(t Tuple) int {
		if t.IsSpot {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.GPUType, b.GPUType), cmp.Compare(a.GPUCount, b.GPUCount),
		cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.CloudID, b.CloudID),
		cmp.Compare(a.Socket, b.Socket), cmp.Compare(a.Country, b.Country),
		cmp.Compare(a.DataCenterID, b.DataCenterID), cmp.Compare(a.Security, b.Security),
		cmp.Compare(spot(a), spot(b)),
	)
}

const sqlUpsertOffers = `
insert into offer (adapter, provider, cloud_id, gpu_type, gpu_count, socket, country,
  data_center_id, is_spot, security, gpu_memory_gb, memory_gb, vcpu, image, disk_gb,
  disk_price_usd_micro_per_hour, disk_included, upstream_usd_micro_per_hour, seen_at)
select @adapter, l.provider, l.cloud_id, l.gpu_type, l.gpu_count, l.socket, l.country,
  l.data_center_id, l.is_spot, l.security, l.gpu_memory_gb, l.memory_gb, l.vcpu, l.image, l.disk_gb,
  l.disk_price, l.disk_included, l.upstream, @wall
from unnest(@provider::text[], @cloud_id::text[], @gpu_type::text[], @gpu_count::integer[],
  @socket::text[], @country::text[], @data_center_id::text[], @is_spot::boolean[], @security::text[],
  @gpu_memory_gb::integer[], @memory_gb::integer[], @vcpu::integer[], @image::text[], @disk_gb::integer[],
  @disk_price::bigint[], @disk_included::boolean[], @upstream::bigint[])
  as l (provider, cloud_id, gpu_type, gpu_count, socket, country, data_center_id, is_spot, security,
  gpu_memory_gb, memory_gb, vcpu, image, disk_gb, disk_price, disk_included, upstream)
on conflict (provider, cloud_id, gpu_type, gpu_count, socket, country, data_center_id, is_spot, security, adapter)
do update set gpu_memory_gb = excluded.gpu_memory_gb, memory_gb = excluded.memory_gb, vcpu = excluded.vcpu,
  image = excluded.image, disk_gb = excluded.disk_gb,
  disk_price_usd_micro_per_hour = excluded.disk_price_usd_micro_per_hour,
  disk_included = excluded.disk_included,
  upstream_usd_micro_per_hour = excluded.upstream_usd_micro_per_hour, seen_at = excluded.seen_at`

const sqlForgetOffers = `delete from offer where adapter = $1 and seen_at <= $2`

const sqlUpsertSource = `
insert into offer_source (adapter, asked_at, listed_at, offers, trouble)
values (@adapter, @wall, @wall, @offers, '')
on conflict (adapter) do update set asked_at = @wall, listed_at = @wall, offers = @offers, trouble = ''`

func (s *Service) storeList(ctx context.Context, name string, list []provider.Offer, wall time.Time) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlUpsertSource, pgx.NamedArgs{"adapter": name, "wall": wall, "offers": len(list)}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlUpsertOffers, listArgs(name, list, wall)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlForgetOffers, name, wall.Add(-keptFor)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlBumpVersion)
		return err
	})
	if err != nil {
		return fmt.Errorf("store the offers of %s: %w", name, err)
	}
	return nil
}

// listArgs turns the list into one array per column.
func listArgs(name string, list []provider.Offer, wall time.Time) pgx.NamedArgs {
	return pgx.NamedArgs{
		"adapter": name, "wall": wall,
		"provider":       column(list, func(o provider.Offer) string { return o.Provider }),
		"cloud_id":       column(list, func(o provider.Offer) string { return o.CloudID }),
		"gpu_type":       column(list, func(o provider.Offer) string { return o.GPUType }),
		"gpu_count":      column(list, func(o provider.Offer) int { return o.GPUCount }),
		"socket":         column(list, func(o provider.Offer) string { return o.Socket }),
		"country":        column(list, func(o provider.Offer) string { return o.Country }),
		"data_center_id": column(list, func(o provider.Offer) string { return o.DataCenterID }),
		"is_spot":        column(list, func(o provider.Offer) bool { return o.IsSpot }),
		"security":       column(list, func(o provider.Offer) string { return o.Security }),
		"gpu_memory_gb":  column(list, func(o provider.Offer) int { return o.GPUMemoryGB }),
		"memory_gb":      column(list, func(o provider.Offer) int { return o.MemoryGB }),
		"vcpu":           column(list, func(o provider.Offer) int { return o.VCPU }),
		"image":          column(list, func(o provider.Offer) string { return o.Image }),
		"disk_gb":        column(list, func(o provider.Offer) int { return o.DiskGB }),
		"disk_price":     column(list, func(o provider.Offer) int64 { return int64(o.DiskPrice) }),
		"disk_included":  column(list, func(o provider.Offer) bool { return o.DiskIncluded }),
		"upstream":       column(list, func(o provider.Offer) int64 { return int64(o.UpstreamPrice) }),
	}
}

func column[T any](list []provider.Offer, of func(provider.Offer) T) []T {
	out := make([]T, len(list))
	for i, o := range list {
		out[i] = of(o)
	}
	return out
}

const sqlUpsertTrouble = `
insert into offer_source (adapter, asked_at, offers, trouble)
values (@adapter, @wall, 0, @trouble)
on conflict (adapter) do update set asked_at = @wall, trouble = @trouble`

// troubleOf is an error in words that can be stored.
func troubleOf(err error) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "")
	if len(text) > maxTrouble {
		text = strings.ToValidUTF8(text[:maxTrouble], "")
	}
	return text
}

func (s *Service) storeTrouble(ctx context.Context, name string, trouble error, wall time.Time) error {
	_, err := s.Pool.Exec(ctx, sqlUpsertTrouble, pgx.NamedArgs{"adapter": name, "wall": wall, "trouble": troubleOf(trouble)})
	if err != nil {
		return fmt.Errorf("record the trouble with %s: %w", name, err)
	}
	return nil
}
