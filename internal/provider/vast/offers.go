package vast

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// What every machine starts with: Vast's own image, which its hosts have at
// hand, in the version that fits the host's driver; and a disk, whose size is
// part of the price and stays.
const (
	image  = "vastai/base-image:@vastai-automatic-tag"
	diskGB = 64
)

// What a host must have to be rented from.
const (
	verified    = "verified"
	leastCUDA   = 12.8             // of its driver
	reliable    = 0.98             // of 1, as Vast measures it
	leastLeft   = 3 * 24 * 3600    // seconds until it ends what it lets
	dearestData = money.USD(5_000) // per GB in or out: a pod's volume comes and goes by it
)

// most bounds an answer to a search; without a bound Vast gives few.
const most = 3000

// ask is one of POST /v0/bundles/: a host's offer. What is null there reads as
// zero.
type ask struct {
	ID              int64       `json:"id"`
	MachineID       int64       `json:"machine_id"`
	GPUName         string      `json:"gpu_name"`
	GPUArch         string      `json:"gpu_arch"`
	NumGPUs         int         `json:"num_gpus"`
	GPURAM          float64     `json:"gpu_ram"` // MiB of one
	CPUArch         string      `json:"cpu_arch"`
	CPURAM          float64     `json:"cpu_ram"`             // MB of the host
	CPUCores        float64     `json:"cpu_cores"`           // of the host
	CPUCoresOurs    float64     `json:"cpu_cores_effective"` // of them, with the ask
	DiskSpace       float64     `json:"disk_space"`          // GB
	DPHTotal        json.Number `json:"dph_total"`           // USD per hour, of GPUs and disk
	InetUpCost      json.Number `json:"inet_up_cost"`        // USD per GB
	InetDownCost    json.Number `json:"inet_down_cost"`
	Geolocation     string      `json:"geolocation"` // "Texas, US"
	Verification    string      `json:"verification"`
	Reliability     float64     `json:"reliability2"`
	Duration        float64     `json:"duration"`     // seconds that are left of it
	HostingType     int         `json:"hosting_type"` // see datacenter
	DirectPortCount int         `json:"direct_port_count"`
	CUDAMaxGood     float64     `json:"cuda_max_good"`
	StaticIP        bool        `json:"static_ip"`
	Rentable        bool        `json:"rentable"`
	IsBid           bool        `json:"is_bid"`
	External        bool        `json:"external"`
}

// datacenter is the type of hosts that Vast has seen the papers of.
const datacenter = 1

// Offers implements provider.Adapter. Of what one machine lets in the same size
// only the cheapest is listed: a launch takes that first.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	asks, err := c.search(ctx, nil)
	if err != nil {
		return nil, err
	}
	var list []provider.Offer
	at := map[key]int{}
	for _, a := range asks {
		o, ok := a.offer()
		if !ok {
			continue
		}
		if i, twice := at[keyOf(o)]; !twice {
			at[keyOf(o)] = len(list)
			list = append(list, o)
		} else if o.UpstreamPrice < list[i].UpstreamPrice {
			list[i] = o
		}
	}
	return list, nil
}

// key is what an offer of ours means at Vast.
type key struct {
	machine, gpu string
	count        int
}

func keyOf(o provider.Offer) key { return key{o.CloudID, o.GPUType, o.GPUCount} }

// search asks for what hosts let, cheapest first. Vast takes our conditions for
// wishes: every ask is looked at again.
func (c *Cloud) search(ctx context.Context, only map[string]any) ([]ask, error) {
	is := func(v any) map[string]any { return map[string]any{"eq": v} }
	least := func(v any) map[string]any { return map[string]any{"gte": v} }
	body := map[string]any{
		"type": "ondemand", "verified": is(true), "rentable": is(true), "rented": is(false), "external": is(false),
		"gpu_arch": is("nvidia"), "cpu_arch": is("amd64"), "static_ip": is(true), "direct_port_count": least(1),
		"cuda_max_good": least(leastCUDA), "reliability": least(reliable), "duration": least(leastLeft), "disk_space": least(diskGB),
		"inet_up_cost": map[string]any{"lte": json.Number(dearestData.Decimal())}, "inet_down_cost": map[string]any{"lte": json.Number(dearestData.Decimal())},
		"allocated_storage": diskGB, "order": [][]string{{"dph_total", "asc"}, {"id", "asc"}}, "limit": most,
	}
	maps.Copy(body, only)
	var answer struct {
		Offers *[]json.RawMessage `json:"offers"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: "/v0/bundles/", Body: body, Class: searches}, &answer)
	if err == nil && answer.Offers == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return nil, fmt.Errorf("search the offers: %w", err)
	}
	return read(*answer.Offers)
}

// read reads asks one by one: an odd one of some host must not hide all others.
func read(rows []json.RawMessage) ([]ask, error) {
	var asks []ask
	var last error
	for _, row := range rows {
		var a ask
		if err := json.Unmarshal(row, &a); err != nil {
			last = err
			continue
		}
		asks = append(asks, a)
	}
	if len(asks) == 0 && last != nil {
		return nil, fmt.Errorf("search the offers: none of %d is as it should be: %w", len(rows), last)
	}
	return asks, nil
}

// offer is what is for sale by an ask; false = we do not sell it.
func (a ask) offer() (provider.Offer, bool) {
	model, socket, known := a.gpu()
	price, priced := price(a.DPHTotal)
	country, placed := place.Last(a.Geolocation)
	if !a.plain() || !a.able() || !known || !priced || !placed {
		return provider.Offer{}, false
	}
	o := provider.Offer{
		Provider: Name, CloudID: strconv.FormatInt(a.MachineID, 10), GPUType: model.Token, GPUCount: a.NumGPUs,
		GPUMemoryGB: model.VRAMGB * a.NumGPUs, MemoryGB: int(a.CPURAM * a.CPUCoresOurs / a.CPUCores / 1000), VCPU: int(a.CPUCoresOurs),
		Socket: socket, Country: country, Security: "community_cloud", Image: image, DiskGB: diskGB, DiskIncluded: true, UpstreamPrice: price,
	}
	if a.HostingType == datacenter {
		o.Security = "secure_cloud"
	}
	return o, o.MemoryGB > 0 && o.VCPU > 0
}

// plain reports whether an ask is one to rent on demand, of a verified host, at
// no price for traffic that counts.
func (a ask) plain() bool {
	return a.ID > 0 && a.MachineID > 0 && a.Rentable && !a.IsBid && !a.External && a.Verification == verified &&
		cheap(a.InetUpCost) && cheap(a.InetDownCost)
}

// able reports whether a pod can run there, and be reached, for a while.
func (a ask) able() bool {
	return a.NumGPUs > 0 && a.CPUCores > 0 && a.GPUArch == "nvidia" && a.CPUArch == "amd64" && a.DirectPortCount > 0 && a.StaticIP &&
		a.DiskSpace >= diskGB && a.CUDAMaxGood >= leastCUDA && a.Reliability >= reliable && a.Duration >= leastLeft
}

// names are how Vast spells models that others spell otherwise.
var names = map[string]string{"Q RTX 4000": "Quadro RTX 4000", "Q RTX 5000": "Quadro RTX 5000", "Q RTX 6000": "Quadro RTX 6000", "Q RTX 8000": "Quadro RTX 8000"}

// unsaid are the sockets of the models of which Vast names none and which are
// made for no other.
var unsaid = map[string]string{"H200_141GB": gpu.SXM5, "B200_180GB": gpu.SXM6, "B300_262GB": gpu.SXM6}

// gpu reads "H100 SXM", "A100 PCIE" or "RTX 6000Ada".
func (a ask) gpu() (model gpu.Type, socket string, known bool) {
	const mib, gb = 1 << 20, 1e9
	vram := int(a.GPURAM * mib / gb)
	if vram < 1 {
		return gpu.Type{}, "", false // one whose size is not said could be any
	}
	model, known = gpu.Find(cmp.Or(names[a.GPUName], a.GPUName), vram)
	socket = a.GPUName[strings.LastIndexByte(a.GPUName, ' ')+1:]
	if !strings.HasPrefix(socket, "SXM") {
		socket = unsaid[model.Token]
	}
	return model, gpu.Socket(socket, model), known
}

// price reads what an ask costs per hour.
func price(n json.Number) (money.Rate, bool) {
	v, err := money.ParseUp(n.String())
	return money.Rate(v), err == nil && v > 0 && money.Rate(v) <= money.MaxRate
}

// cheap reports whether traffic costs next to nothing.
func cheap(perGB json.Number) bool {
	v, err := money.ParseUp(cmp.Or(perGB.String(), "0"))
	return err == nil && v <= dearestData
}
