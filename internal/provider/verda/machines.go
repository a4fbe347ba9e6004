package verda

import (
	"context"
	"encoding/json"
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

// createRequest is the body of POST /instances.
type createRequest struct {
	InstanceType    string   `json:"instance_type"`
	Image           string   `json:"image"`
	Hostname        string   `json:"hostname"`
	Description     string   `json:"description"`
	LocationCode    string   `json:"location_code"`
	SSHKeyIDs       []string `json:"ssh_key_ids"` // none: the agent brings its own SSH server
	StartupScriptID string   `json:"startup_script_id"`
	IsSpot          bool     `json:"is_spot"`
	Contract        string   `json:"contract"`
	Pricing         string   `json:"pricing"`
	OSVolume        volume   `json:"os_volume"`
}

type volume struct {
	Name string `json:"name"`
	Size int    `json:"size"` // GB
}

// actionRequest is the body of PUT /instances.
type actionRequest struct {
	Action            string   `json:"action"`
	ID                []string `json:"id"`
	VolumeIDs         []string `json:"volume_ids,omitempty"` // to delete too; none = the system's
	DeletePermanently bool     `json:"delete_permanently"`   // else a volume costs on in the trash
}

// actionResult is what became of one instance of an action.
type actionResult struct {
	InstanceID string          `json:"instanceId"`
	Status     string          `json:"status"` // success or error
	StatusCode int             `json:"statusCode"`
	Error      json.RawMessage `json:"error"`
}

// instance is what Verda says of one. What is null there reads as empty.
type instance struct {
	ID              string    `json:"id"`
	Hostname        string    `json:"hostname"`
	IP              string    `json:"ip"`
	Status          string    `json:"status"`
	CreatedAt       time.Time `json:"created_at"`
	StartupScriptID string    `json:"startup_script_id"`
	OSVolumeID      string    `json:"os_volume_id"`
}

// image is one of GET /images.
type image struct {
	ImageType string `json:"image_type"`
	IsDefault bool   `json:"is_default"`
	IsCluster bool   `json:"is_cluster"`
}

// Launch implements provider.Adapter. Verda knows no highest price, so the
// price is read again just before. The script is deleted at once where it is
// certain that no machine will start with it.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	script, err := bootstrap.Script(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	image, err := c.image(ctx, l.Offer)
	if unauthorized(err) { // a token can be withdrawn: the next one says whether we are
		image, err = c.image(ctx, l.Offer)
	}
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	if err := c.still(ctx, l); err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	scriptID, err := c.addScript(ctx, l, script)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	ref, err := c.create(ctx, createRequest{
		InstanceType: l.Offer.CloudID, Image: image, Hostname: l.Name, Description: l.Name, LocationCode: l.Offer.DataCenterID,
		SSHKeyIDs: []string{}, StartupScriptID: scriptID, Contract: "PAY_AS_YOU_GO", Pricing: "FIXED_PRICE",
		OSVolume: volume{l.Name, l.Offer.DiskGB},
	})
	if err != nil {
		if provider.NoMachine(err) {
			c.dropScript(ctx, scriptID)
		}
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	}
	return provider.Machine{Ref: ref, Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// create asks for the instance and returns its id, which Verda answers as bare
// text.
func (c *Cloud) create(ctx context.Context, body createRequest) (string, error) {
	var answer cloudapi.Answer
	err := c.do(ctx, cloudapi.Call{Method: http.MethodPost, Path: "/instances", Body: body, Class: makes, Makes: true}, &answer)
	if err != nil {
		if soldOut(err) {
			return "", provider.ErrNoCapacity.Because(err)
		}
		return "", err
	}
	id, ok := idOf(answer)
	if !ok {
		return "", errors.New("the answer names no instance")
	}
	return id, nil
}

// soldOut reports whether a 503 is the one by which Verda says that it made
// nothing. Any other, a proxy's for one, says nothing.
func soldOut(err error) bool {
	var f *cloudapi.Failure
	if !errors.As(err, &f) || f.Status != http.StatusServiceUnavailable || !f.Says("no capacity available", "not enough resources") {
		return false
	}
	var said struct {
		Code string `json:"code"`
	}
	return json.Unmarshal(f.Body, &said) == nil && said.Code == "service_unavailable"
}

// idOf reads the id of what was made: bare, in quotes, or a member of an object.
func idOf(a cloudapi.Answer) (string, bool) {
	text := strings.Trim(strings.TrimSpace(string(a.Body)), `"`)
	if strings.HasPrefix(text, "{") {
		var made struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(a.Body, &made) != nil {
			return "", false
		}
		text = made.ID
	}
	id, err := uuid.Parse(text)
	return id.String(), err == nil
}

// image chooses what a machine starts with: Ubuntu with CUDA, of the version
// that was offered where the type takes that, and of those the default.
func (c *Cloud) image(ctx context.Context, o provider.Offer) (string, error) {
	images, err := list[image](ctx, c, "/images", url.Values{"instance_type": {o.CloudID}})
	if err != nil {
		return "", err
	}
	best, most := "", 0
	for _, i := range images {
		if i.IsCluster || !strings.HasPrefix(i.ImageType, "ubuntu") || !strings.Contains(i.ImageType, "cuda") {
			continue
		}
		points := 1
		if strings.HasPrefix(i.ImageType, o.Image) {
			points += 2
		}
		if i.IsDefault {
			points++
		}
		if points > most {
			best, most = i.ImageType, points
		}
	}
	if best == "" {
		return "", provider.ErrRefused.Because(fmt.Errorf("there is no Ubuntu with CUDA for %s", o.CloudID))
	}
	return best, nil
}

// still looks whether the type is sold as it was offered. Whether there is one
// left the request itself tells.
func (c *Cloud) still(ctx context.Context, l provider.Launch) error {
	types, err := c.types(ctx)
	if err != nil {
		return err
	}
	o, listed := types[l.Offer.CloudID]
	if !listed || o.GPUType != l.Offer.GPUType || o.GPUCount != l.Offer.GPUCount {
		return provider.ErrNoCapacity.Because(fmt.Errorf("%s is not listed any more", l.Offer.CloudID))
	}
	if o.UpstreamPrice > l.MaxPrice {
		return provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", o.UpstreamPrice.Decimal(), l.MaxPrice.Decimal()))
	}
	return nil
}

// Find implements provider.Adapter. Whoever looks through a whole installation,
// by a prefix that ends in a dash, has the scripts deleted that machines left.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	all, err := list[instance](ctx, c, "/instances", nil)
	if err != nil {
		return nil, err
	}
	var found []provider.Machine
	for _, in := range all {
		if strings.HasPrefix(in.Hostname, prefix) {
			found = append(found, in.machine())
		}
	}
	if strings.HasSuffix(prefix, "-") {
		if err := c.sweep(ctx, prefix, found); err != nil {
			c.logger.WarnContext(ctx, "start-up scripts were not looked through", "cloud", Name, "err", err)
		}
	}
	return found, nil
}

// machine is an instance in our words. A status that is new to us is one of a
// machine that exists and is not usable yet.
func (in instance) machine() provider.Machine {
	m := provider.Machine{Ref: in.ID, Name: in.Hostname, State: provider.Building, CreatedAt: in.CreatedAt}
	switch in.Status {
	case "running":
		if in.IP != "" {
			m.State, m.Host, m.SSHPort, m.SSHUser = provider.Running, in.IP, 22, "root"
		}
	case "no_capacity": // Verda may notice only after it took the order
		m.State, m.Reason = provider.Failed, "The cloud has no capacity for it."
	case "error", "installation_failed":
		m.State, m.Reason = provider.Failed, "The cloud reported an error."
	case "offline":
		m.State, m.Reason = provider.Failed, "The cloud stopped the machine." // it is charged for all the same
	case "deleting":
		m.State = provider.Terminating
	case "discontinued", "notfound":
		m.State = provider.Gone
	}
	return m
}

// Terminate implements provider.Adapter. The system's volume goes with the
// machine, and then its script.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	id, err := uuid.Parse(ref)
	if err != nil {
		return nil //nolint:nilerr // never one of Verda's
	}
	var in instance
	err = c.do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/instances/" + id.String(), Class: reads}, &in)
	if err != nil {
		if err = verdict(err); err != nil {
			return fmt.Errorf("look at %s: %w", ref, err)
		}
		return nil
	}
	if s := in.machine().State; s != provider.Terminating && s != provider.Gone {
		if err := c.discontinue(ctx, id.String(), in.OSVolumeID); err != nil {
			return fmt.Errorf("delete %s: %w", ref, err)
		}
	}
	if in.StartupScriptID != "" {
		c.dropScript(ctx, in.StartupScriptID)
	}
	return nil
}

// discontinue asks for the end of an instance and its volume. Verda answers for
// each instance, and its 2xx may hold a refusal.
func (c *Cloud) discontinue(ctx context.Context, id, volumeID string) error {
	body := actionRequest{Action: "delete", ID: []string{id}, DeletePermanently: true}
	if volumeID != "" {
		body.VolumeIDs = []string{volumeID}
	}
	var answer cloudapi.Answer
	err := c.do(ctx, cloudapi.Call{Method: http.MethodPut, Path: "/instances", Body: body, Class: ends}, &answer)
	if err != nil {
		return verdict(err)
	}
	var results []actionResult
	if err := json.Unmarshal(answer.Body, &results); err != nil && answer.Status == http.StatusMultiStatus {
		return fmt.Errorf("the answer is not as it should be: %w", err)
	}
	for _, r := range results {
		if r.InstanceID == id {
			return r.verdict()
		}
	}
	if answer.Status == http.StatusMultiStatus {
		return errors.New("the answer says nothing of it")
	}
	return nil
}

// verdict is what became of an instance, as its part of an answer says.
func (r actionResult) verdict() error {
	said := len(r.Error) > 0 && string(r.Error) != "null" && string(r.Error) != `""`
	if r.Status != "error" && r.StatusCode < 300 && !said {
		return nil
	}
	f := &cloudapi.Failure{Cloud: Name, Call: "PUT /instances", Status: r.StatusCode, Body: r.Error}
	if f.Status < 300 {
		f.Status = http.StatusBadRequest
	}
	return verdict(fmt.Errorf("%w%.300s", f, r.Error))
}

// verdict reads why an instance was not deleted: nil = there is none to delete.
func verdict(err error) error {
	var f *cloudapi.Failure
	switch {
	case !errors.As(err, &f):
	case f.Status == http.StatusNotFound,
		f.Status < 500 && f.Says("invalid instance id", "a discontinued instance", "a deleting instance", "not found", "does not exist"):
		return nil
	case f.Status < 500 && f.Says("can't discontinue", "cannot discontinue", "provisioning", "ordered", "validating", "pending",
		"in progress", "cannot be deleted", "can't be deleted", "try again"):
		return provider.ErrNotYet.Because(err)
	}
	return err
}
