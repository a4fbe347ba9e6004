package app

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/agentedge"
	"homeport.dev/homeport/internal/payment/stripe"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/hyperstack"
	"homeport.dev/homeport/internal/provider/lambda"
	"homeport.dev/homeport/internal/provider/prime"
	"homeport.dev/homeport/internal/provider/ratelimit"
	"homeport.dev/homeport/internal/provider/runpod"
	"homeport.dev/homeport/internal/provider/shadeform"
	"homeport.dev/homeport/internal/provider/vast"
	"homeport.dev/homeport/internal/provider/verda"
)

// A cloud is one real cloud that this program can rent from. Its key alone
// switches it on.
type cloud struct {
	name string // of the adapter; its settings are NAME_API_KEY and NAME_BASE_URL
	key  func(c *Config) string
	base func(c *Config) string
	make func(a *App, limits cloudapi.Limiter) (provider.Adapter, error)
}

// clouds are all of them, in the order of their names.
var clouds = []cloud{
	{
		hyperstack.Name,
		func(c *Config) string { return c.HyperstackKey },
		func(c *Config) string { return c.HyperstackURL },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return hyperstack.New(hyperstack.Config{
				Key: a.config.HyperstackKey, BaseURL: a.config.HyperstackURL, PublicKey: a.pusher(hyperstack.Name).PublicKey(),
				Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		lambda.Name,
		func(c *Config) string { return c.LambdaKey },
		func(c *Config) string { return c.LambdaBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return lambda.New(lambda.Config{
				Key: a.config.LambdaKey, BaseURL: a.config.LambdaBase, PublicKey: a.pusher(lambda.Name).PublicKey(),
				Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		prime.Name,
		func(c *Config) string { return c.PrimeKey },
		func(c *Config) string { return c.PrimeBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return prime.New(prime.Config{
				Key: a.config.PrimeKey, BaseURL: a.config.PrimeBase, Pusher: a.pusher(prime.Name), Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		runpod.Name,
		func(c *Config) string { return c.RunpodKey },
		func(c *Config) string { return c.RunpodBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return runpod.New(runpod.Config{
				Key: a.config.RunpodKey, BaseURL: a.config.RunpodBase, Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		shadeform.Name,
		func(c *Config) string { return c.ShadeformKey },
		func(c *Config) string { return c.ShadeformBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return shadeform.New(shadeform.Config{
				Key: a.config.ShadeformKey, BaseURL: a.config.ShadeformBase, Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		vast.Name,
		func(c *Config) string { return c.VastKey },
		func(c *Config) string { return c.VastBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return vast.New(vast.Config{
				Key: a.config.VastKey, BaseURL: a.config.VastBase, Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
	{
		verda.Name,
		func(c *Config) string { return c.VerdaKey },
		func(c *Config) string { return c.VerdaBase },
		func(a *App, limits cloudapi.Limiter) (provider.Adapter, error) {
			return verda.New(verda.Config{
				Key: a.config.VerdaKey, BaseURL: a.config.VerdaBase, Limiter: limits, Clock: a.clock, Logger: a.logger,
			})
		},
	},
}

// pusher brings agents to the machines of a cloud that takes no script, by a key
// that is the same on all nodes, and another for each cloud. It follows the
// master keys; machines that were made before a rotation are let in to as well.
func (a *App) pusher(cloud string) bootstrap.Pusher {
	return bootstrap.Pusher{Keys: func() []ssh.Signer { return bootstrapKeys(a.ring.Derived("bootstrap key at " + cloud)) }}
}

func bootstrapKeys(seeds [][]byte) []ssh.Signer {
	keys := make([]ssh.Signer, len(seeds))
	for i, seed := range seeds {
		key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
		if err != nil {
			panic(err) // it knows keys of this kind
		}
		keys[i] = key
	}
	return keys
}

// realOffersEvery is how often a real cloud's list is asked for.
const realOffersEvery = time.Minute

// offersEvery is how often each real cloud is asked; the sandbox clouds are
// asked whenever there is a look.
func (a *App) offersEvery() map[string]time.Duration {
	every := map[string]time.Duration{}
	for _, name := range a.config.clouds() {
		every[name] = realOffersEvery
	}
	for _, host := range a.docker {
		every[host.Name()] = realOffersEvery
	}
	return every
}

// clouds are the names of the real clouds that are switched on; own machines
// are one among them.
func (c *Config) clouds() []string {
	var on []string
	for _, one := range clouds {
		if one.key(c) != "" {
			on = append(on, one.name)
		}
	}
	if c.DockerHosts != "" {
		on = append(on, "docker")
		slices.Sort(on)
	}
	return on
}

// sandboxSells reports whether sandbox pods are for rent: by default where no
// real cloud is. Those that run go on and are ended either way.
func (c *Config) sandboxSells() bool {
	return c.Sandbox == "on" || c.Sandbox == "auto" && len(c.clouds()) == 0
}

// adapters makes the adapters of the real clouds, by name.
func (a *App) adapters() (map[string]provider.Adapter, error) {
	made := map[string]provider.Adapter{}
	limits := ratelimit.New(a.pool, a.clock)
	for _, one := range clouds {
		if one.key(&a.config) == "" {
			continue
		}
		adapter, err := one.make(a, limits)
		if err != nil {
			return nil, err
		}
		made[one.name] = adapter
	}
	if a.config.DockerHosts == "" {
		return made, nil
	}
	hosts, err := docker.Read(a.config.DockerHosts)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		one, err := docker.New(docker.Config{Host: host, Clock: a.clock, Logger: a.logger})
		if err != nil {
			return nil, err
		}
		made[one.Name()] = one
		a.docker = append(a.docker, one)
	}
	return made, nil
}

// dockerLoops fetch the images of own machines. Each host has a loop of its own:
// a pull may take long.
func (a *App) dockerLoops() []loop {
	var all []loop
	for _, host := range a.docker {
		all = append(all, loop{name: host.Name(), every: time.Minute, run: host.Prepare})
	}
	return all
}

// checkDocker holds what own machines need. GPUs that are not there are for this
// machine's people only, where all money is test money.
func (c *Config) checkDocker() error {
	if c.DockerHosts == "" {
		return nil
	}
	hosts, err := docker.Read(c.DockerHosts)
	errs := []error{err}
	for _, h := range hosts {
		if h.Simulates() && !c.publicLoopback() {
			errs = append(errs, fmt.Errorf("host %q: simulated GPUs must not be paid for: %s is not this machine", h.Name, c.PublicURL))
		}
		if !h.Simulates() && c.StripeKey != "" && !stripe.IsLive(c.StripeKey) && c.StripeTest != "yes" {
			errs = append(errs, fmt.Errorf("host %q: a test key's money must not pay for it: use a live key, or set %sSTRIPE_TEST_RENTS=yes", h.Name, prefix))
		}
		if h.AgentURL == "" && c.publicLoopback() {
			errs = append(errs, fmt.Errorf("host %q: its pods cannot reach %s: set agent_url, or %sPUBLIC_URL", h.Name, c.PublicURL, prefix))
		}
	}
	return errors.Join(errs...)
}

// checkClouds holds what a real cloud needs before it is paid.
func (c *Config) checkClouds() (errs []error) {
	bad := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s%s: %s", prefix, name, fmt.Sprintf(format, args...)))
	}
	for _, one := range clouds {
		base, setting := one.base(c), upper(one.name)
		real := true
		if base != "" {
			u, err := url.Parse(base)
			switch {
			case one.key(c) == "":
				bad(setting+"_BASE_URL", "it is for %s, and %s%s_API_KEY is not set", one.name, prefix, setting)
			case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" || u.User != nil:
				bad(setting+"_BASE_URL", "%q is not the address of an API", base)
			case u.Scheme == "http" && !loopback(u.Hostname()):
				bad(setting+"_BASE_URL", "the key would be sent in clear: use https")
			}
			real = err != nil || !loopback(u.Hostname())
		}
		if one.key(c) != "" && real && c.StripeKey != "" && !stripe.IsLive(c.StripeKey) && c.StripeTest != "yes" {
			bad("STRIPE_SECRET_KEY", "a test key's money must not pay for machines at %s: use a live key, or set %sSTRIPE_TEST_RENTS=yes", one.name, prefix)
		}
		// That also keeps the test checkout's money away from real machines: it
		// exists only where the public address is this machine.
		if one.key(c) != "" && real && c.publicLoopback() {
			bad(setting+"_API_KEY", "machines at %s cannot reach %s, and test money must not pay for them: set %sPUBLIC_URL", one.name, c.PublicURL, prefix)
		}
	}
	if c.VerdaKey != "" {
		if err := verda.CheckKey(c.VerdaKey); err != nil {
			bad("VERDA_API_KEY", "%v", err)
		}
	}
	if err := c.checkDocker(); err != nil {
		bad("DOCKER_HOSTS", "%v", err)
	}
	if c.Sandbox == "off" && len(c.clouds()) == 0 {
		bad("SANDBOX", "without the sandbox clouds and without a key of another there is nothing to rent")
	}
	return errs
}

// installer serves the agent to the machines of real clouds.
func (a *App) installer() (http.Handler, error) {
	dir := a.config.AgentDir
	if dir == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the pod agents: %w", err)
		}
		dir = filepath.Dir(exe)
	}
	agents, err := agentedge.FindAgents(func(arch string) string {
		path := filepath.Join(dir, "homeport-agent-linux-"+arch)
		if _, err := os.Stat(path); err != nil && runtime.GOOS == "linux" && runtime.GOARCH == arch {
			return filepath.Join(dir, "homeport-agent")
		}
		return path
	})
	if err != nil {
		return nil, err
	}
	for _, arch := range agentedge.Arches {
		if _, ok := agents[arch]; !ok {
			return nil, fmt.Errorf("real clouds need the pod agent for linux/%s in %s: run make agents, or set %sAGENT_DIR", arch, dir, prefix)
		}
	}
	return agentedge.Install(a.config.PublicURL, agents)
}
