// Package lambda is the adapter of Lambda Cloud, whose machines are virtual ones
// of its own, most x86 and some ARM. It sells those with NVIDIA GPUs. The agent
// comes as cloud-init's user data. Lambda knows no deadline and no highest
// price: the price is read again just before a launch. It wants one SSH key on
// every machine, which is the account's bootstrap key and opens nothing once
// the agent is there.
package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud.
const (
	Name    = "lambda"
	BaseURL = "https://cloud.lambda.ai/api/v1"
)

// Classes of calls: every call is one of calls, and a launch takes a turn of
// launches before.
const (
	calls    = "call"
	launches = "launch"
)

// rates are what Lambda publishes: one request a second, one launch in 12.
var rates = map[string]cloudapi.Rate{
	calls:    {Every: time.Second, Burst: 1},
	launches: {Every: 12 * time.Second, Burst: 1},
}

// launchPatience is how long a launch waits for its turn, at most. Its caller
// gives it a minute, of which the calls themselves need the rest: one that is
// cut short may have made a machine.
const launchPatience = 30 * time.Second

// maxName is the longest name of a machine.
const maxName = 64

// Config of the adapter.
type Config struct {
	Key       string
	BaseURL   string // "" = BaseURL
	PublicKey string // the account's bootstrap key, a line for authorized_keys
	Limiter   cloudapi.Limiter
	Clock     *clock.Clock
	Logger    *slog.Logger
}

// A Cloud is one account at Lambda.
type Cloud struct {
	api       *cloudapi.Client
	limiter   cloudapi.Limiter
	clock     *clock.Clock
	publicKey string

	mu      sync.Mutex
	keyName string // what Lambda calls our bootstrap key; "" = not asked yet
}

var _ provider.Adapter = (*Cloud)(nil)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	if len(strings.Fields(cfg.PublicKey)) < 2 {
		return nil, fmt.Errorf("lambda: %q is not the line of a public key", cfg.PublicKey)
	}
	api, err := cloudapi.New(cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
	})
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, limiter: cfg.Limiter, clock: cfg.Clock, publicKey: cfg.PublicKey}, nil
}

// Capabilities implements provider.Adapter. Lambda's machines boot slowly.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, BootTimeout: 30 * time.Minute}
}

// turn waits for the turn of a launch. Nothing was asked for yet: every error
// says so.
func (c *Cloud) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, launchPatience)
	defer cancel()
	return provider.NotMade(c.limiter.Wait(ctx, cloudapi.Bucket{Account: c.api.Account(), Class: launches}, rates[launches]))
}

// refused reads Lambda's codes of a 4xx; its messages are said to change.
func refused(f *cloudapi.Failure) error {
	switch code := codeOf(f); {
	case code == "instance-operations/launch/insufficient-capacity":
		return provider.ErrNoCapacity
	case code == "global/quota-exceeded":
		return provider.ErrNoCapacity // there is room again when another machine of ours ends
	case code == "global/account-inactive", code == "global/invalid-address":
		return provider.ErrFunds // both are about how we pay
	case strings.HasPrefix(code, "provider/"):
		return nil // said by whoever is behind Lambda: what Lambda did is not certain
	}
	return f.ByStatus()
}

// codeOf is the code of an error of Lambda's; "" = it has none.
func codeOf(f *cloudapi.Failure) string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(f.Body, &body) != nil {
		return ""
	}
	return body.Error.Code
}
