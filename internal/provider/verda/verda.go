// Package verda is the adapter of Verda, formerly DataCrunch, a cloud of virtual
// machines in Europe. It sells those on demand; spot machines are left out. A
// machine's start-up script is a resource of its own there: it is made for each
// machine, and deleted with it. No SSH key is left at Verda.
package verda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// Name of the adapter, and BaseURL of the cloud.
const (
	Name    = "verda"
	BaseURL = "https://api.verda.com/v1"
)

// Classes of calls, and what we allow ourselves: Verda publishes no limit.
const (
	reads  = "read"
	makes  = "make"
	ends   = "end"
	logins = "login"
)

var rates = map[string]cloudapi.Rate{
	reads:  {Every: 500 * time.Millisecond, Burst: 16}, // the catalogue is four lists
	makes:  {Every: 500 * time.Millisecond, Burst: 8},  // a script and a machine
	ends:   {Every: 250 * time.Millisecond, Burst: 10},
	logins: {Every: time.Second, Burst: 4},
}

// maxName is shorter than a host name may be.
const maxName = 50

// Config of the adapter.
type Config struct {
	Key     string // client_id:client_secret
	BaseURL string // "" = BaseURL
	Limiter cloudapi.Limiter
	Clock   *clock.Clock
	Logger  *slog.Logger
}

// A Cloud is one account at Verda.
type Cloud struct {
	api    *cloudapi.Client
	tokens *tokens
	clock  *clock.Clock
	logger *slog.Logger
}

var _ provider.Adapter = (*Cloud)(nil)

// CheckKey says what is wrong with the form of a key.
func CheckKey(key string) error {
	if id, secret, ok := strings.Cut(key, ":"); !ok || id == "" || secret == "" {
		return errors.New("it is not of the form client_id:client_secret")
	}
	return nil
}

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	if err := CheckKey(cfg.Key); err != nil {
		return nil, fmt.Errorf("%s: the key: %w", Name, err)
	}
	calls := cloudapi.Config{
		Name: Name, BaseURL: cfg.BaseURL, Key: cfg.Key, Rates: rates, Refused: refused, Limiter: cfg.Limiter, Logger: cfg.Logger,
		Authorize: func(http.Header, string) {},
	}
	login, err := cloudapi.New(calls)
	if err != nil {
		return nil, err
	}
	held := newTokens(login, cfg.Clock, cfg.Key)
	calls.Authorize = func(h http.Header, _ string) { h.Set("Authorization", "Bearer "+held.latest()) }
	api, err := cloudapi.New(calls)
	if err != nil {
		return nil, err
	}
	return &Cloud{api: api, tokens: held, clock: cfg.Clock, logger: cfg.Logger}, nil
}

// Capabilities implements provider.Adapter.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{ChoosesPort: true, MaxName: maxName, BootTimeout: 20 * time.Minute}
}

// do makes a call in the account's name. Without a token nothing was sent. One
// that is refused is not shown again; the call is for its caller to repeat.
func (c *Cloud) do(ctx context.Context, call cloudapi.Call, out any) error {
	token, err := c.tokens.get(ctx)
	if err != nil {
		return provider.NotMade(fmt.Errorf("log in: %w", err))
	}
	call.Hide = append(call.Hide, token)
	err = c.api.Do(ctx, call, out)
	if unauthorized(err) {
		c.tokens.forget(token)
	}
	return err
}

func unauthorized(err error) bool {
	var f *cloudapi.Failure
	return errors.As(err, &f) && f.Status == http.StatusUnauthorized
}

// refused reads Verda's words of a 4xx: a code, and a message for people.
func refused(f *cloudapi.Failure) error {
	switch {
	case f.Says("insufficient_funds", "insufficient funds", "insufficient balance", "not enough funds", "add funds"):
		return provider.ErrFunds
	case f.Says("not enough resources", "no capacity", "no_capacity", "out of stock", "sold out", "not available", "unavailable"):
		return provider.ErrNoCapacity
	}
	return f.ByStatus()
}
