package providertest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"

	"homeport.dev/homeport/internal/provider"
)

var (
	gpuToken = regexp.MustCompile(`^[A-Za-z0-9_]+_[0-9]+GB$`)
	country  = regexp.MustCompile(`^[A-Z]{2}$`)
)

// key is the tuple that is unique within a cloud's list.
type key struct {
	provider, cloudID, gpu, socket, country, dataCenter, security string
	count                                                         int
	spot                                                          bool
}

func offersAreWellFormed(t *testing.T, k kit) {
	list, err := k.Offers(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("offers: %d, %v", len(list), err)
	}
	seen := map[key]bool{}
	for _, o := range list {
		id := key{o.Provider, o.CloudID, o.GPUType, o.Socket, o.Country, o.DataCenterID, o.Security, o.GPUCount, o.IsSpot}
		if seen[id] {
			t.Errorf("offered twice: %+v", id)
		}
		seen[id] = true
		for what, ok := range map[string]bool{
			"provider": o.Provider != "", "cloud id": o.CloudID != "", "socket": o.Socket != "", "image": o.Image != "",
			"gpu type": gpuToken.MatchString(o.GPUType), "gpu count": o.GPUCount > 0, "country": country.MatchString(o.Country),
			"gpu memory": o.GPUMemoryGB >= o.GPUCount, "memory": o.MemoryGB > 0, "vcpu": o.VCPU > 0, "disk": o.DiskGB > 0,
			"security": o.Security == "secure_cloud" || o.Security == "community_cloud", "price": o.UpstreamPrice > 0,
			"disk price": o.DiskPrice >= 0 && o.DiskIncluded == (o.DiskPrice == 0),
		} {
			if !ok {
				t.Errorf("bad %s in %+v", what, o)
			}
		}
	}
}

func offersAreConstant(t *testing.T, k kit) {
	one, err := k.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two, err := k.Offers(t.Context())
	if err != nil || !slices.Equal(one, two) {
		t.Errorf("two reads of the offers differ: %v", err)
	}
}

func offersFail(t *testing.T, k kit) {
	for _, kind := range []string{"error", "malformed", "rate_limited", "unauthorized"} {
		if !k.control.Inject(t, "offers", kind, 1) {
			continue
		}
		if list, err := k.Offers(t.Context()); err == nil {
			t.Errorf("%s: %d offers and no error", kind, len(list))
		}
		k.offer(t) // and then they are back
	}
}

func offersEmpty(t *testing.T, k kit) {
	k.inject(t, "offers", "empty")
	if list, err := k.Offers(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("empty: %d offers, %v", len(list), err)
	}
}

func offersSlow(t *testing.T, k kit) {
	k.inject(t, "offers", "slow")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Offers(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("slow offers of a caller who left: %v", err)
	}
}

func launchAboveMaximum(t *testing.T, k kit) {
	l := k.request(t, "hp-test-00000001-1")
	l.MaxPrice--
	if _, err := k.Launch(t.Context(), l); !errors.Is(err, provider.ErrPriceMoved) {
		t.Errorf("launch above the maximum: %v", err)
	}
	k.holds(t, 0)
}

func launchUnknownOffer(t *testing.T, k kit) {
	l := k.request(t, "hp-test-00000001-1")
	l.Offer.CloudID = "no-such-offer"
	if _, err := k.Launch(t.Context(), l); !provider.NoMachine(err) {
		t.Errorf("launch of an unknown offer: %v", err)
	}
	k.holds(t, 0)
}
