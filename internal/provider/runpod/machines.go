package runpod

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// createRequest is the body of POST /pods.
type createRequest struct {
	Name          string     `json:"name"`
	Image         string     `json:"image"`
	GPU           gpuRequest `json:"gpu"`
	Cloud         string     `json:"cloud"`
	DataCenterIDs []string   `json:"dataCenterIds"`
	Disk          int        `json:"disk"` // GB
	Ports         []string   `json:"ports"`
	Args          string     `json:"args"`
}

type gpuRequest struct {
	ID             string `json:"id"`
	Count          int    `json:"count"`
	MinCUDAVersion string `json:"minCudaVersion"`
}

// pod is what Runpod says of one.
type pod struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Status       string    `json:"status"`
	DataCenterID string    `json:"dataCenterId"` // "" = not placed yet
	CreatedAt    time.Time `json:"createdAt"`
	SSH          struct {
		Direct *struct {
			Host string `json:"host"`
			Port int    `json:"port"`
		} `json:"direct"`
	} `json:"ssh"`
}

// Launch implements provider.Adapter.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	command, err := command(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	if err := c.still(ctx, l); err != nil {
		return provider.Machine{}, err
	}
	body := createRequest{
		Name: l.Name, Image: l.Offer.Image, GPU: gpuRequest{l.Offer.CloudID, l.Offer.GPUCount, minCUDA}, Cloud: secure,
		DataCenterIDs: []string{l.Offer.DataCenterID}, Disk: l.Offer.DiskGB, Ports: []string{"22/tcp"}, Args: command,
	}
	var made pod
	err = c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/pods", Body: body, Makes: true, Hide: []string{command, l.Bootstrap.Token},
	}, &made)
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	if !refForm.MatchString(made.ID) {
		return provider.Machine{}, fmt.Errorf("create %s: the answer names no pod: %q", l.Name, made.ID)
	}
	if made.DataCenterID != "" && made.DataCenterID != l.Offer.DataCenterID {
		return provider.Machine{}, c.misplaced(ctx, l, made)
	}
	return provider.Machine{Ref: made.ID, Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// command is the payload as the container's command. It is one line that means
// the same to a shell and to whoever splits it into words.
func command(b provider.Bootstrap) (string, error) {
	args, err := bootstrap.Args(b)
	if err != nil {
		return "", err
	}
	script := base64.StdEncoding.EncodeToString([]byte(args[len(args)-1]))
	return `/bin/sh -c 'eval "$(echo ` + script + ` | base64 -d)"'`, nil
}

// misplaced ends a machine that came in another data centre: Runpod calls those
// of a request preferred, and a user was promised the country.
func (c *Cloud) misplaced(ctx context.Context, l provider.Launch, made pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	where := fmt.Errorf("create %s: it came in %s, not in %s", l.Name, made.DataCenterID, l.Offer.DataCenterID)
	if err := c.Terminate(ctx, made.ID); err != nil {
		return errors.Join(where, err) // it is there, and found by its name
	}
	return provider.ErrNoCapacity.Because(where)
}

// still reports whether the offer is as it was. Whatever goes wrong, nothing
// was asked for yet: every error says so.
func (c *Cloud) still(ctx context.Context, l provider.Launch) error {
	var g gpuType
	err := c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodGet, Path: "/catalog/gpus/" + url.PathEscape(l.Offer.CloudID), Query: stockOf(l.Offer.GPUCount),
	}, &g)
	if err != nil {
		return provider.NotMade(err)
	}
	for _, o := range g.offers(l.Offer.GPUCount) {
		if o.CloudID != l.Offer.CloudID || o.DataCenterID != l.Offer.DataCenterID {
			continue
		}
		if o.UpstreamPrice > l.MaxPrice {
			return provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", o.UpstreamPrice.Decimal(), l.MaxPrice.Decimal()))
		}
		return nil
	}
	return provider.ErrNoCapacity.Because(fmt.Errorf("%d of %s are not in %s any more", l.Offer.GPUCount, l.Offer.CloudID, l.Offer.DataCenterID))
}

// Find implements provider.Adapter. Runpod gives all pods at once, and none
// that ended.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	var answer struct {
		Pods *[]pod `json:"pods"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/pods"}, &answer)
	if err == nil && answer.Pods == nil {
		err = errors.New("the answer has no list") // {} must not read as: all are gone
	}
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	var list []provider.Machine
	for _, p := range *answer.Pods {
		if strings.HasPrefix(p.Name, prefix) {
			list = append(list, p.machine())
		}
	}
	return list, nil
}

// machine is a pod in our words. A status that is new to us is one of a machine
// that exists and is not usable yet.
func (p pod) machine() provider.Machine {
	m := provider.Machine{Ref: p.ID, Name: p.Name, State: provider.Building, CreatedAt: p.CreatedAt}
	switch p.Status {
	case "RUNNING":
		if at := p.SSH.Direct; at != nil && at.Host != "" && at.Port > 0 {
			m.State, m.Host, m.SSHPort = provider.Running, at.Host, at.Port
		}
	case "EXITED":
		m.State, m.Reason = provider.Failed, "The container ended." // its disk costs on: it is never kept
	case "ERROR":
		m.State, m.Reason = provider.Failed, "The cloud reported an error."
	case "TERMINATED":
		m.State = provider.Gone
	}
	return m
}

// Terminate implements provider.Adapter.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of Runpod's
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodDelete, Path: "/pods/" + url.PathEscape(ref)}, nil)
	var f *cloudapi.Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
	case f.Status == http.StatusNotFound, f.Status < 500 && f.Says("already terminated", "already deleted", "not found", "does not exist"):
		return nil
	case f.Status < 500 && f.Says("provisioning", "starting", "in progress", "cannot be terminated yet", "cannot be deleted yet", "try again"):
		return provider.ErrNotYet.Because(err)
	}
	return fmt.Errorf("delete %s: %w", ref, err)
}

// refForm is a reference that may be one of Runpod's; it never leaves its part
// of a path.
var refForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
