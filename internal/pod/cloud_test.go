package pod_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
)

// errCut is an answer that says nothing: the machine may exist.
var errCut = errors.New("the connection was cut")

// A play of the fake cloud says how one launch goes.
type play struct {
	err     error                 // what Launch answers
	made    bool                  // the machine is made all the same
	hang    bool                  // no answer before the caller gives up
	appears time.Duration         // the machine is not listed before
	failed  bool                  // it will never run
	builds  bool                  // it has no address before settle
	during  func(provider.Launch) // what happens elsewhere while the call is under way
}

// A machine of the fake cloud.
type machine struct {
	provider.Machine
	launch provider.Launch
	listed time.Time // wall time from which Find shows it
	asked  bool      // to end
	door   *door     // its SSH port
}

// A call is one line of the cloud's own log.
type call struct {
	op   string
	name string // of the machine
	wall time.Time
	err  error
}

// A cloud is a provider that lives in memory and plays the faults of real ones.
// What it logs is the truth about machines, whatever our rows say.
type cloud struct {
	t       testing.TB
	wall    func() time.Time
	caps    provider.Capabilities
	mu      *sync.Mutex // one for all clouds
	peers   []*cloud    // all clouds
	offers  []provider.Offer
	all     map[string]*machine // by name
	log     []call
	launch  []play  // the next launches'
	find    []error // the next finds'; nil answers truly
	blind   bool    // finds list nothing
	end     []error // the next terminates'
	doubled []string
}

func newCloud(t testing.TB, wall func() time.Time, offers ...provider.Offer) *cloud {
	return &cloud{t: t, wall: wall, mu: &sync.Mutex{}, all: map[string]*machine{}, offers: offers}
}

// h100 is an offer that costs users 2.60 USD an hour.
func h100(cloudName, id string, upstream money.Rate) provider.Offer {
	return provider.Offer{
		Provider: cloudName, CloudID: id, GPUType: "H100_80GB", GPUCount: 1, GPUMemoryGB: 80, MemoryGB: 200,
		VCPU: 24, Socket: "SXM5", Country: "US", DataCenterID: "us-1", Security: "secure_cloud",
		Image: "ubuntu", DiskGB: 500, DiskIncluded: true, UpstreamPrice: upstream,
	}
}

func (c *cloud) Capabilities() provider.Capabilities { return c.caps }

func (c *cloud) Offers(context.Context) ([]provider.Offer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offers, nil
}

// podOf is the part of a machine's name that its pod's machines share.
func podOf(name string) string { return name[:strings.LastIndex(name, "-")] }

// Launch makes a machine. One that is made while its pod has another, whose end
// nobody asked for, is noted as doubled.
func (c *cloud) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	f := c.begin()
	if f.during != nil {
		f.during(l)
	}
	if f.hang {
		<-ctx.Done()
		f.err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[l.Name] != nil {
		c.t.Errorf("%s is asked for twice", l.Name)
	}
	c.log = append(c.log, call{"launch", l.Name, c.wall(), f.err})
	if f.err != nil && !f.made {
		return provider.Machine{}, f.err
	}
	for _, peer := range c.peers {
		for name, m := range peer.all {
			if podOf(name) == podOf(l.Name) && !m.asked {
				c.doubled = append(c.doubled, name+" and "+l.Name)
			}
		}
	}
	m := &machine{launch: l, listed: c.wall().Add(f.appears), door: openDoor(c.t)}
	m.Machine = provider.Machine{
		Ref: "ref-" + l.Name, Name: l.Name, State: provider.Running, Host: "127.0.0.1", SSHPort: m.door.port(), CreatedAt: c.wall(),
	}
	if f.failed {
		m.State = provider.Failed
	}
	if f.builds {
		m.State, m.Host, m.SSHPort = provider.Building, "", 0
	}
	c.all[l.Name] = m
	return m.Machine, f.err
}

// begin takes the next play.
func (c *cloud) begin() play {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.launch) == 0 {
		return play{}
	}
	f := c.launch[0]
	c.launch = c.launch[1:]
	return f
}

func (c *cloud) Find(_ context.Context, prefix string) ([]provider.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.find) > 0 {
		err := c.find[0]
		c.find = c.find[1:]
		if err != nil {
			return nil, err
		}
	}
	var out []provider.Machine
	for name, m := range c.all {
		if !c.blind && strings.HasPrefix(name, prefix) && !m.listed.After(c.wall()) {
			out = append(out, m.Machine)
		}
	}
	return out, nil
}

func (c *cloud) Terminate(_ context.Context, ref string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.TrimPrefix(ref, "ref-")
	var err error
	if len(c.end) > 0 {
		err, c.end = c.end[0], c.end[1:]
	}
	c.log = append(c.log, call{"terminate", name, c.wall(), err})
	if m := c.all[name]; m != nil {
		m.asked = true
		if err == nil {
			delete(c.all, name)
			m.door.close()
		}
	}
	return err
}

// script sets the plays, one per launch.
func (c *cloud) script(plays ...play) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launch = append(c.launch, plays...)
}

// answers sets what the next finds and terminates say.
func (c *cloud) answers(find, end []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.find, c.end = find, end
}

// settle lets a machine that was being built run.
func (c *cloud) settle(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.State, m.Host, m.SSHPort = provider.Running, "127.0.0.1", m.door.port()
}

// vanish takes a machine away, as a host that dies does.
func (c *cloud) vanish(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[name].door.close()
	delete(c.all, name)
}

// plant makes a machine that nobody of ours asked for.
func (c *cloud) plant(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.all[name] = &machine{
			Machine: provider.Machine{Ref: "ref-" + name, Name: name, State: provider.Running}, door: openDoor(c.t),
		}
	}
}

// names lists the machines that exist.
func (c *cloud) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name := range c.all {
		out = append(out, name)
	}
	return out
}

// one is the only machine there is.
func (c *cloud) one() *machine {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) != 1 {
		c.t.Fatalf("there are %d machines, want one", len(c.all))
	}
	for _, m := range c.all {
		return m
	}
	return nil
}

// count counts the calls of one kind.
func (c *cloud) count(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, line := range c.log {
		if line.op == op {
			n++
		}
	}
	return n
}

// A door is a machine's SSH port. Closed hosts refuse, silent ones hang up
// before a word.
type door struct {
	t  testing.TB
	l  net.Listener
	wg sync.WaitGroup
	mu sync.Mutex
	on func(net.Conn) // nil: hang up
}

func openDoor(t testing.TB) *door {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("no port for a fake machine: %v", err))
	}
	d := &door{t: t, l: l}
	d.wg.Go(d.run)
	t.Cleanup(func() {
		d.close()
		d.wg.Wait()
	})
	return d
}

func (d *door) run() {
	for {
		conn, err := d.l.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		on := d.on
		d.mu.Unlock()
		if on != nil {
			on(conn)
		}
		_ = conn.Close()
	}
}

func (d *door) port() int { return d.l.Addr().(*net.TCPAddr).Port }

func (d *door) close() { _ = d.l.Close() }

func (d *door) serve(on func(net.Conn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = on
}
