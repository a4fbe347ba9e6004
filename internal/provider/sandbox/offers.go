package sandbox

import (
	_ "embed" // the catalogue
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
)

//go:embed offers.json
var catalogueJSON []byte

// catalogue is offers.json.
type catalogue struct {
	About  string       `json:"about"`
	Clouds []cloudEntry `json:"clouds"`
}

// cloudEntry describes one invented cloud.
type cloudEntry struct {
	Name        string       `json:"name"`
	MaxName     int          `json:"max_name"`
	BootSeconds int          `json:"boot_timeout_seconds"`
	ChoosesPort bool         `json:"chooses_port"`
	Offers      []offerEntry `json:"offers"`
}

// offerEntry stands for one offer per count. Price, VCPU and Memory are per
// GPU; Disk has one size per count.
type offerEntry struct {
	CloudID    string `json:"cloud_id"`
	GPUType    string `json:"gpu_type"`
	Socket     string `json:"socket"`
	Counts     []int  `json:"counts"`
	Price      string `json:"price"`
	VCPU       int    `json:"vcpu"`
	MemoryGB   int    `json:"memory_gb"`
	DiskGB     []int  `json:"disk_gb"`
	DiskPrice  string `json:"disk_price"` // per GB and hour; "" = included
	Country    string `json:"country"`
	DataCenter string `json:"data_center"`
	Community  bool   `json:"community"`
	Spot       bool   `json:"spot"`
}

// readCatalogue decodes the embedded catalogue.
func readCatalogue() (catalogue, error) {
	var c catalogue
	d := json.NewDecoder(strings.NewReader(string(catalogueJSON)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("read the sandbox catalogue: %w", err)
	}
	return c, nil
}

// expand lists a cloud's offers at their plain prices.
func (c cloudEntry) expand() ([]provider.Offer, error) {
	var list []provider.Offer
	for _, e := range c.Offers {
		if len(e.Counts) != len(e.DiskGB) {
			return nil, fmt.Errorf("offer %s of %s: counts and disk_gb differ in length", e.CloudID, c.Name)
		}
		for i, n := range e.Counts {
			o, err := e.offer(c.Name, n, e.DiskGB[i])
			if err != nil {
				return nil, err
			}
			list = append(list, o)
		}
	}
	return list, nil
}

func (e offerEntry) offer(cloud string, n, disk int) (provider.Offer, error) {
	price, err := money.Parse(e.Price)
	if err != nil {
		return provider.Offer{}, fmt.Errorf("price of %s: %w", e.CloudID, err)
	}
	var perGB money.USD
	if e.DiskPrice != "" {
		if perGB, err = money.Parse(e.DiskPrice); err != nil {
			return provider.Offer{}, fmt.Errorf("disk price of %s: %w", e.CloudID, err)
		}
	}
	vram, err := vramOf(e.GPUType)
	if err != nil {
		return provider.Offer{}, err
	}
	security := "secure_cloud"
	if e.Community {
		security = "community_cloud"
	}
	return provider.Offer{
		Provider: cloud, CloudID: strings.ReplaceAll(e.CloudID, "{n}", strconv.Itoa(n)), GPUType: e.GPUType, GPUCount: n,
		GPUMemoryGB: vram * n, MemoryGB: e.MemoryGB * n, VCPU: e.VCPU * n, Socket: e.Socket, Country: e.Country,
		DataCenterID: e.DataCenter, Security: security, IsSpot: e.Spot, Image: "ubuntu_22_cuda_12", DiskGB: disk,
		DiskPrice: money.Rate(perGB), DiskIncluded: e.DiskPrice == "", UpstreamPrice: money.Rate(price) * money.Rate(n),
	}, nil
}

// vramOf reads the memory of one GPU off its token: H100_80GB has 80.
func vramOf(gpu string) (int, error) {
	size := gpu[strings.LastIndexByte(gpu, '_')+1:]
	n, err := strconv.Atoi(strings.TrimSuffix(size, "GB"))
	if err != nil {
		return 0, fmt.Errorf("memory of GPU %q: %w", gpu, err)
	}
	return n, nil
}

// tuple names an offer within all clouds (server rule 1).
func tuple(o provider.Offer) string {
	return strings.Join([]string{
		o.Provider, o.CloudID, o.GPUType, strconv.Itoa(o.GPUCount), o.Socket, o.Country,
		o.DataCenterID, strconv.FormatBool(o.IsSpot), o.Security,
	}, "\x00")
}

// walk is the market's slow move of one offer's price at an instant, in
// thousandths: within 6 % of the plain price, the same on every node.
func walk(o provider.Offer, now time.Time) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tuple(o))) // a hash takes every byte
	phase := float64(h.Sum32()%3600) / 3600
	hours := float64(now.Unix()/600) / 6 // one step per ten minutes
	return 1000 + int64(40*math.Sin(2*math.Pi*(hours/7+phase))+20*math.Sin(2*math.Pi*(hours/3+2*phase)))
}
