package verda_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

const foreign = "1f0c0a52-1111-4222-8333-444455556666"

func TestVerdaKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double, _ := fresh(t)
		return c, double
	})
}

// TestJourneyLeavesNothingBehind makes every call. The double refuses a request
// with a member that is not known of Verda, which publishes no description.
func TestJourneyLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c, double, a := fresh(t)
	providertest.Journey(t, c)
	if left := a.ScriptNames(); len(left) > 0 {
		t.Errorf("scripts are left: %v", left)
	}
	for _, r := range double.Requests() {
		if strings.Contains(r.Path, "key") {
			t.Errorf("%s %s: keys need not be left at Verda", r.Method, r.Path)
		}
	}
}

// TestRecordedAnswersAreAsTheDoubles: what the double answers has the members
// that Verda's answers had, and no others.
func TestRecordedAnswersAreAsTheDoubles(t *testing.T) {
	t.Parallel()
	a := verdatest.NewAccount(t)
	members := func(v map[string]any) []string { return slices.Sorted(maps.Keys(v)) }
	for name, ours := range map[string]map[string]any{
		"instance-types.sample.json": a.Types[0], "instances.shape.json": a.Instance, "locations.sample.json": a.Locations[0],
		"instance-availability-spot.sample.json": a.Stock[0],
	} {
		var recorded []map[string]any
		cloudtest.Read(t, cloudtest.Shared(t, "verda/"+name), &recorded)
		if diff := cmp.Diff(members(recorded[0]), members(ours)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func row(id, token string, n, memory, ram, vcpu int, socket, country, dc, image string, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: "verda", CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
		Country: country, DataCenterID: dc, Security: "secure_cloud", Image: image, DiskGB: 100, DiskPrice: 274, UpstreamPrice: price,
	}
}

// TestOffersAreWhatVerdaSells: see the catalogue for what is dropped, and why.
func TestOffersAreWhatVerdaSells(t *testing.T) {
	t.Parallel()
	c, _, _ := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Offer{
		row("1A6000.9X", "A6000_48GB", 1, 48, 55, 9, "PCIe", "FI", "OUL-01", "ubuntu-24.04", 491_235), // part of a micro-dollar is one
		row("4A100.99X", "A100_80GB", 4, 320, 480, 96, "SXM4", "FI", "OUL-01", "ubuntu-24.04", 5_160_000),
		row("1V100.5X", "V100_16GB", 1, 16, 22, 5, "PCIe", "FI", "OUL-01", "ubuntu-22.04", 140_000),
		row("1L40S.19X", "L40S_48GB", 1, 48, 58, 19, "PCIe", "FI", "OUL-01", "ubuntu-24.04", 950_000), // the dearer of two of a name
		row("4A100.99X", "A100_80GB", 4, 320, 480, 96, "SXM4", "IS", "AKU-02", "ubuntu-24.04", 5_160_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedCatalogueIsUnderstood reads what Verda once answered. What it had
// of spot machines stands for what it has on demand.
func TestRecordedCatalogueIsUnderstood(t *testing.T) {
	t.Parallel()
	a := verdatest.NewAccount(t)
	a.Types, a.Stock, a.Locations = nil, nil, nil
	cloudtest.Read(t, cloudtest.Shared(t, "verda/instance-types.sample.json"), &a.Types)
	cloudtest.Read(t, cloudtest.Shared(t, "verda/instance-availability-spot.sample.json"), &a.Stock)
	cloudtest.Read(t, cloudtest.Shared(t, "verda/locations.sample.json"), &a.Locations)
	c, _ := freshOf(t, a, verdatest.Dialect(a), nil)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Offer{
		row("2A6000.20V", "A6000_48GB", 2, 96, 120, 20, "PCIe", "FI", "FIN-01", "ubuntu-24.04", 1_980_000),
		row("1V100.6V", "V100_16GB", 1, 16, 23, 6, "PCIe", "FI", "FIN-01", "ubuntu-24.04", 890_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestOffersAreNotGuessed: a list that is missing is an error, not an empty one.
func TestOffersAreNotGuessed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(a *verdatest.Account){
		"no price of a disk": func(a *verdatest.Account) { a.VolumeTypes = a.VolumeTypes[:2] },
		"no stock":           func(a *verdatest.Account) { a.Stock = nil },
		"no places":          func(a *verdatest.Account) { a.Locations = nil },
	} {
		c, _, a := fresh(t)
		spoil(a)
		if list, err := c.Offers(t.Context()); err == nil {
			t.Errorf("%s: %v and no error", name, list)
		}
	}
}
