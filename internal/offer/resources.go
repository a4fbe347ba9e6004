package offer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// checkEvery is how old, in wall time, the catalogue in memory may be before
// the version in the database is read again.
const checkEvery = time.Second

// A cache holds the visible catalogue in memory, priced and encoded, so that
// reading it costs no query. Views are immutable.
type cache struct {
	loading sync.Mutex
	view    atomic.Pointer[view]
}

type view struct {
	version   int64
	checkedAt time.Time
	changesAt time.Time // when the first offer hides or comes back by itself
	list, pro priced
}

type priced struct {
	byType map[string][]Priced
	body   []byte
	etag   string
}

func (v *view) of(plan team.Plan) priced {
	if plan == team.Pro {
		return v.pro
	}
	return v.list
}

func (v *view) fresh(wall time.Time) bool {
	return v != nil && wall.Before(v.changesAt) && wall.Before(v.checkedAt.Add(checkEvery))
}

// Resources returns what is visible, by GPU type, at the prices of a plan, the
// cheapest first, with a tag that changes with the content. Callers must not
// change it. An empty plan is a visitor: list prices.
func (s *Service) Resources(ctx context.Context, plan team.Plan) (map[string][]Priced, string, error) {
	v, err := s.current(ctx)
	if err != nil {
		return nil, "", err
	}
	p := v.of(plan)
	return p.byType, p.etag, nil
}

// ResourcesJSON returns Resources in the form of GET /resources: an object of
// arrays, with prices as exact decimals. Callers must not change the body. The
// tag is quoted, ready for ETag.
func (s *Service) ResourcesJSON(ctx context.Context, plan team.Plan) (body []byte, etag string, err error) {
	v, err := s.current(ctx)
	if err != nil {
		return nil, "", err
	}
	p := v.of(plan)
	return p.body, p.etag, nil
}

// current returns the catalogue as it was at most a second ago. While one
// caller reads it anew the others get the one before.
func (s *Service) current(ctx context.Context) (*view, error) {
	v, wall := s.cache.view.Load(), s.Clock.Wall()
	if v.fresh(wall) {
		return v, nil
	}
	if v == nil || !wall.Before(v.changesAt) {
		s.cache.loading.Lock()
	} else if !s.cache.loading.TryLock() {
		return v, nil
	}
	defer s.cache.loading.Unlock()
	if v = s.cache.view.Load(); v.fresh(wall) {
		return v, nil
	}
	next, err := s.reload(ctx, v, wall)
	if err != nil {
		if v != nil && wall.Before(v.changesAt) { // still true, as far as anybody knows
			return v, nil
		}
		return nil, err
	}
	s.cache.view.Store(next)
	return next, nil
}

const sqlFindVersion = `select version from offer_version where single`

func (s *Service) reload(ctx context.Context, old *view, wall time.Time) (*view, error) {
	var version int64
	if err := s.Pool.QueryRow(ctx, sqlFindVersion).Scan(&version); err != nil {
		return nil, fmt.Errorf("read the catalogue's version: %w", err)
	}
	if old != nil && old.version == version && wall.Before(old.changesAt) {
		next := *old
		next.checkedAt = wall
		return &next, nil
	}
	rows, err := s.query(ctx, s.Pool, sqlListOffers, pgx.NamedArgs{"since": wall.Add(-VisibleFor)})
	if err != nil {
		return nil, err
	}
	return s.viewOf(rows, version, wall)
}

// viewOf makes the view of stored offers at an instant.
func (s *Service) viewOf(rows []row, version int64, wall time.Time) (*view, error) {
	v := &view{version: version, checkedAt: wall, changesAt: wall.Add(VisibleFor)}
	best := map[Tuple]Offer{}
	for _, r := range rows {
		if hides := r.SeenAt.Add(VisibleFor); hides.After(wall) && hides.Before(v.changesAt) {
			v.changesAt = hides
		}
		if back := r.OffSaleUntil; back != nil && back.After(wall) && back.Before(v.changesAt) {
			v.changesAt = *back
		}
		if !r.live(wall) {
			continue
		}
		o := s.priced(r)
		if have, ok := best[TupleOf(o.Offer)]; !ok || cheaper(o, have) {
			best[TupleOf(o.Offer)] = o
		}
	}
	var err error
	if v.list, err = priceAll(best, team.Hobby); err != nil {
		return nil, err
	}
	v.pro, err = priceAll(best, team.Pro)
	return v, err
}

// cheaper orders offers of one tuple that several adapters sell.
func cheaper(a, b Offer) bool {
	return cmp.Or(cmp.Compare(a.UpstreamPrice, b.UpstreamPrice), cmp.Compare(a.Adapter, b.Adapter)) < 0
}

func (s *Service) priced(r row) Offer {
	o := r.offer()
	return Offer{Offer: o, Adapter: r.Adapter, SeenAt: r.SeenAt, ListPrice: listPrice(o.UpstreamPrice, s.MarkupPermille)}
}

func priceAll(offers map[Tuple]Offer, plan team.Plan) (priced, error) {
	p := priced{byType: map[string][]Priced{}}
	wire := map[string][]wireOffer{}
	for _, o := range offers {
		p.byType[o.GPUType] = append(p.byType[o.GPUType], Priced{Offer: o, Price: PlanPrice(o.ListPrice, plan)})
	}
	for gpuType, list := range p.byType {
		slices.SortFunc(list, func(a, b Priced) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), compareTuples(TupleOf(a.Offer.Offer), TupleOf(b.Offer.Offer)))
		})
		for _, o := range list {
			wire[gpuType] = append(wire[gpuType], wireOf(o))
		}
	}
	body, err := json.Marshal(wire)
	if err != nil {
		return priced{}, fmt.Errorf("encode the catalogue: %w", err)
	}
	sum := sha256.Sum256(body)
	p.body, p.etag = body, `"`+hex.EncodeToString(sum[:12])+`"`
	return p, nil
}

// wireOffer is an offer in JSON, as GET /resources gives it.
type wireOffer struct {
	GPUType         string       `json:"gpuType"`
	GPUCount        int          `json:"gpuCount"`
	GPUMemory       int          `json:"gpuMemory"`
	Memory          int          `json:"memory"`
	VCPU            int          `json:"vcpu"`
	Price           json.Number  `json:"price"`
	ListPrice       json.Number  `json:"listPrice"`
	Socket          string       `json:"socket"`
	Country         string       `json:"country"`
	Provider        string       `json:"provider"`
	CloudID         string       `json:"cloudId"`
	Currency        string       `json:"currency"`
	DefaultDiskSize int          `json:"defaultDiskSize"`
	DiskPrice       *json.Number `json:"diskPrice"`
	Security        string       `json:"security"`
	IsSpot          bool         `json:"isSpot"`
	DataCenterID    *string      `json:"dataCenterId"`
	Image           string       `json:"image"`
}

func wireOf(o Priced) wireOffer {
	w := wireOffer{
		GPUType: o.GPUType, GPUCount: o.GPUCount, GPUMemory: o.GPUMemoryGB, Memory: o.MemoryGB, VCPU: o.VCPU,
		Price: number(o.Price), ListPrice: number(o.ListPrice), Socket: o.Socket, Country: o.Country,
		Provider: o.Provider, CloudID: o.CloudID, Currency: Currency, DefaultDiskSize: o.DiskGB,
		Security: o.Security, IsSpot: o.IsSpot, Image: o.Image,
	}
	if !o.DiskIncluded {
		n := number(o.DiskPrice)
		w.DiskPrice = &n
	}
	if o.DataCenterID != "" {
		w.DataCenterID = &o.DataCenterID
	}
	return w
}

func number(r money.Rate) json.Number { return json.Number(r.Decimal()) }
