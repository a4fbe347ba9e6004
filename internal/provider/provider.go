// Package provider is the contract of an upstream cloud. An adapter speaks one
// cloud's API and decides nothing: prices for users, retries, failover and
// clean-up belong to offer and pod. providertest is the suite every adapter
// passes.
package provider

import (
	"context"
	"errors"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
)

// Faults by which an adapter says what went wrong. Every other error, and every
// timeout of Launch, is ambiguous: the machine may exist.
var (
	// ErrNoCapacity occurs when the offer is sold out right now.
	ErrNoCapacity = fault.New(fault.Unavailable, "no_capacity", "This configuration is sold out at the moment.")
	// ErrPriceMoved occurs when the cloud asks more than MaxPrice.
	ErrPriceMoved = fault.New(fault.Conflict, "upstream_price_moved", "The price of this configuration changed.")
	// ErrRefused occurs when the cloud refused the request for good: no machine was made.
	ErrRefused = fault.New(fault.Unavailable, "upstream_refused", "The cloud refused this configuration.")
	// ErrFunds occurs when our own account there is empty: its offers go off sale.
	ErrFunds = fault.New(fault.Unavailable, "upstream_funds", "This cloud is not available at the moment.")
	// ErrRateLimited occurs on a 429; RetryAfter is set when the cloud said so.
	ErrRateLimited = fault.New(fault.Unavailable, "upstream_rate_limited", "This cloud is busy. Please try again.")
	// ErrUnreachable occurs when a launch never reached the cloud: no machine was made.
	ErrUnreachable = fault.New(fault.Unavailable, "upstream_unreachable", "This cloud does not answer at the moment.")
	// ErrPortTaken occurs when Launch.SSHPort is in use at the cloud: no machine
	// was made, and another port may do. Its chain holds ErrRefused.
	ErrPortTaken = fault.New(fault.Unavailable, "upstream_port_taken", "The port of this pod is taken.")
	// ErrNotLetIn occurs when a Pusher ran nothing on a machine, which let nobody
	// in. After any other error what was pushed may run and use its token.
	ErrNotLetIn = fault.New(fault.Unavailable, "upstream_not_let_in", "The machine cannot be set up yet.")
	// ErrNotYet occurs when a machine cannot be terminated in its present state; try again.
	ErrNotYet = fault.New(fault.Unavailable, "upstream_not_yet", "The cloud is still setting this machine up.")
	// ErrUnsupported occurs when this host cannot run the adapter's machines; the detail says why and what to do.
	ErrUnsupported = fault.New(fault.Unavailable, "provider_unsupported", "Pods cannot run on this host.")
)

// An Offer is one configuration that a cloud sells, as the cloud describes it.
// The tuple (Provider, CloudID, GPUType, GPUCount, Socket, Country,
// DataCenterID, IsSpot, Security) is unique within a cloud's list.
type Offer struct {
	Provider      string // cloud's name as users see it
	CloudID       string // the cloud's own name of the configuration
	GPUType       string // canonical token, e.g. H100_80GB
	GPUCount      int
	GPUMemoryGB   int // of all GPUs together
	MemoryGB      int
	VCPU          int
	Socket        string
	Country       string // ISO 3166 alpha-2
	DataCenterID  string // "" = the cloud does not say
	Security      string // secure_cloud or community_cloud
	IsSpot        bool
	Image         string
	DiskGB        int        // disk that comes with it
	DiskPrice     money.Rate // per GB and hour on top; 0 with DiskIncluded
	DiskIncluded  bool
	UpstreamPrice money.Rate // what we pay, whole configuration
}

// A Launch asks for one machine.
type Launch struct {
	Name      string // hp-<env4>-<pod8>-<attempt>, committed before the call; unique
	Offer     Offer
	MaxPrice  money.Rate // refuse above this
	Bootstrap Bootstrap
	SSHPort   int       // port to publish where the cloud lets us choose; 0 = the cloud chooses
	KeepUntil time.Time // when a cloud that can shall end the machine by itself, until Keeper moves it; zero = never
}

// Bootstrap is what the machine's agent starts with.
type Bootstrap struct {
	AgentURL string // where the agent dials; "" = through the sandbox's socket
	Token    string // the instance's bearer token
	Hostname string
}

// State is what a cloud says of a machine, in our words.
type State string

// The states.
const (
	Building    State = "building"    // asked for, not usable yet
	Running     State = "running"     // up; says nothing of the agent
	Terminating State = "terminating" // on its way out
	Gone        State = "gone"        // ended; also when the cloud lists it as ended
	Failed      State = "failed"      // will never run: terminate it
)

// A Machine is one instance as a cloud reports it.
type Machine struct {
	Ref       string // the cloud's id
	Name      string // as given in Launch
	State     State
	Host      string // public host, "" while unknown
	SSHPort   int    // published port, 0 while unknown
	SSHUser   string // who the cloud's own image lets in; "" = root, or it does not say
	Reason    string // for Failed and Gone, in the cloud's words
	CreatedAt time.Time
}

// Capabilities are the facts of a cloud that its users must heed.
type Capabilities struct {
	ChoosesPort bool          // the cloud publishes its own SSH port, Launch.SSHPort is ignored
	MaxName     int           // longest machine name
	AutoDelete  bool          // the cloud can end a machine by itself at a deadline: the adapter is a Keeper
	Push        bool          // Launch brings no agent: the adapter is a Pusher
	BootTimeout time.Duration // launch to agent's hello, at most
	AppearsIn   time.Duration // how long after a lost answer a machine may still appear; 0 = the caller's default
	NoGPUs      bool          // its machines have simulated GPUs only: none is looked for
	Notice      string        // what users of its pods must know; shown at log-in
}

// NoMachine says whether an error of Launch means that no machine was made and
// none will appear.
func NoMachine(err error) bool {
	for _, sure := range []error{ErrNoCapacity, ErrPriceMoved, ErrRefused, ErrFunds, ErrRateLimited, ErrUnreachable, ErrPortTaken, ErrUnsupported} {
		if errors.Is(err, sure) {
			return true
		}
	}
	return false
}

// NotMade says of an error from before a machine was asked for that there is none.
func NotMade(err error) error {
	if err == nil || NoMachine(err) {
		return err
	}
	return ErrUnreachable.Because(err)
}

// An Adapter speaks to one account at one cloud. All methods are safe for
// concurrent use and honour their context.
type Adapter interface {
	Capabilities() Capabilities
	// Offers returns the full list. An empty list without an error is suspicious
	// and is not believed at once; ErrNoCapacity says that all there is is let.
	Offers(ctx context.Context) ([]Offer, error)
	// Launch asks for a machine. ErrNoCapacity, ErrPriceMoved, ErrRefused,
	// ErrFunds, ErrRateLimited, ErrUnreachable, ErrPortTaken and ErrUnsupported mean
	// that none was made; after any other error one may exist or appear later, under Name.
	Launch(ctx context.Context, l Launch) (Machine, error)
	// Find lists the machines whose name begins with prefix, ended ones only if
	// the cloud still lists them. An error says nothing about any machine.
	Find(ctx context.Context, prefix string) ([]Machine, error)
	// Terminate ends a machine for good. One that is not there is no error;
	// nil means accepted, Find tells when it is gone. The fault ErrNotYet asks
	// to try again.
	Terminate(ctx context.Context, ref string) error
}

// A Keeper is an Adapter whose cloud ends a machine by itself at a deadline, so
// that no bill runs on for ever when the control plane is lost. Capabilities
// say AutoDelete. Its caller moves the deadline while the pod lives.
type Keeper interface {
	// Keep sets when the cloud ends the machine by itself. An error leaves the
	// deadline where it was; it is asked again long before that.
	Keep(ctx context.Context, ref string, until time.Time) error
}

// An Accountant is an Adapter whose cloud says what is left of our money there.
type Accountant interface {
	// Balance is what the account can still spend; below zero is a debt. An
	// error says nothing about it.
	Balance(ctx context.Context) (money.USD, error)
}

// A Pusher is an Adapter of a cloud that takes no start-up script: the agent is
// brought to the machine by SSH. Capabilities say Push.
type Pusher interface {
	// Push installs and starts the agent on a running machine, or returns
	// ErrNotLetIn when it certainly ran nothing there. After another error what
	// it brought may go on for PushLives. Pushing again, with another token, is
	// harmless once nothing of the push before runs: the last token counts.
	Push(ctx context.Context, m Machine, b Bootstrap) error
}

// PushLives is how long what a push started may run on the machine, at most,
// also when the push was cut short.
const PushLives = 2 * time.Minute

// Alive reports whether a machine in this state is, or may become, usable.
func (s State) Alive() bool { return s == Building || s == Running }
