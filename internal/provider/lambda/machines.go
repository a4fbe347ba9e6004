package lambda

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Who Lambda's image lets in, and where.
const (
	sshUser = "ubuntu"
	sshPort = 22
)

// madeTag is the tag that says when a machine was asked for, in RFC 3339:
// Lambda itself does not tell.
const madeTag = "homeport-made"

// launchRequest is the body of POST /instance-operations/launch.
type launchRequest struct {
	Region       string   `json:"region_name"`
	InstanceType string   `json:"instance_type_name"`
	SSHKeyNames  []string `json:"ssh_key_names"` // exactly one
	Name         string   `json:"name"`
	UserData     string   `json:"user_data"`
	Tags         []tag    `json:"tags"`
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type terminateRequest struct {
	InstanceIDs []string `json:"instance_ids"`
}

// instance is what Lambda says of one.
type instance struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	IP     string `json:"ip"` // "" = none yet
	Status string `json:"status"`
	Tags   []tag  `json:"tags"`
}

// Launch implements provider.Adapter. The turn comes first, so that nothing but
// the launch itself follows on the look at the price.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	userData, hide, err := userData(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	keyName, err := c.bootstrapKey(ctx)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	if err := c.turn(ctx); err != nil {
		return provider.Machine{}, err
	}
	if err := c.still(ctx, l); err != nil {
		return provider.Machine{}, err
	}
	now := c.clock.Wall()
	body := launchRequest{
		Region: l.Offer.DataCenterID, InstanceType: l.Offer.CloudID, SSHKeyNames: []string{keyName}, Name: l.Name,
		UserData: userData, Tags: []tag{{madeTag, now.Format(time.RFC3339)}},
	}
	var answer struct {
		Data struct {
			InstanceIDs []string `json:"instance_ids"`
		} `json:"data"`
	}
	err = c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/instance-operations/launch", Body: body, Class: calls, Makes: true, Hide: hide,
	}, &answer)
	if err != nil {
		if errors.Is(err, provider.ErrRefused) {
			c.forgetKey() // perhaps it is the key that is gone
		}
		return provider.Machine{}, fmt.Errorf("launch %s: %w", l.Name, err)
	}
	ids := answer.Data.InstanceIDs
	if len(ids) != 1 || !refForm.MatchString(ids[0]) {
		return provider.Machine{}, fmt.Errorf("launch %s: the answer does not name one instance: %q", l.Name, ids)
	}
	return provider.Machine{Ref: ids[0], Name: l.Name, State: provider.Building, CreatedAt: now}, nil
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

// still reports whether the offer is as it was. Nothing was asked for yet:
// every error says so.
func (c *Cloud) still(ctx context.Context, l provider.Launch) error {
	list, err := c.Offers(ctx)
	if err != nil {
		return provider.NotMade(err)
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
	return provider.ErrNoCapacity.Because(fmt.Errorf("%s is not listed in %s any more", l.Offer.CloudID, l.Offer.DataCenterID))
}

// Find implements provider.Adapter. Lambda gives all instances at once.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	var answer struct {
		Data *[]instance `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/instances", Class: calls}, &answer)
	if err == nil && answer.Data == nil {
		err = errors.New("the answer has no list") // {} must not read as: all are gone
	}
	if err != nil {
		return nil, fmt.Errorf("list the instances: %w", err)
	}
	var list []provider.Machine
	for _, in := range *answer.Data {
		if strings.HasPrefix(in.Name, prefix) {
			list = append(list, in.machine())
		}
	}
	return list, nil
}

// machine is an instance in our words. A status that is new to us is one of a
// machine that exists and is not usable yet.
func (in instance) machine() provider.Machine {
	m := provider.Machine{Ref: in.ID, Name: in.Name, State: provider.Building, CreatedAt: in.madeAt()}
	switch in.Status {
	case "active":
		if in.IP != "" {
			m.State, m.Host, m.SSHPort, m.SSHUser = provider.Running, in.IP, sshPort, sshUser
		}
	case "unhealthy":
		m.State, m.Reason = provider.Failed, "The cloud reported the machine as unhealthy." // it costs on all the same
	case "preempted":
		m.State, m.Reason = provider.Failed, "The cloud took the machine back."
	case "terminating":
		m.State = provider.Terminating
	case "terminated":
		m.State = provider.Gone
	}
	return m
}

// madeAt is when the instance was asked for; zero = not by us, or it is not said.
func (in instance) madeAt() time.Time {
	for _, t := range in.Tags {
		if t.Key != madeTag {
			continue
		}
		if at, err := time.Parse(time.RFC3339, t.Value); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// Terminate implements provider.Adapter.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of Lambda's
	}
	var answer struct {
		Data struct {
			Terminated []instance `json:"terminated_instances"`
		} `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/instance-operations/terminate", Body: terminateRequest{[]string{ref}}, Class: calls,
	}, &answer)
	var f *cloudapi.Failure
	switch {
	case err == nil && slices.ContainsFunc(answer.Data.Terminated, func(in instance) bool { return in.ID == ref }):
		return nil
	case err == nil:
		err = errors.New("the answer does not name it")
	case !errors.As(err, &f), f.Status == http.StatusTooManyRequests:
		return fmt.Errorf("terminate %s: %w", ref, err)
	case f.Status == http.StatusNotFound:
		return nil
	case f.Status < 500 && (codeOf(f) == "global/conflict" ||
		f.Says("has-not-launched", "has not launched", "action-in-progress", "in progress", "booting", "cannot be terminated")):
		return provider.ErrNotYet.Because(err)
	}
	// Lambda refuses to end what is on its way out already, in words that do not
	// say so.
	if c.leaves(ctx, ref) {
		return nil
	}
	return fmt.Errorf("terminate %s: %w", ref, err)
}

// leaves reports whether an instance is surely gone or on its way out.
func (c *Cloud) leaves(ctx context.Context, ref string) bool {
	var answer struct {
		Data instance `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/instances/" + url.PathEscape(ref), Class: calls}, &answer)
	var f *cloudapi.Failure
	if err != nil {
		return errors.As(err, &f) && f.Status == http.StatusNotFound
	}
	state := answer.Data.machine().State
	return answer.Data.ID == ref && (state == provider.Terminating || state == provider.Gone)
}

// refForm is a reference that may be one of Lambda's; it never leaves its part
// of a path.
var refForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
