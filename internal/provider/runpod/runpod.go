// Package runpod is the adapter of Runpod's REST API v2. Its machines are
// containers on Runpod's own hardware; community hosts are left out, since a
// public SSH port is not certain there. The agent comes as the container's
// command and is its only process. Runpod knows no deadline and no highest
// price: the price is read again just before a launch.
package runpod

import (
	"log/slog"
	"net/http"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud.
const (
	Name    = "runpod"
	BaseURL = "https://api.runpod.io/v2"
)

// rates keep to 60 calls a minute, 3,000 an hour and 50,000 a day, which Runpod
// counts over all calls of an account: they are one class.
var rates = map[string]cloudapi.Rate{"": {Every: 1750 * time.Millisecond, Burst: 25}}

// maxName is shorter than Runpod takes.
const maxName = 50

// notice is what users of containers must know.
const notice = "This pod is a container: Docker, FUSE and kernel modules do not work in it."

// Config of the adapter.
type Config struct {
	Key     string
	BaseURL string // "" = BaseURL
	Limiter cloudapi.Limiter
	Clock   *clock.Clock
	Logger  *slog.Logger
}

// A Cloud is one account at Runpod.
type Cloud struct {
	api   *cloudapi.Client
	clock *clock.Clock
}

var _ provider.Adapter = (*Cloud)(nil)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	api, err := cloudapi.New(cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
	})
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, clock: cfg.Clock}, nil
}

// Capabilities implements provider.Adapter.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, BootTimeout: 20 * time.Minute, Notice: notice}
}

// refused reads Runpod's words of a 4xx. A 400 is a broken rule or a lack of
// capacity, which only its text tells apart.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("insufficient balance", "insufficient funds", "insufficient credit", "balance is too low", "spend limit", "spending limit"):
		return provider.ErrFunds
	case f.Says("no longer any instances", "no instances", "not enough free", "capacity", "could not be placed", "out of stock", "not available", "unavailable"):
		return provider.ErrNoCapacity
	}
	return f.ByStatus()
}
