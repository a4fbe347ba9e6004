package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/provider"
)

// A record is machine.json: what the cloud decided about a machine.
type record struct {
	Ref       string     `json:"ref"`
	Name      string     `json:"name"`
	CreatedAt time.Time  `json:"created_at"`
	Port      int        `json:"port"`     // published SSH port, 0 = none yet
	UIDBase   int        `json:"uid_base"` // host uid of its root, 0 = the node's own
	GPUType   string     `json:"gpu_type"`
	GPUCount  int        `json:"gpu_count"`
	Fate      string     `json:"fate"`   // scripted: never_boots or boot_fails; "" = none
	EndAt     *time.Time `json:"end_at"` // terminated, to be gone by then
}

// A birth is birth.json, written by stage 1 before PID 1 goes on.
type birth struct {
	PID     int      `json:"pid"`     // 0 = not started yet
	Start   string   `json:"start"`   // field 22 of /proc/<pid>/stat
	Boot    string   `json:"boot_id"` // the host's boot
	Cgroups []string `json:"cgroups"` // control groups to remove after the end
	Limits  string   `json:"limits"`
}

// A plan is what stage 1 of the agent binary reads; package sandboxinit
// declares the same members and says what they mean.
type plan struct {
	Dir      string   `json:"dir"`
	Skeleton string   `json:"skeleton"`
	Agent    string   `json:"agent"`
	Extra    []string `json:"extra"`
	UIDBase  int      `json:"uid_base"`
	Rootless bool     `json:"rootless"`
	SSH      int      `json:"ssh"`
	Token    string   `json:"token"`
	Hostname string   `json:"hostname"`
	Cgroup   string   `json:"cgroup"`
	Pids     int      `json:"pids"`
	Memory   int64    `json:"memory"`
	Weight   int      `json:"weight"`
	Trial    bool     `json:"trial"`

	Hardware *agentapi.Checked `json:"hardware"`
}

// Names of files in a machine's folder.
const (
	recordFile = "machine.json"
	birthFile  = "birth.json"
	lockName   = "lock"       // held while the machine is being built or ended
	serveLock  = "serve.lock" // held by the node that serves its socket
)

// Prefixes of folders beside the machines.
const (
	newPrefix   = ".new-"   // not a machine yet
	gonePrefix  = ".gone-"  // not a machine any more
	trialPrefix = ".trial-" // never a machine
)

// machines lists the cloud's machines by name, from prefix on.
func (c *cloud) machines(prefix string) ([]record, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("list machines of %s: %w", c.Name, err)
	}
	var list []record
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		r, found, err := c.load(e.Name())
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, r)
		}
	}
	return list, nil
}

// load reads one machine; false = it is gone. A record that a crash of the
// host tore is a failed machine, to be terminated under any of its ids.
func (c *cloud) load(name string) (record, bool, error) {
	var r record
	found, err := readJSON(filepath.Join(c.dir, name, recordFile), &r)
	if errors.Is(err, errTorn) {
		return record{Ref: newRef(name, fateTorn), Name: name, Fate: fateTorn}, true, nil
	}
	return r, found, err
}

// fateTorn marks a record that cannot be read.
const fateTorn = "torn"

// save rewrites a machine's record.
func (c *cloud) save(r record) error {
	return writeJSON(filepath.Join(c.dir, r.Name, recordFile), r)
}

// newRef makes a machine's id at the cloud: not its name, as with real clouds.
func newRef(name, random string) string { return name + "." + random }

// byRef finds a machine by its id.
func (c *cloud) byRef(ref string) (record, bool, error) {
	name, _, ok := strings.Cut(ref, ".")
	if !ok || !named.MatchString(name) {
		return record{}, false, nil
	}
	r, found, err := c.load(name)
	return r, found && (r.Ref == ref || r.Fate == fateTorn), err
}

// see reports a machine as it really is.
func (c *cloud) see(r record) provider.Machine {
	m := provider.Machine{Ref: r.Ref, Name: r.Name, CreatedAt: r.CreatedAt}
	m.State, m.Reason = c.state(r)
	if m.State == provider.Running {
		m.Host, m.SSHPort = c.s.PodHost, r.Port
	}
	return m
}

func (c *cloud) state(r record) (provider.State, string) {
	switch {
	case r.EndAt != nil:
		return provider.Terminating, ""
	case r.Fate == "never_boots":
		return provider.Building, ""
	case r.Fate == "boot_fails":
		return provider.Failed, "The machine did not boot."
	case r.Fate == fateTorn:
		return provider.Failed, "The machine's record was damaged by a crash of the host."
	}
	dir := filepath.Join(c.dir, r.Name)
	// The lock is asked first: it is given up after the birth was recorded.
	building := lockHeld(filepath.Join(dir, lockName))
	b, err := readBirth(dir)
	switch {
	case err == nil && b.alive():
		return provider.Running, ""
	case err == nil && b.PID > 0 && building:
		return provider.Terminating, "" // the lock is held to remove it
	case err == nil && b.PID > 0:
		return provider.Gone, "The machine ended by itself."
	case building:
		return provider.Building, ""
	}
	return provider.Failed, "The launch was interrupted."
}

// pretend makes a machine that has a folder and no process.
func (c *cloud) pretend(ctx context.Context, l provider.Launch, fate string) (record, error) {
	cl, err := c.claim(ctx, l, fate)
	if err != nil {
		return record{}, err
	}
	cl.unlock()
	return cl.record, nil
}

// readBirth reads what stage 1 recorded. One that is not there or torn is one
// of a process that does not run any more.
func readBirth(dir string) (birth, error) {
	var b birth
	if _, err := readJSON(filepath.Join(dir, birthFile), &b); err != nil && !errors.Is(err, errTorn) {
		return b, err
	}
	return b, nil
}

// errTorn occurs when a file is not whole: the host crashed soon after it was written.
var errTorn = errors.New("the file is damaged")

// readJSON reads a file; false = there is none.
func readJSON(path string, v any) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("read %s: %w: %w", path, errTorn, err)
	}
	return true, nil
}

// writeJSON replaces a file in one step.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".write-*")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
