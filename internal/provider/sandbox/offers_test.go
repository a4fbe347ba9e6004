//go:build linux

package sandbox_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// whole is the disk that a full volume needs (server rule 1).
const whole = 500*105/100 + 10

func TestCatalogueShowsTheProduct(t *testing.T) {
	t.Parallel()
	s, _ := plain(t)
	clouds := map[string]map[string]bool{} // by GPU type
	counts := map[string][]int{}
	all, spot, community, roomy := 0, 0, 0, 0
	for name, c := range s.Clouds() {
		list, err := c.Offers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			all++
			if clouds[o.GPUType] == nil {
				clouds[o.GPUType] = map[string]bool{}
			}
			clouds[o.GPUType][name] = true
			counts[o.GPUType] = append(counts[o.GPUType], o.GPUCount)
			spot += one(o.IsSpot)
			community += one(o.Security == "community_cloud")
			roomy += one(o.DiskGB >= whole)
		}
	}
	if len(s.Clouds()) < 5 || all < 120 || all > 200 || spot == 0 || community == 0 || roomy < all/3 || roomy > all*9/10 {
		t.Errorf("%d clouds, %d offers, %d spot, %d community, %d with room for a full volume", len(s.Clouds()), all, spot, community, roomy)
	}
	for gpu, n := range counts {
		if !slices.Contains(n, 1) {
			t.Errorf("%s is never offered alone", gpu)
		}
	}
	for _, gpu := range []string{"H100_80GB", "A100_80GB"} {
		if len(clouds[gpu]) < 3 {
			t.Errorf("%s is on %d clouds", gpu, len(clouds[gpu]))
		}
		for n := 1; n <= 8; n++ {
			if !slices.Contains(counts[gpu], n) {
				t.Errorf("%s is not offered %d at once", gpu, n)
			}
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func TestMarketWalksSlowlyAndAlike(t *testing.T) {
	t.Parallel()
	now := clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	open := func(m sandbox.Market) provider.Adapter {
		s, err := sandbox.New(sandbox.Config{Dir: t.TempDir(), Clock: now.Clock, Logger: slog.New(slog.DiscardHandler), Market: m})
		if err != nil {
			t.Fatal(err)
		}
		return s.Clouds()["saltpier"]
	}
	still, one, two := open(sandbox.Constant), open(sandbox.Walk), open(sandbox.Walk)
	moved := 0
	for range 48 {
		plain, a, b := offersOf(t, still), offersOf(t, one), offersOf(t, two)
		if !slices.Equal(a, b) {
			t.Fatal("two nodes ask different prices")
		}
		for i := range a {
			if off := (a[i].UpstreamPrice - plain[i].UpstreamPrice) * 1000 / plain[i].UpstreamPrice; off < -60 || off > 60 {
				t.Errorf("price %v walked to %v", plain[i].UpstreamPrice, a[i].UpstreamPrice)
			} else if off != 0 {
				moved++
			}
		}
		now.Advance(30 * time.Minute)
	}
	if moved == 0 {
		t.Error("no price moved in a day")
	}
}

func offersOf(t *testing.T, c provider.Adapter) []provider.Offer {
	t.Helper()
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}
