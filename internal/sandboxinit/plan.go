package sandboxinit

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"homeport.dev/homeport/internal/agentapi"
)

// Places inside a pod. PID 1 runs itself again through /proc/self/exe or
// AgentPath; os.Executable names a path that the pod does not have.
const (
	AgentPath = "/opt/homeport/bin/homeport-agent" // the agent's own binary, read-only
	runDir    = "/run/homeport"                    // folder of the node's socket
	stateDir  = "/var/lib/homeport-agent"
	workspace = "/workspace"
)

// A plan says how to build one pod. The sandbox cloud writes it as JSON to the
// standard input of stage 1; package sandbox declares the same members.
type plan struct {
	Dir      string   `json:"dir"`      // machine's folder on the host
	Skeleton string   `json:"skeleton"` // root file system below /usr and the pod's own writes
	Agent    string   `json:"agent"`    // this binary's path on the host
	Extra    []string `json:"extra"`    // host folders beside /usr that programs need, such as a real /lib
	UIDBase  int      `json:"uid_base"` // host uid of the pod's root; with Rootless not used
	Rootless bool     `json:"rootless"`
	SSH      int      `json:"ssh"` // number of inherited listening sockets
	Token    string   `json:"token"`
	Hostname string   `json:"hostname"`
	Cgroup   string   `json:"cgroup"`  // name of the pod's control group, unique on the host
	Pids     int      `json:"pids"`    // most processes
	Memory   int64    `json:"memory"`  // bytes
	Weight   int      `json:"weight"`  // share of the CPU, 1 to 100
	Trial    bool     `json:"trial"`   // build everything, then end: does this host allow it?
	Enforced string   `json:"limits"`  // filled in by stage 1: what holds, for people
	NoPids   bool     `json:"no_pids"` // filled in by stage 1: no control group counts processes

	Hardware *agentapi.Checked `json:"hardware"` // what the agent finds of the simulated machine
}

// birthFile, in the machine's folder, holds its birth.
const birthFile = "birth.json"

// A birth is what stage 1 records of PID 1 before it lets it go on, so that no
// running pod is ever unknown. Package sandbox reads it.
type birth struct {
	PID     int      `json:"pid"`     // 0 = not started yet
	Start   string   `json:"start"`   // field 22 of /proc/<pid>/stat
	Boot    string   `json:"boot_id"` // the host's boot
	Cgroups []string `json:"cgroups"` // folders to remove after the end
	Limits  string   `json:"limits"`
}

// A report is a stage's one message to the process that started it.
type report struct {
	Error string `json:"error"` // "" = done
}

func readPlan(r io.Reader) (plan, error) {
	var p plan
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}

// send writes the stage's one report and closes the file.
func send(f *os.File, err error) {
	var r report
	if err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(f).Encode(r) // the reader may be gone; the outcome stands
	_ = f.Close()
}

// writeFile puts v as JSON at path in one step.
func writeFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
