package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// image is what machines start with: the newest of Lambda's own, Ubuntu with
// CUDA, in the one of its architectures that fits. No launch names it.
const image = "lambda-stack"

// typeItem is one of GET /instance-types.
type typeItem struct {
	Type    instanceType `json:"instance_type"`
	Regions []region     `json:"regions_with_capacity_available"` // none = sold out
}

type instanceType struct {
	Name           string      `json:"name"`
	GPUDescription string      `json:"gpu_description"`      // "H100 (80 GB SXM5)"
	Price          json.Number `json:"price_cents_per_hour"` // US cents, whole machine
	Specs          struct {
		VCPUs      int `json:"vcpus"`
		MemoryGiB  int `json:"memory_gib"`
		StorageGiB int `json:"storage_gib"`
		GPUs       int `json:"gpus"`
	} `json:"specs"`
}

type region struct {
	Name        string `json:"name"`
	Description string `json:"description"` // "California, USA"
}

// Offers implements provider.Adapter.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	var answer struct {
		Data *map[string]typeItem `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/instance-types", Class: calls}, &answer)
	if err == nil && answer.Data == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return nil, fmt.Errorf("list the instance types: %w", err)
	}
	var list []provider.Offer
	at := map[key]int{}
	for _, name := range slices.Sorted(maps.Keys(*answer.Data)) {
		for _, o := range (*answer.Data)[name].offers() {
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
type key struct{ instanceType, region string }

func keyOf(o provider.Offer) key { return key{o.CloudID, o.DataCenterID} }

// offers are what is for sale of a type, one per region that has it. A GiB is
// sold as a GB, as Lambda itself does: there is no less than was promised.
func (i typeItem) offers() []provider.Offer {
	t := i.Type
	model, socket, known := gpuOf(t.GPUDescription)
	price, priced := cents(t.Price)
	if !known || !priced || t.Name == "" || t.Specs.GPUs < 1 || t.Specs.VCPUs < 1 || t.Specs.MemoryGiB < 1 || t.Specs.StorageGiB < 1 {
		return nil
	}
	var list []provider.Offer
	for _, r := range i.Regions {
		country, placed := r.country()
		if !placed || r.Name == "" {
			continue
		}
		list = append(list, provider.Offer{
			Provider: Name, CloudID: t.Name, GPUType: model.Token, GPUCount: t.Specs.GPUs, GPUMemoryGB: model.VRAMGB * t.Specs.GPUs,
			MemoryGB: t.Specs.MemoryGiB, VCPU: t.Specs.VCPUs, Socket: socket, Country: country, DataCenterID: r.Name,
			Security: "secure_cloud", Image: image, DiskGB: t.Specs.StorageGiB, DiskIncluded: true, UpstreamPrice: price,
		})
	}
	return list
}

var gpuForm = regexp.MustCompile(`^(.+) \(([0-9]{1,4}) GB(?: ([A-Za-z0-9]+))?\)$`)

// unsaid are the sockets of the models of which Lambda names none and has no
// others.
var unsaid = map[string]string{"V100_16GB": gpu.SXM2, "GH200_96GB": gpu.SXM5}

// gpuOf reads "A100 (40 GB SXM4)" or "GH200 (96 GB)".
func gpuOf(description string) (model gpu.Type, socket string, known bool) {
	parts := gpuForm.FindStringSubmatch(description)
	if parts == nil {
		return gpu.Type{}, "", false
	}
	gb, err := strconv.Atoi(parts[2])
	if err != nil || gb == 0 {
		return gpu.Type{}, "", false
	}
	model, known = gpu.Find(parts[1], gb)
	return model, gpu.Socket(cmp.Or(parts[3], unsaid[model.Token]), model), known
}

// cents reads a price in US cents per hour; part of a micro-dollar counts as one.
func cents(n json.Number) (money.Rate, bool) {
	v, err := money.Parse(n.String())
	if err != nil || v <= 0 {
		return 0, false
	}
	return money.Rate((v + 99) / 100), true
}

// country is where a region stands. Its name must not say another country than
// its description does: CA would be California.
func (r region) country() (string, bool) {
	said, ok := place.Last(r.Description)
	named, is := place.Region(r.Name)
	switch {
	case !ok:
		return named, is
	case is && named != said:
		return "", false
	}
	return said, true
}
