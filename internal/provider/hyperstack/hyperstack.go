// Package hyperstack is the adapter of Hyperstack, a cloud of virtual machines of
// NexGen Cloud. It sells those on demand; spot machines are left out. The agent
// comes as cloud-init's user data. A machine stands in an environment of its
// region, with an SSH key that lies there: both are made once for each region,
// and the key is the account's bootstrap key, which opens nothing once the agent
// is there. Hyperstack knows no deadline and no highest price: the price is read
// again just before a launch.
package hyperstack

import (
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
	Name    = "hyperstack"
	BaseURL = "https://infrahub-api.nexgencloud.com/v1"
)

// rates keep well below 500 calls a minute, which Hyperstack counts by the
// address that they come from: others may be behind it.
var rates = map[string]cloudapi.Rate{"": {Every: 250 * time.Millisecond, Burst: 40}}

// maxName is the longest name of a machine.
const maxName = 50

// Config of the adapter.
type Config struct {
	Key       string
	BaseURL   string // "" = BaseURL
	PublicKey string // the account's bootstrap key, a line for authorized_keys
	Limiter   cloudapi.Limiter
	Clock     *clock.Clock
	Logger    *slog.Logger
}

// A Cloud is one account at Hyperstack.
type Cloud struct {
	api       *cloudapi.Client
	clock     *clock.Clock
	publicKey string

	mu     sync.Mutex
	places map[string]where // by region, as far as they are known
}

var _ provider.Adapter = (*Cloud)(nil)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	if len(strings.Fields(cfg.PublicKey)) < 2 {
		return nil, fmt.Errorf("hyperstack: %q is not the line of a public key", cfg.PublicKey)
	}
	api, err := cloudapi.New(cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(h http.Header, key string) { h.Set("api_key", key) },
	})
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, clock: cfg.Clock, publicKey: cfg.PublicKey, places: map[string]where{}}, nil
}

// Capabilities implements provider.Adapter.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, BootTimeout: 20 * time.Minute}
}

// refused reads Hyperstack's words of a 4xx, of which its error_reason tells
// little. A quota has room again when another machine of ours ends.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("insufficient credit", "insufficient balance", "insufficient funds", "enough credit", "sufficient credit", "enough balance", "add credit", "top up"):
		return provider.ErrFunds
	case f.Status == http.StatusConflict:
		return nil // something of this name may be there
	case f.Says("enough stock", "out of stock", "no stock", "insufficient capacity", "no capacity", "quota", "no valid host"):
		return provider.ErrNoCapacity
	}
	return f.ByStatus()
}
