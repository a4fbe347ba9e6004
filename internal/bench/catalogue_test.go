package bench_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/team"
)

// A cloud is an adapter that only lists; it hangs until hold is closed.
type cloud struct {
	provider.Adapter
	list []provider.Offer
	hold chan struct{}
}

func (c *cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.list, nil
}

// cloudsOf share out offers of all GPU types, in places and at prices that differ.
func cloudsOf(clouds, offers int) map[string]provider.Adapter {
	all := map[string]provider.Adapter{}
	tokens := gpu.Tokens()
	for i := range offers {
		name := fmt.Sprintf("cloud%d", i%clouds)
		if all[name] == nil {
			all[name] = &cloud{}
		}
		of, _ := gpu.Lookup(tokens[i/clouds%len(tokens)])
		count := 1 << (i / clouds / len(tokens) % 4)
		c := all[name].(*cloud)
		c.list = append(c.list, provider.Offer{
			Provider: name, CloudID: fmt.Sprintf("%s-%d", of.Token, i), GPUType: of.Token, GPUCount: count, GPUMemoryGB: of.VRAMGB * count,
			MemoryGB: 64 * count, VCPU: 16 * count, Socket: gpu.PCIe, Country: "US", DataCenterID: fmt.Sprintf("us-%d", i%7), Security: "secure_cloud",
			Image: "ubuntu", DiskGB: 500, DiskIncluded: true, UpstreamPrice: money.Rate((500_000 + i%997*1000) * count),
		})
	}
	return all
}

// TestCatalogue measures the lists of nine clouds: taken, looked through for what
// may stand in for an offer, and given out, also while one of them hangs.
func TestCatalogue(t *testing.T) {
	z, at := measured(t), load()
	const clouds = 9
	adapters := cloudsOf(clouds, z.offers)
	now := clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s, err := offer.New(offer.Deps{Pool: pgtest.New(t), Clock: now.Clock, Adapters: adapters})
	if err != nil {
		t.Fatal(err)
	}
	timed := func(fn func() error) float64 {
		t.Helper()
		began := time.Now()
		if err := fn(); err != nil {
			t.Fatal(err)
		}
		return time.Since(began).Seconds()
	}
	sorted := func(n int, fn func() error) []float64 {
		t.Helper()
		var all []float64
		for range n {
			all = append(all, timed(fn))
		}
		slices.Sort(all)
		return all
	}
	first := timed(func() error { return s.RefreshNow(t.Context()) })
	same := sorted(z.rounds, func() error { now.Advance(time.Minute); return s.RefreshNow(t.Context()) })
	var moved, served []float64
	for range z.rounds {
		c := adapters["cloud0"].(*cloud)
		for i := range c.list {
			c.list[i].UpstreamPrice += 1000
		}
		now.Advance(time.Minute)
		moved = append(moved, timed(func() error { return s.RefreshNow(t.Context()) }))
		now.Advance(2 * time.Second) // older than the catalogue in memory may be
		served = append(served, 1000*timed(func() error {
			body, _, err := s.ResourcesJSON(t.Context(), team.Pro)
			if err == nil && len(body) < 100*z.offers {
				err = fmt.Errorf("%d bytes of %d offers", len(body), z.offers)
			}
			return err
		}))
	}
	slices.Sort(moved)
	slices.Sort(served)
	asked := adapters["cloud1"].(*cloud).list[0]
	rank := sorted(100*z.rounds, func() error {
		return pg.InTx(t.Context(), s.Pool, func(tx pgx.Tx) error {
			equals, err := s.EqualTx(t.Context(), tx, asked, team.Pro, money.MaxRate, nil)
			if err == nil && len(equals) == 0 {
				err = fmt.Errorf("nothing stands in for %+v", asked)
			}
			return err
		})
	})
	for i := range rank {
		rank[i] *= 1000
	}
	hanging := adapters["cloud8"].(*cloud)
	beside := ratios{limit: 1.25}
	for range z.rounds {
		others := func() {
			for i := range clouds - 1 {
				name := fmt.Sprintf("cloud%d", i)
				if err := s.RefreshOne(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		}
		now.Advance(10 * time.Minute)
		alone := timed(func() error { others(); return nil })
		hanging.hold = make(chan struct{})
		now.Advance(10 * time.Minute)
		ended := make(chan error, 1)
		go func() { ended <- s.RefreshOne(t.Context(), "cloud8") }()
		with := timed(func() error { others(); return nil })
		close(hanging.hold)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		beside.wall = append(beside.wall, with/alone)
	}
	tp := topic{Title: fmt.Sprintf("A catalogue of %d offers from %d clouds", z.offers, clouds), Rows: []row{
		atMost("all lists taken, first", []float64{first}, 0.5, 10, "s"),
		atMost("all lists taken again, nothing new", same, 0.5, 10, "s"),
		atMost("all lists taken again, a ninth with other prices", moved, 0.5, 10, "s"),
		atMost("what may stand in for an offer, p99", rank, 0.99, 100, "ms"),
		atMost("priced and encoded after a change, for one plan", served, 0.5, 1000, "ms"),
		beside.row("eight lists taken while the ninth cloud hangs", "none hangs"),
	}}
	tp.Notes = append(tp.Notes, "Between two changes /resources answers from memory: see the API's table.")
	publish(t, "15-catalogue", tp.under(at))
}
