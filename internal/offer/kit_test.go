package offer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// A cloud is an adapter that only lists.
type cloud struct {
	provider.Adapter
	mu    sync.Mutex
	list  []provider.Offer
	err   error
	asked atomic.Int64
}

func (c *cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	c.asked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, c.err
}

func (c *cloud) set(err error, list ...provider.Offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.err = list, err
}

func h100(change ...func(*provider.Offer)) provider.Offer {
	o := provider.Offer{
		Provider: "aurora", CloudID: "h100-1", GPUType: "H100_80GB", GPUCount: 1, GPUMemoryGB: 80, MemoryGB: 200,
		VCPU: 24, Socket: "SXM5", Country: "US", DataCenterID: "us-1", Security: "secure_cloud",
		Image: "ubuntu", DiskGB: 500, DiskIncluded: true, UpstreamPrice: 2_000_000,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func named(cloudID string) func(*provider.Offer) {
	return func(o *provider.Offer) { o.CloudID = cloudID }
}

func priced(r money.Rate) func(*provider.Offer) {
	return func(o *provider.Offer) { o.UpstreamPrice = r }
}

type market struct {
	*offer.Service
	t     *testing.T
	clock *clock.Manual
	a, b  *cloud
}

func newMarket(t *testing.T) *market {
	t.Helper()
	m := &market{t: t, clock: clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), a: &cloud{}, b: &cloud{}}
	var err error
	m.Service, err = offer.New(offer.Deps{
		Pool: pgtest.New(t), Clock: m.clock.Clock, Adapters: map[string]provider.Adapter{"a": m.a, "b": m.b},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *market) refresh() {
	m.t.Helper()
	_ = m.Refresh(m.t.Context()) // what failed shows in what is visible
}

// visible lists the cloud ids on sale.
func (m *market) visible() map[string]money.Rate {
	m.t.Helper()
	m.clock.Advance(time.Second) // older than the catalogue in memory may be
	all, _, err := m.Resources(m.t.Context(), team.Hobby)
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]money.Rate{}
	for _, list := range all {
		for _, o := range list {
			out[o.CloudID] = o.Price
		}
	}
	return out
}

func (m *market) quote(ask offer.Ask) (q offer.Quote, err error) {
	m.t.Helper()
	if ask.Currency == "" {
		ask.Currency = "USD"
	}
	err = pg.InTx(m.t.Context(), m.Pool, func(tx pgx.Tx) error {
		q, err = m.QuoteTx(m.t.Context(), tx, ask)
		return err
	})
	return q, err
}
