package shadeform

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// createRequest is the body of POST /instances/create.
type createRequest struct {
	Cloud             string              `json:"cloud"`
	Region            string              `json:"region"`
	ShadeInstanceType string              `json:"shade_instance_type"`
	ShadeCloud        bool                `json:"shade_cloud"` // on Shadeform's account at the cloud, not on one of ours
	Name              string              `json:"name"`
	OS                string              `json:"os"`
	Launch            launchConfiguration `json:"launch_configuration"`
	Tags              []string            `json:"tags"`
	AutoDelete        *autoDelete         `json:"auto_delete,omitempty"`
}

type launchConfiguration struct {
	Type   string `json:"type"`
	Script struct {
		Base64 string `json:"base64_script"`
	} `json:"script_configuration"`
}

type autoDelete struct {
	DateThreshold string `json:"date_threshold"` // RFC 3339
}

type updateRequest struct {
	AutoDelete *autoDelete `json:"auto_delete"`
}

// instance is what GET /instances says of one.
type instance struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	IP            string    `json:"ip"` // or a name
	SSHPort       int       `json:"ssh_port"`
	SSHUser       string    `json:"ssh_user"`
	Status        string    `json:"status"`
	StatusDetails string    `json:"status_details"`
	CreatedAt     time.Time `json:"created_at"`
}

// Launch implements provider.Adapter. Shadeform knows no highest price, so the
// price is read again just before.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	script, err := bootstrap.Script(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	offer, err := c.still(ctx, l)
	if err != nil {
		return provider.Machine{}, err
	}
	body := createRequest{
		Cloud: offer.Provider, Region: offer.DataCenterID, ShadeInstanceType: offer.CloudID, ShadeCloud: true, Name: l.Name,
		OS: offer.Image, Tags: []string{"homeport", l.Name}, AutoDelete: endAt(l.KeepUntil),
	}
	body.Launch.Type = "script"
	body.Launch.Script.Base64 = base64.StdEncoding.EncodeToString([]byte(script))
	var made struct {
		ID string `json:"id"`
	}
	err = c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/instances/create", Body: body, Class: makes, Makes: true,
		Hide: []string{body.Launch.Script.Base64, l.Bootstrap.Token},
	}, &made)
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	if _, err := uuid.Parse(made.ID); err != nil {
		return provider.Machine{}, fmt.Errorf("create %s: the answer names no instance: %w", l.Name, err)
	}
	return provider.Machine{Ref: made.ID, Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// still finds the offer as it is now. Whatever goes wrong, nothing was asked
// for yet: every error says so.
func (c *Cloud) still(ctx context.Context, l provider.Launch) (provider.Offer, error) {
	list, err := c.types(ctx, url.Values{
		"cloud": {l.Offer.Provider}, "region": {l.Offer.DataCenterID}, "shade_instance_type": {l.Offer.CloudID}, "available": {"true"},
	})
	if err != nil {
		return provider.Offer{}, provider.NotMade(err)
	}
	for _, o := range list {
		if keyOf(o) != keyOf(l.Offer) || o.GPUType != l.Offer.GPUType || o.GPUCount != l.Offer.GPUCount {
			continue
		}
		if o.UpstreamPrice > l.MaxPrice {
			return o, provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", o.UpstreamPrice.Decimal(), l.MaxPrice.Decimal()))
		}
		return o, nil
	}
	return provider.Offer{}, provider.ErrNoCapacity.Because(fmt.Errorf("%s is not listed in %s any more", l.Offer.CloudID, l.Offer.DataCenterID))
}

// Find implements provider.Adapter.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	var answer struct {
		Instances *[]instance `json:"instances"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/instances", Class: reads}, &answer)
	if err == nil && answer.Instances == nil {
		err = errors.New("the answer has no list") // {} must not read as: all are gone
	}
	if err != nil {
		return nil, fmt.Errorf("list the instances: %w", err)
	}
	var list []provider.Machine
	for _, in := range *answer.Instances {
		if strings.HasPrefix(in.Name, prefix) {
			list = append(list, in.machine())
		}
	}
	return list, nil
}

// machine is an instance in our words. A status that is new to us is one of a
// machine that exists and is not usable yet.
func (in instance) machine() provider.Machine {
	m := provider.Machine{Ref: in.ID, Name: in.Name, State: provider.Building, CreatedAt: in.CreatedAt}
	switch in.Status {
	case "active":
		if in.IP != "" && in.SSHPort > 0 {
			m.State, m.Host, m.SSHPort, m.SSHUser = provider.Running, in.IP, in.SSHPort, in.SSHUser
		}
	case "error":
		m.State, m.Reason = provider.Failed, "The cloud reported an error."
		if in.StatusDetails != "" {
			m.Reason = in.StatusDetails
		}
	case "deleting":
		m.State = provider.Terminating
	case "deleted":
		m.State, m.Reason = provider.Gone, in.StatusDetails
	}
	return m
}

// Terminate implements provider.Adapter. Shadeform charges nothing from its
// answer on.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	path, ok := instancePath(ref, "delete")
	if !ok {
		return nil // never one of Shadeform's
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: path, Class: ends}, nil)
	var f *cloudapi.Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
	case f.Status == http.StatusNotFound, f.Status < 500 && f.Says("already deleted", "already deleting", "not found", "does not exist"):
		return nil
	case f.Status < 500 && f.Says("pending", "creating", "not active", "provisioning", "in progress", "cannot be deleted", "can't be deleted", "try again"):
		return provider.ErrNotYet.Because(err)
	}
	return fmt.Errorf("delete %s: %w", ref, err)
}

// instancePath is the path of a call about one instance; false = the reference
// is not of Shadeform's form.
func instancePath(ref, call string) (string, bool) {
	id, err := uuid.Parse(ref)
	return "/instances/" + id.String() + "/" + call, err == nil
}
