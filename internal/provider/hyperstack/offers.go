package hyperstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// system is what machines start with: which of a region's images it is a launch
// chooses.
const system = "Ubuntu Server with CUDA"

// publicIP is what the address of a machine costs, which is in every price.
const publicIP = money.Rate(6_721)

// models are the GPUs for rent, by Hyperstack's names, which say no memory in a
// way that all have. What else is in a name, such as -spot, makes another GPU of
// it.
var models = map[string]struct{ token, socket string }{
	"A100-80G-PCIe":        {"A100_80GB", gpu.PCIe},
	"A100-80G-PCIe-NVLink": {"A100_80GB", gpu.PCIe},
	"A100-80G-SXM4":        {"A100_80GB", gpu.SXM4},
	"B200-SXM":             {"B200_180GB", gpu.SXM6},
	"H100-80G-PCIe":        {"H100_80GB", gpu.PCIe},
	"H100-80G-PCIe-NVLink": {"H100_80GB", gpu.PCIe},
	"H100-80G-SXM5":        {"H100_80GB", gpu.SXM5},
	"H200-141G-SXM5":       {"H200_141GB", gpu.SXM5},
	"L40":                  {"L40_48GB", gpu.PCIe},
	"RTX-A4000":            {"A4000_16GB", gpu.PCIe},
	"RTX-A5000":            {"A5000_24GB", gpu.PCIe},
	"RTX-A6000":            {"A6000_48GB", gpu.PCIe},
	"RTX-A6000-ada":        {"RTX6000Ada_48GB", gpu.PCIe},
	"RTX-PRO6000-SE":       {"RTX_PRO_6000B_96GB", gpu.PCIe},
}

// flavor is one of GET /core/flavors.
type flavor struct {
	Name     string  `json:"name"`
	Region   string  `json:"region_name"`
	GPU      string  `json:"gpu"` // "" = none
	GPUCount int     `json:"gpu_count"`
	CPU      int     `json:"cpu"`
	RAM      float64 `json:"ram"`  // GB
	Disk     int     `json:"disk"` // GB of the system's disk
	InStock  bool    `json:"stock_available"`
}

// priced is one of GET /pricebook.
type priced struct {
	Name  string          `json:"name"`  // of a GPU, among others
	Value json.RawMessage `json:"value"` // USD per hour and GPU, discounts taken off, number or text
	Start string          `json:"start_time"`
	End   string          `json:"end_time"`
}

// Offers implements provider.Adapter.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) { return c.flavors(ctx, "") }

// flavors are what is for sale in a region, "" = in all.
func (c *Cloud) flavors(ctx context.Context, region string) ([]provider.Offer, error) {
	var query url.Values
	if region != "" {
		query = url.Values{"region": {region}}
	}
	var answer struct {
		Data *[]struct {
			Flavors []flavor `json:"flavors"`
		} `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/core/flavors", Query: query}, &answer)
	if err == nil && answer.Data == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return nil, fmt.Errorf("list the flavors: %w", err)
	}
	prices, err := c.prices(ctx)
	if err != nil {
		return nil, err
	}
	var list []provider.Offer
	at := map[key]int{}
	for _, group := range *answer.Data {
		for _, f := range group.Flavors {
			o, ok := f.offer(prices)
			if !ok {
				continue
			}
			// A machine is asked for by these words alone: of two that differ
			// otherwise the dearer one may be what comes.
			if i, twice := at[keyOf(o)]; !twice {
				at[keyOf(o)] = len(list)
				list = append(list, o)
			} else if o.UpstreamPrice > list[i].UpstreamPrice {
				list[i] = o
			}
		}
	}
	return list, nil
}

// key is all that a request for a machine can say of it.
type key struct{ flavor, region string }

func keyOf(o provider.Offer) key { return key{o.CloudID, o.DataCenterID} }

// prices are what a GPU costs per hour, by its name. Of two for one the dearer
// counts.
func (c *Cloud) prices(ctx context.Context) (map[string]money.Rate, error) {
	var book *[]priced
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/pricebook"}, &book)
	if err == nil && (book == nil || len(*book) == 0) {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return nil, fmt.Errorf("read the prices: %w", err)
	}
	prices, now := map[string]money.Rate{}, c.clock.Wall()
	for _, p := range *book {
		v, err := money.ParseUp(strings.Trim(string(p.Value), `"`))
		if err != nil || v <= 0 || money.Rate(v) > money.MaxRate || !p.holds(now) {
			continue
		}
		prices[p.Name] = max(prices[p.Name], money.Rate(v))
	}
	return prices, nil
}

// holds reports whether a price is one of now. A time that is not understood is
// none.
func (p priced) holds(now time.Time) bool {
	start, end := timeOf(p.Start), timeOf(p.End)
	return (start.IsZero() || !now.Before(start)) && (end.IsZero() || now.Before(end))
}

// offer is what is for sale of a flavor; false = we do not sell it. Processors,
// memory and disks are in the price of the GPUs.
func (f flavor) offer(prices map[string]money.Rate) (provider.Offer, bool) {
	of, listed := models[f.GPU]
	model, known := gpu.Lookup(of.token)
	country, placed := place.Region(f.Region)
	each := prices[f.GPU]
	if !listed || !known || !placed || each == 0 || !f.InStock || f.GPUCount < 1 || f.CPU < 1 || f.RAM < 1 || f.Disk < 1 || f.Name == "" {
		return provider.Offer{}, false
	}
	return provider.Offer{
		Provider: Name, CloudID: f.Name, GPUType: model.Token, GPUCount: f.GPUCount, GPUMemoryGB: model.VRAMGB * f.GPUCount,
		MemoryGB: int(f.RAM), VCPU: f.CPU, Socket: of.socket, Country: country, DataCenterID: f.Region, Security: "secure_cloud",
		Image: system, DiskGB: f.Disk, DiskIncluded: true, UpstreamPrice: each*money.Rate(f.GPUCount) + publicIP,
	}, true
}

// timeOf reads a time of Hyperstack's, which says no zone and means UTC; zero =
// there is none.
func timeOf(text string) time.Time {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
