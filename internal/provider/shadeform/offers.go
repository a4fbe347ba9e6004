package shadeform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// instanceTypes is the answer of GET /instances/types.
type instanceTypes struct {
	InstanceTypes []instanceType `json:"instance_types"`
}

type instanceType struct {
	Cloud             string         `json:"cloud"`
	ShadeInstanceType string         `json:"shade_instance_type"`
	Configuration     configuration  `json:"configuration"`
	HourlyPrice       json.Number    `json:"hourly_price"` // US cents, whole instance
	DeploymentType    string         `json:"deployment_type"`
	Availability      []availability `json:"availability"`
}

type configuration struct {
	MemoryGB     int      `json:"memory_in_gb"`
	StorageGB    int      `json:"storage_in_gb"`
	VCPUs        int      `json:"vcpus"`
	NumGPUs      int      `json:"num_gpus"`
	GPUType      string   `json:"gpu_type"`
	Interconnect string   `json:"interconnect"`
	VRAMPerGPUGB int      `json:"vram_per_gpu_in_gb"`
	OSOptions    []string `json:"os_options"`
	Manufacturer string   `json:"gpu_manufacturer"`
}

type availability struct {
	Region      string `json:"region"`
	Available   bool   `json:"available"`
	DisplayName string `json:"display_name"`
}

// Offers implements provider.Adapter.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	return c.types(ctx, url.Values{"available": {"true"}, "sort": {"price"}})
}

// types asks for the instance types of a query, as offers.
func (c *Cloud) types(ctx context.Context, query url.Values) ([]provider.Offer, error) {
	var answer instanceTypes
	call := cloudapi.Call{Method: http.MethodGet, Path: "/instances/types", Query: query, Class: reads}
	if err := c.api.Do(ctx, call, &answer); err != nil {
		return nil, fmt.Errorf("list the instance types: %w", err)
	}
	var list []provider.Offer
	at := map[key]int{}
	for _, t := range answer.InstanceTypes {
		for _, o := range t.offers() {
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
type key struct{ cloud, shadeType, region string }

func keyOf(o provider.Offer) key { return key{o.Provider, o.CloudID, o.DataCenterID} }

// offers are what is for sale of a type, one per region that has it.
func (t instanceType) offers() []provider.Offer {
	cfg := t.Configuration
	model, known := gpu.Find(cfg.GPUType, cfg.VRAMPerGPUGB)
	price, priced := cents(t.HourlyPrice)
	image := image(cfg.OSOptions)
	if t.DeploymentType != "vm" || !strings.EqualFold(cfg.Manufacturer, "nvidia") || !known || !priced || image == "" ||
		cfg.NumGPUs < 1 || cfg.MemoryGB < 1 || cfg.VCPUs < 1 || cfg.StorageGB < 1 || t.Cloud == "" || t.ShadeInstanceType == "" {
		return nil
	}
	var list []provider.Offer
	for _, a := range t.Availability {
		country, placed := countryOf(a)
		if !a.Available || !placed || a.Region == "" {
			continue
		}
		list = append(list, provider.Offer{
			Provider: t.Cloud, CloudID: t.ShadeInstanceType, GPUType: model.Token, GPUCount: cfg.NumGPUs,
			GPUMemoryGB: model.VRAMGB * cfg.NumGPUs, MemoryGB: cfg.MemoryGB, VCPU: cfg.VCPUs,
			Socket: gpu.Socket(cfg.Interconnect, model), Country: country, DataCenterID: a.Region,
			Security: "secure_cloud", Image: image, DiskGB: cfg.StorageGB, DiskIncluded: true, UpstreamPrice: price,
		})
	}
	return list
}

// cents reads a price in US cents per hour; part of a micro-dollar counts as one.
func cents(n json.Number) (money.Rate, bool) {
	v, err := money.Parse(n.String())
	if err != nil || v <= 0 {
		return 0, false
	}
	return money.Rate((v + 99) / 100), true
}

// countryOf reads "US, Wichita, KS", or a region such as canada-1.
func countryOf(a availability) (string, bool) {
	if code, ok := place.First(a.DisplayName); ok {
		return code, true
	}
	return place.Region(a.Region)
}

// image is the one of a type's systems that a machine starts with: Ubuntu 22
// with CUDA where there is one.
func image(options []string) string {
	for _, words := range [][]string{{"ubuntu22", "cuda"}, {"ubuntu24", "cuda"}, {"ubuntu", "cuda"}, {"ubuntu"}} {
		for _, o := range options {
			if has(strings.ToLower(o), words) {
				return o
			}
		}
	}
	return ""
}

func has(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
