// Package vast is the adapter of Vast.ai, a market on which many hosts rent out
// their machines. What is sold are containers on verified hosts, on demand; bids
// for interruptible ones are left out. An offer of Vast's (an ask) has an id that
// lasts for minutes: ours are named by the host's machine, and a launch looks for
// the ask that this machine has then, at a price no higher. The agent comes as
// the container's command and is its only process.
package vast

import (
	"log/slog"
	"net/http"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud, of which two versions are in
// use.
const (
	Name    = "vast"
	BaseURL = "https://console.vast.ai/api"
)

// Classes of calls: Vast counts each by itself.
const (
	searches = "search"
	makes    = "make"
	lists    = "list"
	ends     = "end"
)

// rates are the least times between two calls that Vast's refusals name, and of
// searches ten a minute. Every launch begins with a search, so that launches
// hardly ever wait for each other after it.
var rates = map[string]cloudapi.Rate{
	searches: {Every: 6 * time.Second, Burst: 1},
	makes:    {Every: 4500 * time.Millisecond, Burst: 1},
	lists:    {Every: time.Second, Burst: 1},
	ends:     {Every: 3 * time.Second, Burst: 1},
}

// maxName is shorter than Vast's labels may be.
const maxName = 60

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

// A Cloud is one account at Vast.
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

// refused reads Vast's words of a 4xx. An ask that somebody else took is a 404
// or a 410, and its code is not the same each time.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("lacks credit", "lacks_credit", "no_credit", "insufficient credit", "insufficient balance", "insufficient funds"):
		return provider.ErrFunds
	case f.Status == http.StatusGone, f.Says("no_such_ask", "is not available", "no longer available", "already rented"):
		return provider.ErrNoCapacity
	}
	return f.ByStatus()
}
