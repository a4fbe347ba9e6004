package runpod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// What every machine starts with: an image of Runpod's own, which its hosts
// have at hand, and the lowest CUDA version of a host's driver that it needs.
const (
	image   = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
	minCUDA = "12.8"
	secure  = "SECURE"
)

// The container's disk: 0.10 USD per GB and month on top.
const (
	diskGB    = 50
	diskPrice = money.Rate(137)
)

// mostGPUs bounds the GPUs of one machine that are asked for.
const mostGPUs = 8

// models are the GPUs for rent. Runpod does not list processors and memory: what
// comes with each GPU is at least this, as seen elsewhere.
var models = []model{
	{"NVIDIA A100 80GB PCIe", "A100_80GB", gpu.PCIe, 8, 117},
	{"NVIDIA A100-SXM4-80GB", "A100_80GB", gpu.SXM4, 16, 125},
	{"NVIDIA A40", "A40_48GB", gpu.PCIe, 9, 48},
	{"NVIDIA B200", "B200_180GB", gpu.SXM6, 28, 283},
	{"NVIDIA GeForce RTX 3090", "RTX3090_24GB", gpu.PCIe, 16, 125},
	{"NVIDIA GeForce RTX 4090", "RTX4090_24GB", gpu.PCIe, 16, 62},
	{"NVIDIA GeForce RTX 5090", "RTX5090_32GB", gpu.PCIe, 16, 92},
	{"NVIDIA H100 80GB HBM3", "H100_80GB", gpu.SXM5, 20, 221},
	{"NVIDIA H100 PCIe", "H100_80GB", gpu.PCIe, 16, 176},
	{"NVIDIA H200", "H200_141GB", gpu.SXM5, 24, 251},
	{"NVIDIA L4", "L4_24GB", gpu.PCIe, 12, 50},
	{"NVIDIA L40S", "L40S_48GB", gpu.PCIe, 16, 94},
	{"NVIDIA RTX 6000 Ada Generation", "RTX6000Ada_48GB", gpu.PCIe, 16, 62},
	{"NVIDIA RTX A6000", "A6000_48GB", gpu.PCIe, 9, 50},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX_PRO_6000B_96GB", gpu.PCIe, 16, 188},
}

type model struct {
	id             string // Runpod's
	token, socket  string
	vcpu, memoryGB int
}

func modelOf(id string) (model, bool) {
	i := slices.IndexFunc(models, func(m model) bool { return m.id == id })
	if i < 0 {
		return model{}, false
	}
	return models[i], true
}

// gpuType is one of GET /catalog/gpus, as it is for one number of GPUs.
type gpuType struct {
	ID           string `json:"id"`
	Manufacturer string `json:"manufacturer"`
	MemoryGB     int    `json:"memory"`
	Secure       bool   `json:"secure"`
	Price        struct {
		Secure json.Number `json:"secure"`
	} `json:"price"` // USD per hour and GPU
	MaxCount struct {
		Secure int `json:"secure"`
	} `json:"maxCount"`
	DataCenters []struct {
		ID           string `json:"id"`
		Availability string `json:"availability"`
	} `json:"dataCenters"`
}

// Offers implements provider.Adapter. What is in stock depends on how many GPUs
// are asked for: the catalogue is read once for each number.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	var list []provider.Offer
	most := 1
	for n := 1; n <= most; n++ {
		var answer struct {
			GPUs *[]gpuType `json:"gpus"`
		}
		err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/catalog/gpus", Query: stockOf(n)}, &answer)
		if err == nil && (answer.GPUs == nil || len(*answer.GPUs) == 0 && n > 1) {
			err = errors.New("the answer has no list") // part of it must not read as: the rest is sold out
		}
		if err != nil {
			return nil, fmt.Errorf("list the GPUs, %d of each: %w", n, err)
		}
		for _, g := range *answer.GPUs {
			if _, sold := modelOf(g.ID); sold {
				most = min(max(most, g.MaxCount.Secure), mostGPUs)
				list = append(list, g.offers(n)...)
			}
		}
	}
	return list, nil
}

// stockOf is the query for the stock of so many GPUs of a type.
func stockOf(count int) url.Values {
	return url.Values{
		"include": {"AVAILABILITY"}, "product": {"POD"}, "cloud": {secure}, "minCudaVersion": {minCUDA}, "count": {strconv.Itoa(count)},
	}
}

// offers are what is for sale of a type, one per data centre that has it.
func (g gpuType) offers(count int) []provider.Offer {
	m, listed := modelOf(g.ID)
	of, known := gpu.Find(m.token, g.MemoryGB)
	price, priced := g.price(count)
	if !listed || !known || !priced || g.Manufacturer != "NVIDIA" || !g.Secure || count > g.MaxCount.Secure {
		return nil
	}
	var list []provider.Offer
	for _, dc := range g.DataCenters {
		country, placed := countryOf(dc.ID)
		twice := slices.ContainsFunc(list, func(o provider.Offer) bool { return o.DataCenterID == dc.ID })
		if !placed || twice || dc.Availability == "" || dc.Availability == "NONE" {
			continue
		}
		list = append(list, provider.Offer{
			Provider: Name, CloudID: g.ID, GPUType: of.Token, GPUCount: count, GPUMemoryGB: of.VRAMGB * count,
			MemoryGB: m.memoryGB * count, VCPU: m.vcpu * count, Socket: m.socket, Country: country, DataCenterID: dc.ID,
			Security: "secure_cloud", Image: image, DiskGB: diskGB, DiskPrice: diskPrice, UpstreamPrice: price,
		})
	}
	return list
}

// price is what so many GPUs cost.
func (g gpuType) price(count int) (money.Rate, bool) {
	each, err := money.ParseUp(g.Price.Secure.String())
	if err != nil || each <= 0 || money.Rate(each) > money.MaxRate {
		return 0, false
	}
	return money.Rate(each) * money.Rate(count), true
}

// continents are the first words of data centres that name no country.
var continents = []string{"EU", "EUR", "OC", "AP", "SEA", "NA", "SA", "AS", "AF", "ME"}

// countryOf reads US-KS-2, or EU-RO-1.
func countryOf(dataCenter string) (string, bool) {
	words := strings.Split(dataCenter, "-")
	if len(words) > 1 && slices.Contains(continents, words[0]) {
		words = words[1:]
	}
	if len(words) < 2 {
		return "", false
	}
	return place.Country(words[0])
}
