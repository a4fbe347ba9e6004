package vast

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// createRequest is the body of PUT /v0/asks/{id}/.
type createRequest struct {
	Image         string            `json:"image"`
	Label         string            `json:"label"`
	Disk          int               `json:"disk"`    // GB
	Env           map[string]string `json:"env"`     // ports, too
	RunType       string            `json:"runtype"` // args: nothing of Vast's runs in it
	OnStart       string            `json:"onstart"` // then this is the entry point
	Args          []string          `json:"args"`
	TargetState   string            `json:"target_state"`
	CancelUnavail bool              `json:"cancel_unavail"` // else it waits, stopped, and its disk costs
}

// instance is what Vast says of one. What is null there reads as empty.
type instance struct {
	ID             int64   `json:"id"`
	Label          string  `json:"label"`
	ActualStatus   string  `json:"actual_status"`
	CurState       string  `json:"cur_state"`
	NextState      string  `json:"next_state"`
	IntendedStatus string  `json:"intended_status"`
	StatusMsg      string  `json:"status_msg"`
	PublicIP       string  `json:"public_ipaddr"`
	StartDate      float64 `json:"start_date"` // seconds of the epoch
	Ports          map[string][]struct {
		HostPort string `json:"HostPort"`
	} `json:"ports"`
}

// Launch implements provider.Adapter. An ask's price does not move: one that
// costs more is another ask, and is not taken.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	if len(l.Name) > maxName {
		return provider.Machine{}, provider.ErrRefused.Because(fmt.Errorf("machine name %q", l.Name))
	}
	command, err := bootstrap.Args(l.Bootstrap)
	if err != nil {
		return provider.Machine{}, provider.ErrUnsupported.Because(err)
	}
	ask, err := c.resolve(ctx, l)
	if err != nil {
		return provider.Machine{}, provider.NotMade(err)
	}
	script := base64.StdEncoding.EncodeToString([]byte(command[2]))
	body := createRequest{
		Image: l.Offer.Image, Label: l.Name, Disk: diskGB, Env: map[string]string{"-p 22:22": "1"}, RunType: "args",
		OnStart: command[0], Args: []string{command[1], `eval "$(echo ` + script + ` | base64 -d)"`}, // one line: who knows who reads it
		TargetState: "running", CancelUnavail: true,
	}
	var made created
	err = c.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPut, Path: "/v0/asks/" + strconv.FormatInt(ask, 10) + "/", Body: body, Class: makes, Makes: true,
		Hide: []string{script, l.Bootstrap.Token},
	}, &made)
	var f *cloudapi.Failure
	if errors.As(err, &f) {
		_ = json.Unmarshal(f.Body, &made) // a refusal may name an instance all the same
	}
	if err == nil && !made.Success {
		err = errors.New("the answer says that it did not succeed")
	}
	switch {
	case err != nil && made.Contract > 0:
		return provider.Machine{}, c.abandon(ctx, l.Name, made.ref(), err)
	case err != nil:
		return provider.Machine{}, fmt.Errorf("create %s: %w", l.Name, err)
	case made.Contract < 1:
		return provider.Machine{}, fmt.Errorf("create %s: the answer names no instance", l.Name)
	}
	return provider.Machine{Ref: made.ref(), Name: l.Name, State: provider.Building, CreatedAt: c.clock.Wall()}, nil
}

// created is the answer to a createRequest.
type created struct {
	Success  bool  `json:"success"`
	Contract int64 `json:"new_contract"`
}

func (m created) ref() string { return strconv.FormatInt(m.Contract, 10) }

// abandon ends an instance that a refusal names: it stands still, and its disk
// costs. Whether it is gone its name tells, so that the error says nothing.
func (c *Cloud) abandon(ctx context.Context, name, ref string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return fmt.Errorf("create %s: the refusal names instance %s: %v, its end: %v", name, ref, why, c.Terminate(ctx, ref)) //nolint:errorlint // a fault in the chain would say that there is no machine
}

// resolve finds the ask to take, by its id: the cheapest of the machine's, of
// those that are what was offered.
func (c *Cloud) resolve(ctx context.Context, l provider.Launch) (int64, error) {
	machine, err := strconv.ParseInt(l.Offer.CloudID, 10, 64)
	if err != nil {
		return 0, provider.ErrNoCapacity.Because(fmt.Errorf("no machine of Vast's is called %q", l.Offer.CloudID))
	}
	asks, err := c.search(ctx, map[string]any{"machine_id": map[string]any{"eq": machine}, "num_gpus": map[string]any{"in": []int{l.Offer.GPUCount}}})
	if err != nil {
		return 0, err
	}
	var best int64
	var asked money.Rate
	for _, a := range asks {
		o, ok := a.offer()
		if ok && keyOf(o) == keyOf(l.Offer) && o.Country == l.Offer.Country && o.Security == l.Offer.Security && (best == 0 || o.UpstreamPrice < asked) {
			best, asked = a.ID, o.UpstreamPrice
		}
	}
	switch {
	case best == 0:
		return 0, provider.ErrNoCapacity.Because(fmt.Errorf("machine %d does not let %d of %s any more", machine, l.Offer.GPUCount, l.Offer.GPUType))
	case asked > l.MaxPrice:
		return 0, provider.ErrPriceMoved.Because(fmt.Errorf("asks %s, may cost %s", asked.Decimal(), l.MaxPrice.Decimal()))
	}
	return best, nil
}

// mostPages bounds a list: with 25 instances each there are never as many.
const mostPages = 400

// Find implements provider.Adapter. Labels are compared here: how Vast orders
// texts is not said.
func (c *Cloud) Find(ctx context.Context, prefix string) ([]provider.Machine, error) {
	var list []provider.Machine
	query := url.Values{"limit": {"25"}, "order_by": {`[{"col":"id","dir":"asc"}]`}}
	for range mostPages {
		var page struct {
			Instances *[]instance `json:"instances"`
			Next      string      `json:"next_token"`
		}
		err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/v1/instances/", Query: query, Class: lists}, &page)
		if err == nil && page.Instances == nil {
			err = errors.New("the answer has no list") // {} must not read as: all are gone
		}
		if err != nil {
			return nil, fmt.Errorf("list the instances: %w", err)
		}
		for _, in := range *page.Instances {
			if strings.HasPrefix(in.Label, prefix) {
				list = append(list, in.machine())
			}
		}
		if page.Next == "" {
			return list, nil
		}
		query.Set("after_token", page.Next)
	}
	return nil, errors.New("list the instances: there is no last page")
}

// machine is an instance in our words. A status that is new to us is one of a
// machine that exists and is not usable yet. Those that have failed cost on.
func (in instance) machine() provider.Machine {
	m := provider.Machine{Ref: strconv.FormatInt(in.ID, 10), Name: in.Label, State: provider.Building}
	if in.StartDate > 0 {
		m.CreatedAt = time.UnixMicro(int64(math.Round(in.StartDate * 1e6))).UTC()
	}
	switch in.ActualStatus {
	case "running":
		if host, port := in.address(); host != "" && port > 0 {
			m.State, m.Host, m.SSHPort = provider.Running, host, port
		}
	case "exited":
		m.State, m.Reason = provider.Failed, "The container ended."
	case "stopped", "frozen":
		m.State, m.Reason = provider.Failed, "The host stopped the container."
	case "offline", "unknown":
		m.State, m.Reason = provider.Failed, "The host is offline."
	case "created":
		if strings.Contains(in.StatusMsg, "OCI runtime create failed") {
			m.State, m.Reason = provider.Failed, "The host could not start the container." // its own words repeat the command
		}
	}
	if m.State == provider.Building && in.CurState == "stopped" && in.NextState == "stopped" && in.IntendedStatus == "stopped" {
		m.State, m.Reason = provider.Failed, "The host never started the container."
	}
	return m
}

// address is where port 22 of the container is published; "" and 0 = nowhere yet.
func (in instance) address() (string, int) {
	published := in.Ports["22/tcp"]
	if len(published) == 0 {
		return "", 0
	}
	port, err := strconv.ParseUint(published[0].HostPort, 10, 16)
	if err != nil {
		return "", 0
	}
	return strings.TrimSpace(in.PublicIP), int(port)
}

// Terminate implements provider.Adapter.
func (c *Cloud) Terminate(ctx context.Context, ref string) error {
	if !refForm.MatchString(ref) {
		return nil // never one of Vast's
	}
	var answer struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodDelete, Path: "/v0/instances/" + ref + "/", Class: ends}, &answer)
	var f *cloudapi.Failure
	switch {
	case err == nil && (answer.Success || answer.Error == "no_such_instance"):
		return nil
	case err == nil:
		err = fmt.Errorf("the answer says that it did not succeed: %.100q", answer.Error)
	case !errors.As(err, &f):
	case f.Says("user key", "unauthorized"): // said with a 404, too
	case f.Status == http.StatusNotFound, f.Status < 500 && f.Says("no_such_instance", "instance not found", "already destroyed"):
		return nil
	case f.Status < 500 && f.Status != http.StatusTooManyRequests && f.Says("still being created", "is loading", "in progress", "try again"):
		return provider.ErrNotYet.Because(err)
	}
	return fmt.Errorf("destroy %s: %w", ref, err)
}

// refForm is a reference that may be one of Vast's.
var refForm = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
