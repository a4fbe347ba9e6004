package prime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// pageSize is the most that Prime gives at once, of offers and of pods, and
// maxPages bounds a list.
const (
	pageSize = 100
	maxPages = 100
)

// availability is one configuration of GET /availability/gpus. What is null
// there reads as its zero value.
type availability struct {
	CloudID     string   `json:"cloudId"`
	GPUType     string   `json:"gpuType"`
	Socket      string   `json:"socket"`
	Provider    string   `json:"provider"`
	DataCenter  string   `json:"dataCenter"`
	Country     string   `json:"country"`
	GPUCount    int      `json:"gpuCount"`
	GPUMemory   int      `json:"gpuMemory"`
	Disk        spec     `json:"disk"`
	VCPU        spec     `json:"vcpu"`
	Memory      spec     `json:"memory"`
	StockStatus string   `json:"stockStatus"`
	Security    string   `json:"security"`
	Images      []string `json:"images"`
	IsSpot      bool     `json:"isSpot"`
	Prices      struct {
		OnDemand  json.Number `json:"onDemand"`
		Community json.Number `json:"communityPrice"`
		Variable  bool        `json:"isVariable"`
		Currency  string      `json:"currency"`
	} `json:"prices"` // per hour, whole configuration
	PrepaidTime *json.Number `json:"prepaidTime"` // hours that are paid in advance
}

// spec is how much there is of something, and what it costs.
type spec struct {
	Default  int         `json:"defaultCount"`
	PerUnit  json.Number `json:"pricePerUnit"` // per hour
	Included bool        `json:"defaultIncludedInPrice"`
}

// free reports whether the default costs nothing on top.
func (s spec) free() bool {
	price, priced := rate(s.PerUnit)
	return s.Included || s.PerUnit == "" || priced && price == 0
}

// Offers implements provider.Adapter.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	var list []provider.Offer
	at := map[key]int{}
	for page, seen := 1, 0; page <= maxPages; page++ {
		var answer struct {
			Items *[]availability `json:"items"`
			Total int             `json:"totalCount"`
		}
		query := url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(pageSize)}}
		err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/availability/gpus", Query: query, Class: reads}, &answer)
		if err == nil && (answer.Items == nil || len(*answer.Items) == 0 && page > 1) {
			err = errors.New("the list breaks off") // part of it must not read as: the rest is sold out
		}
		if err != nil {
			return nil, fmt.Errorf("list the offers, page %d: %w", page, err)
		}
		for _, a := range *answer.Items {
			o, ok := a.offer()
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
		if seen += len(*answer.Items); seen >= answer.Total {
			return list, nil
		}
	}
	return nil, fmt.Errorf("list the offers: more than %d pages", maxPages)
}

// key is all that a request for a machine can say of it.
type key struct {
	provider, cloudID, gpu, socket, dataCenter, country, security string
	count                                                         int
}

func keyOf(o provider.Offer) key {
	return key{o.Provider, o.CloudID, o.GPUType, o.Socket, o.DataCenterID, o.Country, o.Security, o.GPUCount}
}

// offer is what is for sale of a configuration; false = we do not sell it.
func (a availability) offer() (provider.Offer, bool) {
	model, known := gpu.Lookup(a.GPUType)
	country, placed := a.country()
	price, priced := a.price()
	perGB, diskPriced := rate(a.Disk.PerUnit)
	image := image(a.Images)
	disk := a.Disk.Default - reserved[a.Provider]
	if !known || !placed || !priced || image == "" || a.StockStatus == "Unavailable" || a.PrepaidTime != nil || !a.holds(model) ||
		gpu.Socket(a.Socket, model) != a.Socket || !a.VCPU.free() || !a.Memory.free() || !a.Disk.free() && !diskPriced ||
		a.GPUCount < 1 || disk < 1 || a.VCPU.Default < 1 || a.Memory.Default < 1 || a.Provider == "" || a.CloudID == "" ||
		a.Security != "secure_cloud" && a.Security != "community_cloud" {
		return provider.Offer{}, false
	}
	if a.Disk.free() {
		perGB = 0
	}
	return provider.Offer{
		Provider: a.Provider, CloudID: a.CloudID, GPUType: model.Token, GPUCount: a.GPUCount, GPUMemoryGB: model.VRAMGB * a.GPUCount,
		MemoryGB: a.Memory.Default, VCPU: a.VCPU.Default, Socket: a.Socket, Country: country, DataCenterID: a.DataCenter,
		Security: a.Security, IsSpot: a.IsSpot, Image: image, DiskGB: disk, DiskPrice: perGB, DiskIncluded: perGB == 0, UpstreamPrice: price,
	}, true
}

// reserved is how many GB of an ordered disk the machine's own system takes, at
// the clouds of which Prime says so.
var reserved = map[string]int{"runpod": 40}

// holds reports whether the memory is that of the model: of one GPU, as Prime's
// description says, or of all together, as it is in fact.
func (a availability) holds(model gpu.Type) bool {
	each := a.GPUMemory
	if a.GPUCount > 1 && 2*each >= 3*model.VRAMGB {
		each /= a.GPUCount
	}
	found, ok := gpu.Find(a.GPUType, each)
	return ok && found == model
}

// price is what the whole configuration costs, where it is fixed and in dollars.
func (a availability) price() (money.Rate, bool) {
	said := a.Prices.Community
	if said == "" {
		said = a.Prices.OnDemand
	}
	price, ok := rate(said)
	return price, ok && price > 0 && a.Prices.Currency == "USD" && !a.Prices.Variable
}

// rate reads a price per hour in dollars.
func rate(n json.Number) (money.Rate, bool) {
	v, err := money.ParseUp(n.String())
	return money.Rate(v), err == nil && v >= 0
}

// country is where the data centre stands. Prime looks for Lambda's region in
// the Middle East in Iceland.
func (a availability) country() (string, bool) {
	if a.Provider == "lambdalabs" && a.DataCenter == "me-west-1" {
		return "IL", true
	}
	return place.Country(a.Country)
}

// image is the plain system that a machine starts with: Ubuntu 22 with CUDA
// where there is one.
func image(images []string) string {
	plain := ""
	for _, name := range images {
		switch {
		case name == "ubuntu_22_cuda_12":
			return name
		case plain == "" && strings.HasPrefix(name, "ubuntu"):
			plain = name
		}
	}
	return plain
}
