package cloudtest

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"homeport.dev/homeport/internal/id"
)

// State is what a machine of the double is doing, in no cloud's words.
type State string

// The states.
const (
	Building  State = "building"
	Up        State = "up"
	NoAddress State = "no_address" // up, and nobody can say where
	Failed    State = "failed"
	Ending    State = "ending"
	Ended     State = "ended"
)

// A Machine is one in the double's book.
type Machine struct {
	Ref       string // a UUID, unless Made was told another
	Name      string
	Config    string            // the cloud's own name of what was ordered
	Region    string            // and where
	Start     string            // what it starts with: the bootstrap as it was sent
	Deadline  string            // when it ends by itself, as it was sent
	Words     map[string]string // what else the dialect keeps
	CreatedAt time.Time
	EndAt     time.Time // zero = nobody asked, or it is on its way
	fate      string
	host      Host
	at        netip.AddrPort // where its host has it; not valid = it has not started
	ending    chan struct{}  // closed when its host is to end it
}

// At is where the nth machine of a list is reached: where its host says, else an
// address that leads nowhere.
func (m Machine) At(n int, port uint16) netip.AddrPort {
	if m.host != nil {
		return m.at
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), port)
}

// A Host runs a double's machines for real, each from its launch to its end.
type Host interface {
	// Start runs a machine, and returns where it is reached by SSH.
	Start(m Machine) (netip.AddrPort, error)
	// Stop ends a machine, also one that did not start whole.
	Stop(m Machine) error
}

// RunOn has all machines from now on run by a host.
func (c *Cloud) RunOn(h Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host = h
}

// Add writes a machine into the book, with the fate that the request's fault
// gives it.
func (c *Cloud) Add(r *http.Request, m Machine) *Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Ref == "" {
		m.Ref = id.New().String()
	}
	m.CreatedAt, m.fate, m.host, m.ending = c.Clock.Wall(), Fault(r), c.host, make(chan struct{})
	c.book = append(c.book, &m)
	made := m
	if m.host != nil {
		c.later.Go(func() { c.run(&m) })
	}
	return &made
}

// run has a machine's host start it, and end it when its end is asked for.
func (c *Cloud) run(m *Machine) {
	c.mu.Lock()
	of := *m
	c.mu.Unlock()
	at, err := m.host.Start(of)
	if err != nil {
		c.t.Errorf("machine %s was not started: %v", of.Name, err)
	}
	c.mu.Lock()
	m.at = at
	if err != nil {
		m.fate = "boot_fails"
	}
	c.mu.Unlock()
	select {
	case <-m.ending:
	case <-c.over:
	}
	if err := m.host.Stop(of); err != nil {
		c.t.Errorf("machine %s was not ended: %v", of.Name, err)
	}
	c.mu.Lock()
	m.EndAt = c.Clock.Wall()
	c.mu.Unlock()
}

// End asks for the end of a machine; false = there is none of this reference.
func (c *Cloud) End(r *http.Request, ref string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Wall()
	for _, m := range c.book {
		if m.Ref != ref || m.state(now) == Ended {
			continue
		}
		switch {
		case m.host != nil:
			m.end()
		case m.EndAt.IsZero():
			m.EndAt = now
			if Fault(r) == "slow" {
				m.EndAt = now.Add(endsIn)
			}
		}
		return true
	}
	return false
}

// Change lets the dialect change a machine that has not ended; false = there is
// none of this reference.
func (c *Cloud) Change(ref string, change func(m *Machine)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.book {
		if m.Ref == ref && m.state(c.Clock.Wall()) != Ended {
			change(m)
			return true
		}
	}
	return false
}

// Listed are the machines that the cloud shows: none that ended, and with a
// fault fewer than there are.
func (c *Cloud) Listed(r *http.Request) []Machine {
	var list []Machine
	for _, m := range c.held() {
		switch Fault(r) {
		case "empty":
			continue
		case "lag":
			if c.Clock.Wall().Sub(m.CreatedAt) < lagFor {
				continue
			}
		}
		list = append(list, m)
	}
	return list
}

// held are the machines that the cloud would charge for.
func (c *Cloud) held() []Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Machine
	for _, m := range c.book {
		if m.state(c.Clock.Wall()) != Ended {
			list = append(list, *m)
		}
	}
	return list
}

// end asks a machine's host for its end.
func (m *Machine) end() {
	if !m.isEnding() {
		close(m.ending)
	}
}

func (m *Machine) isEnding() bool {
	select {
	case <-m.ending:
		return true
	default:
		return false
	}
}

// StateOf is what a machine is doing now.
func (c *Cloud) StateOf(m Machine) State { return m.state(c.Clock.Wall()) }

func (m *Machine) state(now time.Time) State {
	age := now.Sub(m.CreatedAt)
	switch {
	case !m.EndAt.IsZero() && !now.Before(m.EndAt):
		return Ended
	case !m.EndAt.IsZero() || m.host != nil && m.isEnding():
		return Ending
	case m.fate == "never_boots" || age < bootsIn:
		return Building
	case m.fate == "boot_fails":
		return Failed
	case m.host != nil && !m.at.IsValid():
		return Building
	case m.fate == "no_address" && age < bootsIn+addressIn:
		return NoAddress
	}
	return Up
}

// Price is a price in the cloud's smallest unit, as it is for this request.
func Price(r *http.Request, plain int64) int64 {
	if Fault(r) == "price_moved" {
		return plain + plain/4
	}
	return plain
}

// Alive is how many machines of a name were alive at once, at most, ever.
func (c *Cloud) Alive(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, m := range c.book {
		n := 0
		for _, other := range c.book {
			if other.Name == name && m.Name == name && !other.CreatedAt.After(m.CreatedAt) &&
				(other.EndAt.IsZero() || other.EndAt.After(m.CreatedAt)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// audit is what must hold of every double at the end of its test.
func (c *Cloud) audit() {
	c.mu.Lock()
	var names []string
	for _, m := range c.book {
		names = append(names, m.Name)
	}
	c.mu.Unlock()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if n := c.Alive(name); n > 1 {
			c.t.Errorf("%d machines named %s were alive at once", n, name)
		}
	}
}
