package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
)

// A Host is one machine whose GPUs are for rent, as its operator describes it.
// Every member that is not said to be needed may be left out.
type Host struct {
	Name     string `json:"name"`            // needed: the cloud's name as users see it; small letters, digits, dashes
	Engine   string `json:"engine"`          // needed: unix:///run/docker.sock, ssh://user@host[:port][/socket], tcp://host:2376
	TLSCA    string `json:"tls_ca"`          // for tcp: file of the authority that signed the engine's certificate
	TLSCert  string `json:"tls_cert"`        // for tcp: our certificate
	TLSKey   string `json:"tls_key"`         // and its key
	SSHKey   string `json:"ssh_key"`         // for ssh: file of our private key
	SSHKnown string `json:"ssh_known_hosts"` // for ssh: known_hosts file with the host's key

	Address    string `json:"address"`     // where users reach the published ports; default: the engine's host
	AgentURL   string `json:"agent_url"`   // where its pods reach Homeport; default: the public address
	Country    string `json:"country"`     // needed: ISO 3166 code or English name
	DataCenter string `json:"data_center"` // default: Name
	Secure     bool   `json:"secure"`      // stands in a data centre under contract; else it is community cloud

	Image   string `json:"image"`   // needed: what pods start from; has sh, curl or wget, and glibc
	Pull    bool   `json:"pull"`    // the engine fetches the image from its registry
	Network string `json:"network"` // default: a bridge of our own on which pods do not see each other
	Runtime string `json:"runtime"` // default: the engine's

	Prices    map[string]string `json:"prices"`   // needed: USD per hour of one GPU, by type; a type without a price is not sold
	GPUs      []Devices         `json:"gpus"`     // default: what nvidia-smi says in a container
	Simulate  []Devices         `json:"simulate"` // GPUs that are not there, to try things out; see Simulates
	DiskGB    int               `json:"disk_gb"`  // per GPU; default 50
	DiskQuota bool              `json:"disk_quota"`
}

// Devices are GPUs of one type that the operator names.
type Devices struct {
	Type   string   `json:"type"`   // a token such as RTX4090_24GB
	Socket string   `json:"socket"` // default PCIe
	IDs    []string `json:"ids"`    // as the engine knows them: numbers, UUIDs or CDI names
	Count  int      `json:"count"`  // of simulated ones, which have no ids
}

// Simulates reports whether the host sells GPUs that are not there: such a one
// must never be paid with real money.
func (h Host) Simulates() bool { return len(h.Simulate) > 0 }

// engineHost is the host part of the engine's address; "" = this machine.
func (h Host) engineHost() string {
	u, err := url.Parse(h.Engine)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// address is where users reach the published ports.
func (h Host) address() string {
	switch {
	case h.Address != "":
		return h.Address
	case h.engineHost() != "":
		return h.engineHost()
	}
	return "127.0.0.1"
}

// Read reads the file that describes the hosts. Its error names every mistake.
func Read(path string) ([]Host, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the list of engines: %w", err)
	}
	var file struct {
		Hosts []Host `json:"hosts"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s is not a list of engines: %w", path, err)
	}
	errs := []error{}
	if len(file.Hosts) == 0 {
		errs = append(errs, fmt.Errorf("%s names no host", path))
	}
	seen := map[string]bool{}
	for i := range file.Hosts {
		h := &file.Hosts[i]
		if seen[h.Name] {
			errs = append(errs, fmt.Errorf("two hosts are named %q", h.Name))
		}
		seen[h.Name] = true
		for _, err := range h.settle() {
			errs = append(errs, fmt.Errorf("host %q: %w", h.Name, err))
		}
	}
	return file.Hosts, errors.Join(errs...)
}

// Limits of a description, and what stands in for what it leaves out.
const (
	maxGPUs   = 64
	maxDiskGB = 100_000
	plainDisk = 50
)

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)
	imageForm  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,254}$`)
	wordForm   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
	deviceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./=:_-]{0,99}$`)
	domainForm = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)
	sockets    = []string{gpu.PCIe, gpu.SXM2, gpu.SXM3, gpu.SXM4, gpu.SXM5, gpu.SXM6}
)

// settle checks a description and fills in what it leaves out.
func (h *Host) settle() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !nameForm.MatchString(h.Name) {
		bad("the name is not 1 to 30 small letters, digits and dashes")
	}
	country, ok := place.Country(h.Country)
	if !ok {
		bad("country %q is not known", h.Country)
	}
	h.Country = country
	if h.DataCenter == "" {
		h.DataCenter = h.Name
	}
	if !imageForm.MatchString(h.Image) {
		bad("image %q is not the name of an image", h.Image)
	}
	for what, word := range map[string]string{"data_center": h.DataCenter, "network": h.Network, "runtime": h.Runtime} {
		if word != "" && !wordForm.MatchString(word) {
			bad("%s %q is not one word", what, word)
		}
	}
	if h.Network == "host" || h.Network == "none" || strings.HasPrefix(h.Network, "container") {
		bad("network %q: pods need a network of their own", h.Network)
	}
	if h.DiskGB == 0 {
		h.DiskGB = plainDisk
	}
	if h.DiskGB < 1 || h.DiskGB > maxDiskGB {
		bad("disk_gb %d is not between 1 and %d", h.DiskGB, maxDiskGB)
	}
	if _, err := netip.ParseAddr(h.address()); err != nil && !domainForm.MatchString(h.address()) {
		bad("address %q is no address", h.Address)
	}
	if u, err := url.Parse(h.AgentURL); h.AgentURL != "" &&
		(err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.Path != "" || u.RawQuery != "" || u.User != nil) {
		bad("agent_url %q is not of the form https://host", h.AgentURL)
	}
	return append(append(append(errs, h.settleEngine()...), h.settlePrices()...), h.settleGPUs()...)
}

// settleEngine checks how the engine is reached.
func (h *Host) settleEngine() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	u, err := url.Parse(h.Engine)
	if err != nil {
		return []error{errors.New("engine: it is not an address")}
	}
	tls, ssh := h.TLSCA != "" || h.TLSCert != "" || h.TLSKey != "", h.SSHKey != "" || h.SSHKnown != ""
	switch u.Scheme {
	case "unix":
		if u.Host != "" || u.Path == "" || tls || ssh {
			bad("engine %q: a local socket is unix:///path, without keys", u.Redacted())
		}
	case "ssh":
		if u.Hostname() == "" || u.User.Username() == "" || h.SSHKey == "" || h.SSHKnown == "" || tls {
			bad("engine %q: ssh needs ssh://user@host, ssh_key and ssh_known_hosts", u.Redacted())
		}
		if _, set := u.User.Password(); set {
			bad("engine: a password is not taken: use ssh_key")
		}
	case "tcp":
		if u.Port() == "" || u.Path != "" || u.User != nil || ssh {
			bad("engine %q: tcp needs tcp://host:port", u.Redacted())
		}
		whole := h.TLSCA != "" && h.TLSCert != "" && h.TLSKey != ""
		if ip := net.ParseIP(u.Hostname()); !whole && (tls || ip == nil || !ip.IsLoopback()) {
			bad("engine %q: who reaches it is root there: tls_ca, tls_cert and tls_key are needed", u.Redacted())
		}
	default:
		bad("engine %q is none of unix://, ssh:// and tcp://", u.Redacted())
	}
	return errs
}

func (h *Host) settlePrices() (errs []error) {
	if len(h.Prices) == 0 {
		errs = append(errs, errors.New("prices are needed: USD per hour of one GPU, by type"))
	}
	for token, text := range h.Prices {
		if _, known := gpu.Lookup(token); !known {
			errs = append(errs, fmt.Errorf("prices: there is no GPU type %q", token))
		}
		if p, err := money.Parse(text); err != nil || p <= 0 || money.Rate(p) > money.MaxRate/maxGPUs {
			errs = append(errs, fmt.Errorf("prices: %q is not a price in USD", text))
		}
	}
	return errs
}

func (h *Host) settleGPUs() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(h.GPUs) > 0 && len(h.Simulate) > 0 {
		bad("gpus and simulate exclude each other")
	}
	seen, n := map[string]bool{}, 0
	for _, list := range [][]Devices{h.GPUs, h.Simulate} {
		for i := range list {
			d := &list[i]
			if _, known := gpu.Lookup(d.Type); !known {
				bad("there is no GPU type %q", d.Type)
			}
			if d.Socket == "" {
				d.Socket = gpu.PCIe
			}
			if !slices.Contains(sockets, d.Socket) {
				bad("there is no socket %q", d.Socket)
			}
			for _, id := range d.IDs {
				if !deviceForm.MatchString(id) || seen[id] {
					bad("GPU id %q is no id, or is there twice", id)
				}
				seen[id] = true
			}
			n += len(d.IDs) + d.Count
		}
	}
	for _, d := range h.GPUs {
		if len(d.IDs) == 0 || d.Count != 0 {
			bad("gpus: %s needs ids, and no count", d.Type)
		}
	}
	for _, d := range h.Simulate {
		if len(d.IDs) != 0 || d.Count < 1 {
			bad("simulate: %s needs a count, and no ids", d.Type)
		}
	}
	if n > maxGPUs {
		bad("it has more than %d GPUs", maxGPUs)
	}
	return errs
}
