package prime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// createRequest is the body of POST /pods/.
type createRequest struct {
	Pod      podRequest `json:"pod"`
	Provider struct {
		Type string `json:"type"`
	} `json:"provider"`
}

type podRequest struct {
	Name         string      `json:"name"`
	CloudID      string      `json:"cloudId"`
	GPUType      string      `json:"gpuType"`
	Socket       string      `json:"socket"`
	GPUCount     int         `json:"gpuCount"`
	DiskSize     int         `json:"diskSize"`
	VCPUs        int         `json:"vcpus"`
	Memory       int         `json:"memory"`
	MaxPrice     json.Number `json:"maxPrice"`
	Image        string      `json:"image"`
	DataCenterID string      `json:"dataCenterId,omitempty"`
	Country      string      `json:"country,omitempty"`
	Security     string      `json:"security"`
	SSHKeyID     string      `json:"sshKeyId"`
	AutoRestart  bool        `json:"autoRestart"`
}

// pod is what Prime says of one.
type pod struct {
	ID                   string    `json:"id"`
	Name                 string    `json:"name"`
	Status               string    `json:"status"`
	InstallationStatus   string    `json:"installationStatus"`
	InstallationFailure  string    `json:"installationFailure"`
	InstallationProgress *int      `json:"installationProgress"` // per cent; null = nothing is installed
	SSHConnection        oneOrMany `json:"sshConnection"`
	CreatedAt            time.Time `json:"createdAt"`
}

// Launch implements provider.Adapter. Prime itself holds the price to MaxPrice.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	// What Push will bring is looked at before the machine costs anything.
	if _, err := bootstrap.Script(l.Bootstrap); err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	keyID, err := c.bootstrapKey(ctx)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	body := createRequest{Pod: podRequest{
		Name: l.Name, CloudID: l.Offer.CloudID, GPUType: l.Offer.GPUType, Socket: l.Offer.Socket, GPUCount: l.Offer.GPUCount,
		DiskSize: ordered(l.Offer), VCPUs: l.Offer.VCPU, Memory: l.Offer.MemoryGB, MaxPrice: maxPrice(l), Image: l.Offer.Image,
		DataCenterID: l.Offer.DataCenterID, Security: l.Offer.Security, SSHKeyID: keyID,
	}}
	body.Provider.Type = l.Offer.Provider
	if l.Offer.DataCenterID == "" {
		body.Pod.Country = l.Offer.Country
	}
	var made pod
	err = c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: "/pods/", Body: body, Class: makes, Makes: true}, &made)
	if err != nil {
		if errors.Is(err, provider.ErrRefused) {
			c.forgetKey() // perhaps it is the key that is gone
		}
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	if !refForm.MatchString(made.ID) {
		return provider.Machine{}, fmt.Errorf("create %s: the answer names no pod: %q", l.Name, made.ID)
	}
	return provider.Machine{Ref: made.ID, Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// ordered is the disk to ask for, with what its system takes of it.
func ordered(o provider.Offer) int { return o.DiskGB + reserved[o.Provider] }

// maxPrice is what the machine may cost, with its disk: Prime does not say
// whether it counts that in, and without it every price would be too high then.
func maxPrice(l provider.Launch) json.Number {
	most := l.MaxPrice + money.Rate(ordered(l.Offer))*l.Offer.DiskPrice
	return json.Number(most.Decimal())
}

// Find implements provider.Adapter. Prime keeps ended pods in another list.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	var list []provider.Machine
	err := each(ctx, c, "/pods/", func(p pod) {
		if strings.HasPrefix(p.Name, prefix) {
			list = append(list, p.machine())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return list, nil
}

// each reads a list of Prime's to its end. A list that breaks off is an error:
// what is missing in it may be there.
func each[T any](ctx context.Context, c *Cloud, path string, visit func(T)) error {
	for page, seen := 0, 0; page < maxPages; page++ {
		var answer struct {
			Data  *[]T `json:"data"`
			Total int  `json:"total_count"`
		}
		query := url.Values{"offset": {strconv.Itoa(seen)}, "limit": {strconv.Itoa(pageSize)}}
		err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: path, Query: query, Class: reads}, &answer)
		if err != nil {
			return err
		}
		if answer.Data == nil || len(*answer.Data) == 0 && seen < answer.Total {
			return errors.New("the answer has no list, or not all of it")
		}
		for _, one := range *answer.Data {
			visit(one)
		}
		seen += len(*answer.Data)
		if seen >= answer.Total && len(*answer.Data) < pageSize {
			return nil
		}
	}
	return fmt.Errorf("more than %d pages", maxPages)
}

// machine is a pod in our words. A status that is new to us is one of a machine
// that exists and is not usable yet, as is one of which Prime knows nothing.
func (p pod) machine() provider.Machine {
	m := provider.Machine{Ref: p.ID, Name: p.Name, State: provider.Building, CreatedAt: p.CreatedAt}
	switch p.Status {
	case "ACTIVE":
		switch at, ok := p.SSHConnection.login(); {
		case p.InstallationStatus == "ERROR":
			m.State, m.Reason = provider.Failed, p.reason("The cloud could not install the machine's image.")
		case ok && (p.InstallationProgress == nil || *p.InstallationProgress == 100):
			m.State, m.Host, m.SSHPort, m.SSHUser = provider.Running, at.host, at.port, at.user
		}
	case "ERROR":
		m.State, m.Reason = provider.Failed, p.reason("The cloud reported an error.")
	case "STOPPED":
		m.State, m.Reason = provider.Failed, p.reason("The cloud stopped the machine.")
	case "DELETING":
		m.State = provider.Terminating
	case "TERMINATED":
		m.State, m.Reason = provider.Gone, p.InstallationFailure
	}
	return m
}

func (p pod) reason(otherwise string) string {
	if p.InstallationFailure != "" {
		return p.InstallationFailure
	}
	return otherwise
}

// Terminate implements provider.Adapter.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of Prime's
	}
	call := cloudapi.Call{Method: http.MethodDelete, Path: "/pods/" + url.PathEscape(ref), Class: ends}
	err := c.api.Do(ctx, call, nil)
	var f *cloudapi.Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
	case f.Status == http.StatusNotFound, f.Status < 500 && f.Says("already terminated", "already deleted", "already deleting", "not found", "does not exist"):
		return nil
	case f.Status < 500 && f.Says("provisioning", "pending", "creating", "in progress", "cannot be deleted", "can't be deleted",
		"cannot be terminated", "not active", "try again"):
		return provider.ErrNotYet.Because(err)
	}
	return fmt.Errorf("delete %s: %w", ref, err)
}

// refForm is a reference that may be one of Prime's; it never leaves its part
// of a path.
var refForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
