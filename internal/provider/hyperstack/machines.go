package hyperstack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Who Hyperstack's images let in, and where.
const (
	sshUser = "ubuntu"
	sshPort = 22
)

// createRequest is the body of POST /core/virtual-machines.
type createRequest struct {
	Name              string         `json:"name"`
	Environment       string         `json:"environment_name"`
	Flavor            string         `json:"flavor_name"`
	Image             string         `json:"image_name"`
	Key               string         `json:"key_name"`
	Count             int            `json:"count"`
	AssignFloatingIP  bool           `json:"assign_floating_ip"`
	PortRandomization bool           `json:"enable_port_randomization"` // Hyperstack's default: port 22 is published as another
	BootableVolume    bool           `json:"create_bootable_volume"`    // it would stay when the machine ends
	SecurityRules     []securityRule `json:"security_rules"`            // without any, nothing is let in
	UserData          string         `json:"user_data"`
	Labels            []string       `json:"labels"`
}

type securityRule struct {
	Direction string `json:"direction"`
	EtherType string `json:"ethertype"`
	Protocol  string `json:"protocol"`
	From      string `json:"remote_ip_prefix"`
	PortMin   int    `json:"port_range_min"`
	PortMax   int    `json:"port_range_max"`
}

// instance is what Hyperstack says of a machine. What is null there reads as
// empty.
type instance struct {
	ID               int64  `json:"id"`
	Name             string `json:"name"`
	Status           string `json:"status"`
	VMState          string `json:"vm_state"`
	FloatingIP       string `json:"floating_ip"`
	FloatingIPStatus string `json:"floating_ip_status"`
	CreatedAt        string `json:"created_at"` // see timeOf
}

// Launch implements provider.Adapter. The look at the price comes last before
// the machine is asked for.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	userData, hide, err := userData(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	at, err := c.place(ctx, l.Offer.DataCenterID)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	image, err := c.image(ctx, l.Offer)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	if err := c.still(ctx, l); err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	body := createRequest{
		Name: l.Name, Environment: at.environment, Flavor: l.Offer.CloudID, Image: image, Key: at.key, Count: 1, AssignFloatingIP: true,
		SecurityRules: []securityRule{{"ingress", "IPv4", "tcp", "0.0.0.0/0", sshPort, sshPort}}, UserData: userData, Labels: []string{"homeport"},
	}
	var answer struct {
		Instances []instance `json:"instances"`
	}
	err = c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: "/core/virtual-machines", Body: body, Makes: true, Hide: hide}, &answer)
	if err != nil {
		if errors.Is(err, provider.ErrRefused) {
			c.forget(l.Offer.DataCenterID) // perhaps it is the environment or the key that is gone
		}
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	if len(answer.Instances) != 1 || answer.Instances[0].ID < 1 {
		return provider.Machine{}, fmt.Errorf("create %s: the answer does not name one instance", l.Name)
	}
	return provider.Machine{Ref: answer.Instances[0].ref(), Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// userData is the payload, and what of it no error may show.
func userData(b provider.Bootstrap) (text string, hide []string, err error) {
	script, err := bootstrap.Script(b)
	if err != nil {
		return "", nil, err
	}
	text, err = bootstrap.CloudInit(b)
	return text, []string{base64.StdEncoding.EncodeToString([]byte(script)), b.Token}, err
}

// imageOf is one of GET /core/images.
type imageOf struct {
	Name         string `json:"name"`
	Region       string `json:"region_name"`
	Restrictions struct {
		Restricted bool `json:"has_flavor_restrictions"`
		To         []struct {
			Flavor string `json:"flavor_name"`
		} `json:"compatible_flavors"`
	} `json:"flavor_restrictions"`
}

// fits reports whether a flavor may start with the image.
func (i imageOf) fits(flavor string) bool {
	if !i.Restrictions.Restricted {
		return true
	}
	for _, to := range i.Restrictions.To {
		if to.Flavor == flavor {
			return true
		}
	}
	return false
}

var cudaForm = regexp.MustCompile(`CUDA ([0-9]{1,3})\.([0-9]{1,3})`)

// image chooses what a machine starts with: Ubuntu with the newest CUDA, and of
// those one with Docker.
func (c *Cloud) image(ctx context.Context, o provider.Offer) (string, error) {
	var answer struct {
		Images *[]struct {
			Images []imageOf `json:"images"`
		} `json:"images"`
	}
	err := c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodGet, Path: "/core/images", Query: url.Values{"region": {o.DataCenterID}, "include_public": {"true"}, "search": {"CUDA"}, "per_page": {"100"}},
	}, &answer)
	if err == nil && answer.Images == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return "", fmt.Errorf("list the images: %w", err)
	}
	best, most := "", 0
	for _, group := range *answer.Images {
		for _, i := range group.Images {
			if points := i.points(o); points > most {
				best, most = i.Name, points
			}
		}
	}
	if best == "" {
		return "", provider.ErrRefused.Because(fmt.Errorf("there is no Ubuntu with CUDA in %s", o.DataCenterID))
	}
	return best, nil
}

// points are how well an image would do; 0 = not at all.
func (i imageOf) points(o provider.Offer) int {
	cuda := cudaForm.FindStringSubmatch(i.Name)
	if cuda == nil || !strings.HasPrefix(i.Name, "Ubuntu Server") || i.Region != o.DataCenterID || !i.fits(o.CloudID) {
		return 0
	}
	major, _ := strconv.Atoi(cuda[1])
	minor, _ := strconv.Atoi(cuda[2])
	points := 2 * (1000*major + minor)
	if strings.Contains(i.Name, "Docker") {
		points++
	}
	return points
}

// still looks whether the flavor is sold as it was offered. Nothing was asked
// for yet.
func (c *Cloud) still(ctx context.Context, l provider.Launch) error {
	list, err := c.flavors(ctx, l.Offer.DataCenterID)
	if err != nil {
		return err
	}
	for _, o := range list {
		if keyOf(o) != keyOf(l.Offer) || o.GPUType != l.Offer.GPUType || o.GPUCount != l.Offer.GPUCount {
			continue
		}
		if o.UpstreamPrice > l.MaxPrice {
			return provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", o.UpstreamPrice.Decimal(), l.MaxPrice.Decimal()))
		}
		return nil
	}
	return provider.ErrNoCapacity.Because(fmt.Errorf("%s is not in stock in %s any more", l.Offer.CloudID, l.Offer.DataCenterID))
}

// Find implements provider.Adapter.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	all, err := pages(ctx, c, "/core/virtual-machines", "instances", instance.ref)
	if err != nil {
		return nil, err
	}
	var list []provider.Machine
	for _, in := range all {
		if strings.HasPrefix(in.Name, prefix) {
			list = append(list, in.machine())
		}
	}
	return list, nil
}

func (in instance) ref() string { return strconv.FormatInt(in.ID, 10) }

// machine is an instance in our words. A status that is new to us is one of a
// machine that exists and is not usable yet. One that stands still costs on, and
// one asleep its disk and its address.
func (in instance) machine() provider.Machine {
	m := provider.Machine{Ref: in.ref(), Name: in.Name, State: provider.Building, CreatedAt: timeOf(in.CreatedAt)}
	switch in.Status {
	case "ACTIVE":
		if strings.EqualFold(in.VMState, "active") && in.FloatingIPStatus == "ATTACHED" && in.FloatingIP != "" {
			m.State, m.Host, m.SSHPort, m.SSHUser = provider.Running, in.FloatingIP, sshPort, sshUser
		}
	case "ERROR":
		m.State, m.Reason = provider.Failed, "The cloud reported an error."
	case "SHUTOFF", "STOPPING", "PAUSED", "SUSPENDED":
		m.State, m.Reason = provider.Failed, "The cloud stopped the machine."
	case "HIBERNATING", "HIBERNATED":
		m.State, m.Reason = provider.Failed, "The machine was put to sleep."
	case "DELETING":
		m.State = provider.Terminating
	case "DELETED":
		m.State = provider.Gone
	}
	return m
}

// Terminate implements provider.Adapter. The machine's address goes with it.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of Hyperstack's
	}
	var answer struct {
		Status  bool   `json:"status"`
		Message string `json:"message"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodDelete, Path: "/core/virtual-machines/" + ref}, &answer)
	var f *cloudapi.Failure
	switch {
	case err == nil && answer.Status:
		return nil
	case err == nil:
		err = fmt.Errorf("the answer says that it did not succeed: %.100q", answer.Message)
	case !errors.As(err, &f), f.Status >= 500, f.Status == http.StatusTooManyRequests:
	case f.Says("being created", "cannot be deleted yet", "can't be deleted yet", "try again"):
		return provider.ErrNotYet.Because(err)
	case f.Status == http.StatusNotFound, f.Says("does not exist", "doesn't exist", "being deleted", "already deleted"):
		return nil
	}
	return fmt.Errorf("delete %s: %w", ref, err)
}

// refForm is a reference that may be one of Hyperstack's.
var refForm = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
