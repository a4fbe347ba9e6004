// Package prime is the adapter of Prime Intellect, a broker of machines at many
// clouds. It sells those that start with a plain Ubuntu and are paid by the
// hour. Prime takes no start-up script: it puts the account's one bootstrap key
// on every machine, and Push brings the agent there by SSH.
package prime

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud.
const (
	Name    = "prime"
	BaseURL = "https://api.primeintellect.ai/api/v1"
)

// Classes of calls, and what we allow ourselves: Prime publishes no limit, and
// answers 429 all the same.
const (
	reads = "read"
	makes = "make"
	ends  = "end"
)

var rates = map[string]cloudapi.Rate{
	reads: {Every: 500 * time.Millisecond, Burst: 16}, // the catalogue has seven pages
	makes: {Every: time.Second, Burst: 4},
	ends:  {Every: 500 * time.Millisecond, Burst: 10},
}

// maxName is shorter than any of the clouds behind takes.
const maxName = 50

// Config of the adapter.
type Config struct {
	Key     string
	BaseURL string           // "" = BaseURL
	Pusher  bootstrap.Pusher // with the account's bootstrap key
	Limiter cloudapi.Limiter
	Clock   *clock.Clock
	Logger  *slog.Logger
}

// A Cloud is one account at Prime Intellect.
type Cloud struct {
	api    *cloudapi.Client
	pusher bootstrap.Pusher
	clock  *clock.Clock

	mu    sync.Mutex
	keyID string // what Prime calls our bootstrap key; "" = not asked yet
	keyOf string // that key
}

var (
	_ provider.Adapter = (*Cloud)(nil)
	_ provider.Pusher  = (*Cloud)(nil)
)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	if cfg.Pusher.Key == nil && cfg.Pusher.Keys == nil {
		return nil, errors.New("prime: there is no bootstrap key")
	}
	api, err := cloudapi.New(cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
	})
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, pusher: cfg.Pusher, clock: cfg.Clock}, nil
}

// Capabilities implements provider.Adapter.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, Push: true, BootTimeout: 20 * time.Minute}
}

// Push implements provider.Pusher.
func (c *Cloud) Push(ctx context.Context, m provider.Machine, b provider.Bootstrap) error {
	return c.pusher.Push(ctx, m, b)
}

// refused reads Prime's words of a 4xx, which are free text of the cloud behind.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("maxprice", "max_price", "max price", "maximum price", "price has changed", "price changed", "price exceeds"):
		return provider.ErrPriceMoved
	case f.Says("insufficient funds", "insufficient balance", "insufficient credit", "not enough funds", "payment method", "add funds"):
		return provider.ErrFunds
	case f.Says("capacity", "out of stock", "sold out", "not available", "unavailable", "no longer available", "not enough resources"):
		return provider.ErrNoCapacity
	}
	return f.ByStatus()
}
