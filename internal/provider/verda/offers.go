package verda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// diskGB is the disk that a machine is ordered with. Verda sells machines
// without one, and its disks by the GB.
const (
	diskGB   = 100
	diskType = "NVMe"
)

// instanceType is one of GET /instance-types.
type instanceType struct {
	InstanceType string          `json:"instance_type"`
	Model        string          `json:"model"`
	Name         string          `json:"name"` // the model with its socket and memory
	Manufacturer string          `json:"manufacturer"`
	PricePerHour json.RawMessage `json:"price_per_hour"` // whole instance, text or number
	Currency     string          `json:"currency"`
	SupportedOS  []string        `json:"supported_os"`
	CPU          struct {
		Cores int `json:"number_of_cores"`
	} `json:"cpu"`
	GPU struct {
		Count int `json:"number_of_gpus"`
	} `json:"gpu"`
	GPUMemory size `json:"gpu_memory"` // of all GPUs
	Memory    size `json:"memory"`
}

type size struct {
	GB int `json:"size_in_gigabytes"`
}

// stock is what a data centre has, of GET /instance-availability.
type stock struct {
	LocationCode   string   `json:"location_code"`
	Availabilities []string `json:"availabilities"` // instance types
}

type location struct {
	Code        string `json:"code"`
	CountryCode string `json:"country_code"`
}

type volumeType struct {
	Type  string `json:"type"`
	Price struct {
		PerMonth json.RawMessage `json:"price_per_month_per_gb"`
		Currency string          `json:"currency"`
	} `json:"price"`
}

// Offers implements provider.Adapter.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	types, err := c.types(ctx)
	if err != nil {
		return nil, err
	}
	stocks, err := list[stock](ctx, c, "/instance-availability", url.Values{"is_spot": {"false"}})
	if err != nil {
		return nil, err
	}
	locations, err := list[location](ctx, c, "/locations", nil)
	if err != nil {
		return nil, err
	}
	perGB, err := c.diskPrice(ctx)
	if err != nil {
		return nil, err
	}
	countries := map[string]string{}
	for _, l := range locations {
		if code, ok := place.Country(l.CountryCode); ok {
			countries[l.Code] = code
		}
	}
	var offers []provider.Offer
	offered := map[[2]string]bool{}
	for _, s := range stocks {
		for _, name := range s.Availabilities {
			o, known := types[name]
			o.Country, o.DataCenterID = countries[s.LocationCode], s.LocationCode
			o.DiskGB, o.DiskPrice, o.DiskIncluded = diskGB, perGB, perGB == 0
			if key := [2]string{name, s.LocationCode}; known && o.Country != "" && !offered[key] {
				offered[key] = true
				offers = append(offers, o)
			}
		}
	}
	return offers, nil
}

// types are the configurations that we sell, by name: what is the same of one
// wherever it stands. Of two of a name the dearer one may be what comes.
func (c *Cloud) types(ctx context.Context) (map[string]provider.Offer, error) {
	answer, err := list[instanceType](ctx, c, "/instance-types", url.Values{"currency": {"usd"}})
	if err != nil {
		return nil, err
	}
	types := map[string]provider.Offer{}
	for _, t := range answer {
		if o, ok := t.offer(); ok && o.UpstreamPrice > types[o.CloudID].UpstreamPrice {
			types[o.CloudID] = o
		}
	}
	return types, nil
}

// list reads a list of Verda's, which come whole. null must not read as: none.
func list[T any](ctx context.Context, c *Cloud, path string, query url.Values) ([]T, error) {
	var answer *[]T
	err := c.do(ctx, cloudapi.Call{Method: http.MethodGet, Path: path, Query: query, Class: reads}, &answer)
	if err == nil && answer == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return *answer, nil
}

// offer is what is for sale of a type; false = we do not sell it.
func (t instanceType) offer() (provider.Offer, bool) {
	n := t.GPU.Count
	if n < 1 || t.GPUMemory.GB%n != 0 || t.sealed() || !strings.EqualFold(t.Manufacturer, "nvidia") || !strings.EqualFold(t.Currency, "usd") {
		return provider.Offer{}, false
	}
	model, known := gpu.Find(t.Model, t.GPUMemory.GB/n)
	price, priced := rate(t.PricePerHour)
	image := system(t.SupportedOS)
	if !known || !priced || price == 0 || image == "" || t.GPUMemory.GB == 0 || t.CPU.Cores < 1 || t.Memory.GB < 1 || t.InstanceType == "" {
		return provider.Offer{}, false
	}
	return provider.Offer{
		Provider: Name, CloudID: t.InstanceType, GPUType: model.Token, GPUCount: n, GPUMemoryGB: model.VRAMGB * n,
		MemoryGB: t.Memory.GB, VCPU: t.CPU.Cores, Socket: gpu.Socket(socket(t.Name), model), Security: "secure_cloud",
		Image: image, UpstreamPrice: price,
	}, true
}

// sealed reports whether a type is for confidential computing: its GPUs start
// locked, and need an image of their own.
func (t instanceType) sealed() bool { return slices.Contains(strings.Fields(t.Name), "CC") }

// diskPrice is what a GB of a machine's disk costs per hour.
func (c *Cloud) diskPrice(ctx context.Context) (money.Rate, error) {
	const hours = 730 // of Verda's month
	types, err := list[volumeType](ctx, c, "/volume-types", nil)
	if err != nil {
		return 0, err
	}
	for _, t := range types {
		month, priced := rate(t.Price.PerMonth)
		if t.Type == diskType && priced && strings.EqualFold(t.Price.Currency, "usd") {
			return (month + hours - 1) / hours, nil
		}
	}
	return 0, fmt.Errorf("list /volume-types: no price of %s in dollars", diskType)
}

// rate reads a price in dollars, be it a text or a number.
func rate(raw json.RawMessage) (money.Rate, bool) {
	v, err := money.ParseUp(strings.Trim(string(raw), `"`))
	return money.Rate(v), err == nil && v >= 0
}

// socket is the word of a type's name that names one; "" = none.
func socket(name string) string {
	for _, word := range strings.Fields(name) {
		if strings.HasPrefix(word, "SXM") {
			return word
		}
	}
	return ""
}

// system is the one of a type's systems that a machine starts with.
func system(options []string) string {
	for _, prefix := range []string{"ubuntu-24", "ubuntu-22", "ubuntu"} {
		for _, o := range options {
			if strings.HasPrefix(o, prefix) {
				return o
			}
		}
	}
	return ""
}
