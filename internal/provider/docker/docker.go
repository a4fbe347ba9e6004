// Package docker is the adapter of people's own GPU machines, through their
// Docker engines: each host is one cloud, whose machines are containers. What
// is for sale is what the host has, less what containers of ours hold; the
// labels of the containers are the only record of that, so that nodes and
// installations that share a host agree. Prices come by configuration.
//
// A container's name is the launch's name. The engine makes no second one of
// the same name, so a launch is never made twice.
package docker

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
)

// Labels of a container of ours.
const (
	labelMachine = "dev.homeport.machine" // the launch's name
	labelGPUs    = "dev.homeport.gpus"    // the ids of the GPUs that it holds, by commas
	labelAsked   = "dev.homeport.asked"   // when it was asked for, by our clock: Unix seconds
	labelProbe   = "dev.homeport.probe"   // it looks at the GPUs, and is removed soon
)

// maxName is the longest name that a host of a network may have.
const maxName = 63

// What users of the pods must know.
const (
	notice    = "This pod is a container: Docker, FUSE and kernel modules do not work in it."
	simulated = " Its GPUs are simulated, nvidia-smi is absent."
)

// Config of one host's adapter.
type Config struct {
	Host   Host // as Read gives it
	Clock  *clock.Clock
	Logger *slog.Logger
}

// A Cloud is one host.
type Cloud struct {
	host   Host
	engine *engine
	clock  *clock.Clock
	logger *slog.Logger
	prices map[string]money.Rate // of one GPU, by type

	turn chan struct{} // held while GPUs are chosen; nodes beside this one are seen by their labels

	mu   sync.Mutex
	gpus []device  // the newest that a look found
	seen time.Time // when it was
}

var _ provider.Adapter = (*Cloud)(nil)

// New returns the adapter. It calls nobody.
func New(cfg Config) (*Cloud, error) {
	e, err := newEngine(cfg.Host)
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		host: cfg.Host, engine: e, clock: cfg.Clock, logger: cfg.Logger,
		prices: map[string]money.Rate{}, turn: make(chan struct{}, 1),
	}
	for token, text := range cfg.Host.Prices {
		p, err := money.ParseUp(text)
		if err != nil {
			return nil, err
		}
		c.prices[token] = money.Rate(p)
	}
	return c, nil
}

// Name is the adapter's: what instances and catalogue know the host by.
func (c *Cloud) Name() string { return "docker-" + c.host.Name }

// Capabilities implements provider.Adapter. A published port is ours to choose,
// since one that the engine chose is another after each restart of the host.
func (c *Cloud) Capabilities() provider.Capabilities {
	about := notice
	if c.host.Simulates() {
		about += simulated
	}
	return provider.Capabilities{
		MaxName: maxName, BootTimeout: 10 * time.Minute, AppearsIn: time.Minute, NoGPUs: c.host.Simulates(), Notice: about,
	}
}

var refForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// neverStarted is how old a container is that was made and not started: the
// call that should have done so is over.
const neverStarted = 2 * time.Minute

// machine is a container of ours in the contract's words.
func (c *Cloud) machine(s container.Summary) provider.Machine {
	m := provider.Machine{Ref: s.ID, Name: s.Labels[labelMachine], State: provider.Building, CreatedAt: time.Unix(s.Created, 0).UTC()}
	if asked, err := strconv.ParseInt(s.Labels[labelAsked], 10, 64); err == nil {
		m.CreatedAt = time.Unix(asked, 0).UTC()
	}
	switch s.State {
	case container.StateRunning:
		if port := publicPort(s); port != 0 {
			m.State, m.Host, m.SSHPort = provider.Running, c.host.address(), port
		}
	case container.StateCreated:
		if c.clock.Wall().Sub(m.CreatedAt) > neverStarted {
			m.State, m.Reason = provider.Failed, "The container was never started."
		}
	case container.StateRemoving:
		m.State = provider.Terminating
	case container.StateExited, container.StateDead:
		// The engine starts ours again by itself: this one was stopped by hand.
		m.State, m.Reason = provider.Failed, strings.TrimSpace("The container ended on its host. "+s.Status)
	case container.StateRestarting, container.StatePaused: // it comes back
	}
	return m
}

// publicPort is where the container's SSH is published; 0 = nowhere yet.
func publicPort(s container.Summary) int {
	for _, p := range s.Ports {
		if p.PrivatePort == sshPort && p.Type == "tcp" && p.PublicPort != 0 {
			return int(p.PublicPort)
		}
	}
	return 0
}
