package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
)

var machineName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Launch implements provider.Adapter: GPUs are chosen, a container is made that
// holds them, it gets the payload, and is started.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if !machineName.MatchString(l.Name) || len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	if err := c.admit(l); err != nil {
		return provider.Machine{}, err
	}
	if c.host.AgentURL != "" {
		l.Bootstrap.AgentURL = c.host.AgentURL
	}
	payload, err := bootstrap.Container(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	made, err := c.claim(ctx, l)
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	if err := c.start(ctx, made, payload); err != nil {
		return provider.Machine{}, fmt.Errorf("start %s: %w", l.Name, err)
	}
	return provider.Machine{Ref: made, Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// admit refuses what is not in the list, or costs more by now.
func (c *Cloud) admit(l provider.Launch) error {
	price, sold := c.prices[l.Offer.GPUType]
	if !sold || l.Offer.CloudID != c.host.Name || l.Offer.GPUCount < 1 || l.Offer.GPUCount > mostGPUs || l.Offer.VCPU < 1 || l.Offer.MemoryGB < 1 {
		return provider.ErrRefused.Because(fmt.Errorf("%d of %s at %s are not for sale", l.Offer.GPUCount, l.Offer.GPUType, l.Offer.CloudID))
	}
	if asks := price * money.Rate(l.Offer.GPUCount); asks > l.MaxPrice {
		return provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", asks.Decimal(), l.MaxPrice.Decimal()))
	}
	return nil
}

// chooseTries is how often GPUs are chosen when another node takes the same.
const chooseTries = 3

// claim makes the container. Other nodes may choose at the same time, which only the engine
// could order: whoever sees after its create that another container holds one
// of its GPUs withdraws, so that none is ever held by two that run.
func (c *Cloud) claim(ctx context.Context, l provider.Launch) (string, error) {
	network, err := c.network(ctx)
	if err != nil {
		return "", provider.NotMade(err)
	}
	all, err := c.devices(ctx)
	if err != nil {
		return "", provider.NotMade(err)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return "", provider.ErrUnreachable.Because(ctx.Err())
	}
	for range chooseTries {
		held, err := c.held(ctx)
		if err != nil {
			return "", provider.NotMade(err)
		}
		chosen := choose(all, held, l.Offer)
		if chosen == nil {
			return "", provider.ErrNoCapacity
		}
		made, err := c.create(ctx, c.options(l, network, chosen))
		if f, ok := failed(err); ok && f.status == http.StatusConflict {
			return "", unclear(err) // a container has this name: Find tells whose it is
		}
		if err != nil {
			return "", refused(err)
		}
		alone, err := c.alone(ctx, made, chosen)
		if err != nil {
			return "", unclear(err) // it is there, and found by its name
		}
		if alone {
			return made, nil
		}
		if err := c.remove(ctx, made); err != nil {
			return "", unclear(err)
		}
	}
	return "", provider.ErrNoCapacity.Because(errors.New("others took the same GPUs each time"))
}

// unclear takes from an error what it says of its own call, where a machine may
// be there by an earlier one.
func unclear(err error) error {
	if provider.NoMachine(err) {
		return errors.New("a container may be there: " + err.Error())
	}
	return err
}

// choose picks free GPUs of an offer; nil = there are too few.
func choose(all []device, held map[string]string, o provider.Offer) []device {
	var chosen []device
	for _, d := range all {
		if _, taken := held[d.id]; !taken && d.token == o.GPUType && d.socket == o.Socket && len(chosen) < o.GPUCount {
			chosen = append(chosen, d)
		}
	}
	if len(chosen) < o.GPUCount {
		return nil
	}
	return chosen
}

// alone reports whether no other container holds one of the GPUs.
func (c *Cloud) alone(ctx context.Context, made string, chosen []device) (bool, error) {
	list, err := c.list(ctx, make(client.Filters).Add("label", labelGPUs))
	if err != nil {
		return false, err
	}
	for _, s := range list {
		ids := strings.Split(s.Labels[labelGPUs], ",")
		if s.ID != made && slices.ContainsFunc(chosen, func(d device) bool { return slices.Contains(ids, d.id) }) {
			return false, nil
		}
	}
	return true, nil
}

// byName filters for containers of ours whose name begins so.
func byName(prefix string) client.Filters {
	return make(client.Filters).Add("label", labelMachine).Add("name", "^/?"+regexp.QuoteMeta(prefix))
}

// create makes a container, and returns its id.
func (c *Cloud) create(ctx context.Context, o client.ContainerCreateOptions) (string, error) {
	var made string
	err := do(ctx, makeFor, func(ctx context.Context) error {
		res, err := c.engine.ContainerCreate(ctx, o)
		made = res.ID
		if err == nil && !refForm.MatchString(made) {
			err = fmt.Errorf("the answer names no container: %q", made)
		}
		return err
	})
	return made, err
}

// start starts a container with its payload. One that certainly does not run is
// removed, and the fault says so; after any other error it may run.
func (c *Cloud) start(ctx context.Context, made, payload string) error {
	if err := c.place(ctx, made, payload); err != nil {
		why := stillborn(err)
		if why == nil {
			why = provider.NotMade(err) // nobody started it
		}
		return c.withdraw(ctx, made, why)
	}
	err := do(ctx, makeFor, func(ctx context.Context) error {
		_, err := c.engine.ContainerStart(ctx, made, client.ContainerStartOptions{})
		return err
	})
	if err == nil {
		return nil
	}
	why := stillborn(err)
	if why == nil {
		return unclear(err)
	}
	return c.withdraw(ctx, made, why)
}

// withdraw removes a container that does not run. Its error is why, where it is gone.
func (c *Cloud) withdraw(ctx context.Context, made string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeFor)
	defer cancel()
	if err := c.remove(ctx, made); err != nil {
		return fmt.Errorf("it did not start, and is there still: %w", unclear(err))
	}
	return why
}

// Find implements provider.Adapter.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	list, err := c.list(ctx, byName(prefix))
	if err != nil {
		return nil, err
	}
	var found []provider.Machine
	for _, s := range list {
		if m := c.machine(s); strings.HasPrefix(m.Name, prefix) {
			found = append(found, m)
		}
	}
	return found, nil
}

// Terminate implements provider.Adapter: the container goes, with its files and
// the volumes that its image asked for.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of an engine's
	}
	if err := c.remove(ctx, ref); err != nil {
		return fmt.Errorf("remove container %s: %w", ref[:12], err)
	}
	return nil
}

// remove ends and removes a container. One that is not there is no error.
func (c *Cloud) remove(ctx context.Context, ref string) error {
	err := do(ctx, removeFor, func(ctx context.Context) error {
		_, err := c.engine.ContainerRemove(ctx, ref, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
		return err
	})
	f, answered := failed(err)
	switch {
	case err == nil, notFound(err):
		return nil
	case answered && f.status == http.StatusConflict && f.says("already in progress"):
		return nil
	case answered && f.status == http.StatusConflict:
		return provider.ErrNotYet.Because(err)
	}
	return err
}

// removeFor bounds a removal: files are deleted while the engine is asked.
const removeFor = 25 * time.Second
