package sandboxinit

import (
	"os"

	"homeport.dev/homeport/internal/agentapi"
)

// A Pod is what PID 1 finds once its namespaces are set up.
type Pod struct {
	SSH       []*os.File // listening sockets of the node's 127.0.0.1 and ::1, made outside the pod's network
	Socket    string     // path inside the pod of the node's unix socket; dial it anew after each break
	Token     string     // bearer token of the agent API
	Hostname  string
	StateDir  string            // agent's own folder, on the pod's disk, outside Workspace
	Workspace string            // "/workspace"
	Rootless  bool              // one uid only: chown and writes below /usr fail
	Limits    string            // what is and is not enforced, for the message of the day
	Hardware  *agentapi.Checked // what the machine is found to be
	Ready     *os.File          // write one byte, then close, once the agent runs; closing it alone means failure
}
