package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/provider"
)

// errUpstream is what a scripted error looks like: like a cloud's 500, it says
// nothing of what was done.
var errUpstream = errors.New("sandbox cloud: 500 internal error")

// cloud is one sandbox cloud: a provider.Adapter.
type cloud struct {
	cloudEntry
	s       *Sandbox
	dir     string
	list    []provider.Offer // at plain prices
	byTuple map[string]provider.Offer
}

// notice is what users of sandbox pods must know.
const notice = "This is a sandbox pod on the host of Homeport: its GPUs are simulated, nvidia-smi is absent, and it has no internet access."

// Capabilities implements provider.Adapter.
func (c *cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		ChoosesPort: c.ChoosesPort, MaxName: c.MaxName, BootTimeout: time.Duration(c.BootSeconds) * time.Second,
		AppearsIn: 15 * time.Second, Notice: notice,
	}
}

// Offers implements provider.Adapter.
func (c *cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	f, _, err := c.s.take(ctx, c.Name, OpOffers)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case "error":
		return nil, errUpstream
	case "empty":
		return []provider.Offer{}, nil
	case "malformed":
		return nil, errors.New("sandbox cloud: offers: invalid character '<' looking for beginning of value")
	case "slow":
		if err := pause(ctx, f.wait(5*time.Second)); err != nil {
			return nil, err
		}
	}
	sc, err := c.s.readScript()
	if err != nil {
		return nil, err
	}
	free, err := c.free(sc)
	if err != nil {
		return nil, err
	}
	list := make([]provider.Offer, 0, len(c.list))
	for _, o := range c.list {
		if n, limited := free[o.GPUType]; limited && o.GPUCount > n {
			continue
		}
		if o, err = c.priced(o, sc); err != nil {
			return nil, err
		}
		if f.Kind == "price_moved" {
			o.UpstreamPrice = o.UpstreamPrice.Scale(5, 4)
		}
		list = append(list, o)
	}
	return list, nil
}

// priced returns the offer at what the cloud asks now.
func (c *cloud) priced(o provider.Offer, sc *Script) (provider.Offer, error) {
	if c.s.Market == Walk {
		o.UpstreamPrice = o.UpstreamPrice.Scale(walk(o, c.s.Clock.Wall()), 1000)
	}
	if !sc.covers(c.Name) {
		return o, nil
	}
	var err error
	o.UpstreamPrice, err = sc.Prices.apply(o.UpstreamPrice)
	return o, err
}

// free is how many GPUs of each type are left, of the types that the script limits.
func (c *cloud) free(sc *Script) (map[string]int, error) {
	if !sc.covers(c.Name) || len(sc.Stock) == 0 {
		return nil, nil
	}
	free := map[string]int{}
	for gpu, n := range sc.Stock {
		free[gpu] = n
	}
	list, err := c.machines("")
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if n, limited := free[m.GPUType]; limited {
			free[m.GPUType] = max(0, n-m.GPUCount)
		}
	}
	return free, nil
}

// refusals are the scripted faults of a launch that make no machine.
var refusals = map[string]error{
	"no_capacity":  provider.ErrNoCapacity,
	"price_moved":  provider.ErrPriceMoved,
	"refused":      provider.ErrRefused,
	"funds":        provider.ErrFunds,
	"rate_limited": provider.ErrRateLimited.After(2),
	"error_before": errUpstream,
}

// hangs bounds a scripted hang for callers without a deadline.
const hangs = time.Minute

// Launch implements provider.Adapter.
func (c *cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if err := c.admit(ctx, l); err != nil {
		return provider.Machine{}, err
	}
	f, _, err := c.s.take(ctx, c.Name, OpLaunch)
	if err != nil {
		return provider.Machine{}, err
	}
	if err, refused := refusals[f.Kind]; refused {
		return provider.Machine{}, err
	}
	switch f.Kind {
	case "late":
		return provider.Machine{}, errors.Join(errUpstream, c.later(ctx, l, f.wait(3*time.Second)))
	case "never_boots", "boot_fails":
		r, err := c.pretend(ctx, l, f.Kind)
		if err != nil {
			return provider.Machine{}, err
		}
		return c.see(r), nil
	}
	r, err := c.create(ctx, l, f.Kind)
	if err != nil {
		return provider.Machine{}, err
	}
	switch f.Kind {
	case "error_after":
		return provider.Machine{}, errUpstream
	case "hang_after":
		if err := pause(ctx, hangs); err != nil {
			return provider.Machine{}, err
		}
		return provider.Machine{}, errUpstream
	}
	return c.see(r), nil
}

// named is a machine name that every cloud takes and that is a safe file name.
var named = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// admit refuses what makes no machine.
func (c *cloud) admit(ctx context.Context, l provider.Launch) error {
	if !named.MatchString(l.Name) || len(l.Name) > c.MaxName {
		return provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	o, known := c.byTuple[tuple(l.Offer)]
	if !known {
		return provider.ErrRefused.Because(fmt.Errorf("offer %s is not in the list of %s", l.Offer.CloudID, c.Name))
	}
	sc, err := c.s.readScript()
	if err != nil {
		return err
	}
	if o, err = c.priced(o, sc); err != nil {
		return err
	}
	if o.UpstreamPrice > l.MaxPrice {
		return provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", o.UpstreamPrice.Decimal(), l.MaxPrice.Decimal()))
	}
	free, err := c.free(sc)
	if err != nil {
		return err
	}
	if n, limited := free[o.GPUType]; limited && o.GPUCount > n {
		return provider.ErrNoCapacity
	}
	return c.s.Supported(ctx)
}

// later launches after a while, when the caller was long told of an error.
func (c *cloud) later(ctx context.Context, l provider.Launch, wait time.Duration) error {
	ctx = context.WithoutCancel(ctx)
	return c.s.background(func() {
		if err := pause(ctx, wait); err != nil {
			return
		}
		if _, err := c.create(ctx, l, ""); err != nil {
			c.s.Logger.Warn("late sandbox machine did not appear", "name", l.Name, "error", err)
		}
	})
}

// Find implements provider.Adapter.
func (c *cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	f, _, err := c.s.take(ctx, c.Name, OpFind)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case "error":
		return nil, errUpstream
	case "empty":
		return []provider.Machine{}, nil
	}
	list, err := c.machines(prefix)
	if err != nil {
		return nil, err
	}
	seen := make([]provider.Machine, 0, len(list))
	for _, r := range list {
		if f.Kind == "lag" && c.s.Clock.Wall().Sub(r.CreatedAt) < f.wait(30*time.Second) {
			continue
		}
		seen = append(seen, c.see(r))
	}
	return seen, nil
}

// Terminate implements provider.Adapter.
func (c *cloud) Terminate(ctx context.Context, ref string) error {
	r, found, err := c.byRef(ref)
	if err != nil {
		return err
	}
	if !found {
		return c.finish(ctx, ref)
	}
	f, _, err := c.s.take(ctx, c.Name, OpTerminate)
	if err != nil {
		return err
	}
	switch f.Kind {
	case "refused_not_yet":
		return provider.ErrNotYet
	case "error":
		return errUpstream
	case "slow":
		end := c.s.Clock.Wall().Add(f.wait(3 * time.Second))
		r.EndAt = &end
		return c.save(r)
	}
	if err := c.s.destroy(ctx, c.dir, r.Name); err != nil {
		if fault.Of(err) != nil {
			return err
		}
		return fmt.Errorf("terminate %s: %w", r.Name, err)
	}
	return nil
}

// finish removes what a crash left of a machine that is no longer listed.
func (c *cloud) finish(ctx context.Context, ref string) error {
	name, _, ok := strings.Cut(ref, ".")
	if !ok || !named.MatchString(name) {
		return nil // never one of ours
	}
	return c.s.bury(ctx, c.dir, name)
}

// pause waits, or returns early with the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
