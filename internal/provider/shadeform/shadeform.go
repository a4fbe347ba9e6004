// Package shadeform is the adapter of Shadeform, a broker of virtual machines
// at many clouds. It sells those that are whole NVIDIA machines; containers and
// bare metal are left out. Every machine is made with a deadline at which
// Shadeform ends it by itself, moved while its pod lives; see Keep.
package shadeform

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud.
const (
	Name    = "shadeform"
	BaseURL = "https://api.shadeform.ai/v1"
)

// Classes of calls, and what we allow ourselves: Shadeform publishes no limit.
const (
	reads = "read"
	makes = "make"
	ends  = "end"
)

var rates = map[string]cloudapi.Rate{
	reads: {Every: 500 * time.Millisecond, Burst: 10},
	makes: {Every: time.Second, Burst: 4},
	ends:  {Every: 250 * time.Millisecond, Burst: 10},
}

// maxName is shorter than any of the clouds behind takes.
const maxName = 50

// Config of the adapter.
type Config struct {
	Key     string
	BaseURL string // "" = BaseURL
	Limiter cloudapi.Limiter
	Clock   *clock.Clock
	Logger  *slog.Logger
}

// A Cloud is one account at Shadeform.
type Cloud struct {
	api    *cloudapi.Client
	clock  *clock.Clock
	logger *slog.Logger
}

var (
	_ provider.Adapter = (*Cloud)(nil)
	_ provider.Keeper  = (*Cloud)(nil)
)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	api, err := cloudapi.New(cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(h http.Header, key string) { h.Set("X-API-KEY", key) },
	})
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, clock: cfg.Clock, logger: cfg.Logger}, nil
}

// Capabilities implements provider.Adapter.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, AutoDelete: true, BootTimeout: 20 * time.Minute}
}

// refused reads Shadeform's words of a 4xx. Its errors are JSON with a code for
// what is sold out, and plain text else.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("out_of_stock", "out of stock", "no capacity", "insufficient capacity", "not enough capacity", "not available", "unavailable"):
		return provider.ErrNoCapacity
	case f.Says("insufficient funds", "insufficient balance", "insufficient credit", "payment method", "add funds"):
		return provider.ErrFunds
	}
	return f.ByStatus()
}

// Keep implements provider.Keeper.
func (c *Cloud) Keep(ctx context.Context, ref string, until time.Time) error {
	path, ok := instancePath(ref, "update")
	if !ok {
		return fmt.Errorf("keep %q: not an instance of Shadeform", ref)
	}
	body := updateRequest{AutoDelete: endAt(until)}
	if err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: path, Class: ends, Body: body}, nil); err != nil {
		return fmt.Errorf("move the deadline of %s: %w", ref, err)
	}
	return nil
}

// endAt is the deadline in Shadeform's form; nil = none. What a machine may
// cost is not limited: Shadeform's own estimate must not end a pod that is paid.
func endAt(until time.Time) *autoDelete {
	if until.IsZero() {
		return nil
	}
	return &autoDelete{DateThreshold: until.UTC().Format(time.RFC3339)}
}
