package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
)

// mostGPUs bounds the GPUs of one machine.
const mostGPUs = 8

// keptPercent of the host's memory stays with the host.
const keptPercent = 5

// Offers implements provider.Adapter: for each type of GPU one offer per number
// of them that is free now, ErrNoCapacity when none is. Processors and memory
// are shared out by GPUs. A host that cannot start a pod says why.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	var info system.Info
	err := do(ctx, readFor, func(ctx context.Context) error {
		res, err := c.engine.Info(ctx, client.InfoOptions{})
		info = res.Info
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the engine of %s: %w", c.host.Name, err)
	}
	if info.OSType != "linux" || info.NCPU < 1 || info.MemTotal < 1 {
		return nil, fmt.Errorf("the engine of %s does not run Linux containers, or does not say on what", c.host.Name)
	}
	if err := c.image(ctx); err != nil {
		return nil, err
	}
	if _, err := c.network(ctx); err != nil {
		return nil, fmt.Errorf("network of %s: %w", c.host.Name, err)
	}
	all, err := c.devices(ctx)
	if err != nil {
		return nil, err
	}
	held, err := c.held(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(d device) bool { return c.prices[d.token] > 0 }) {
		return nil, fmt.Errorf("host %s has no price for its GPUs, such as %s", c.host.Name, all[0].token)
	}
	list := c.offers(info, all, held)
	if len(list) == 0 {
		return nil, provider.ErrNoCapacity
	}
	return list, nil
}

// offers are what a host has for sale.
func (c *Cloud) offers(info system.Info, all []device, held map[string]string) []provider.Offer {
	free := map[device]int{} // by what all of a kind have in common
	for _, d := range all {
		if _, taken := held[d.id]; !taken {
			d.id = ""
			free[d]++
		}
	}
	kinds := make([]device, 0, len(free))
	for k := range free {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b device) int { return strings.Compare(a.token+a.socket, b.token+b.socket) })
	memoryGB := info.MemTotal / 1e9 * (100 - keptPercent) / 100
	security := "community_cloud"
	if c.host.Secure {
		security = "secure_cloud"
	}
	list := []provider.Offer{}
	for _, k := range kinds {
		price, sold := c.prices[k.token]
		for n := 1; sold && n <= min(free[k], mostGPUs); n++ {
			list = append(list, provider.Offer{
				Provider: c.host.Name, CloudID: c.host.Name, GPUType: k.token, GPUCount: n, GPUMemoryGB: k.vramGB * n,
				MemoryGB: max(1, int(memoryGB)*n/len(all)), VCPU: max(1, info.NCPU*n/len(all)), Socket: k.socket,
				Country: c.host.Country, DataCenterID: c.host.DataCenter, Security: security, Image: c.host.Image,
				DiskGB: c.host.DiskGB * n, DiskIncluded: true, UpstreamPrice: price * money.Rate(n),
			})
		}
	}
	return list
}

// list asks for containers, whatever their state.
func (c *Cloud) list(ctx context.Context, filters client.Filters) ([]container.Summary, error) {
	var items []container.Summary
	err := do(ctx, readFor, func(ctx context.Context) error {
		res, err := c.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
		items = res.Items
		if err == nil && items == nil {
			err = fmt.Errorf("the answer has no list") // null must not read as: all are gone
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the containers of %s: %w", c.host.Name, err)
	}
	return items, nil
}

// held says which container holds each GPU that is taken, by the GPU's id. A
// container holds its GPUs from its making to its removal, whatever it does.
func (c *Cloud) held(ctx context.Context) (map[string]string, error) {
	list, err := c.list(ctx, make(client.Filters).Add("label", labelGPUs))
	if err != nil {
		return nil, err
	}
	held := map[string]string{}
	for _, s := range list {
		for one := range strings.SplitSeq(s.Labels[labelGPUs], ",") {
			held[one] = s.ID
		}
	}
	return held, nil
}
