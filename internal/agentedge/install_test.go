package agentedge_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/agentedge"
	"homeport.dev/homeport/internal/bintest"
)

// fakeAgent is a program in the agent's place: it writes down what it was
// started with, and stays until the test ends it.
const fakeAgent = `#!/bin/sh
{ echo "$1 $HOMEPORT_AGENT_URL"; cat "$HOMEPORT_AGENT_TOKEN_FILE"; env; } >"${0%/*}/started.new"
mv "${0%/*}/started.new" "${0%/*}/started"
kill $PPID
`

// node serves the installer and two agents; change spoils what a machine fetches.
func node(t *testing.T, change func(path string, w http.ResponseWriter) bool) string {
	t.Helper()
	dir := t.TempDir()
	file := func(arch string) string { return filepath.Join(dir, "agent-"+arch) }
	for _, arch := range agentedge.Arches {
		if err := os.WriteFile(file(arch), []byte(fakeAgent+"# "+arch+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agents, err := agentedge.FindAgents(file)
	if err != nil || len(agents) != 2 {
		t.Fatalf("agents %v, %v", agents, err)
	}
	var install http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change == nil || !change(r.URL.Path, w) {
			install.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	if install, err = agentedge.Install(s.URL, agents); err != nil {
		t.Fatal(err)
	}
	return s.URL
}

// install runs the installer as a new machine does, with stand-ins for what
// would touch this host, and returns the folder it installs into.
func install(t *testing.T, base, uname string, env ...string) (dir, said string, err error) {
	t.Helper()
	res, err := http.Get(base + "/agent/install") //nolint:noctx // a test's server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	dir = t.TempDir()
	bin := t.TempDir()
	for name, text := range map[string]string{
		"id": "echo 0", "uname": "echo " + uname, "systemctl": "exit 0", "service": "exit 0",
		// A machine's own folders are not this host's.
		"mkdir": `[ "$3" = /workspace ] && exec /bin/mkdir -p "$2"; exec /bin/mkdir "$@"`,
	} {
		bintest.WriteProgram(t, filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"))
	}
	cmd := exec.Command("/bin/sh", "-s")
	cmd.Stdin = res.Body
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HP_DIR=" + dir, "HP_MODE=container"}, env...)
	out, err := cmd.CombinedOutput()
	return dir, string(out), err
}

func TestInstallerStartsTheAgentOfTheMachine(t *testing.T) {
	t.Parallel()
	for uname, arch := range map[string]string{"x86_64": "amd64", "aarch64": "arm64"} {
		base := node(t, nil)
		dir, said, _ := install(t, base, uname, "HP_TOKEN=secret-token") // the fake agent ends its parent
		started, err := os.ReadFile(filepath.Join(dir, "started"))
		if err != nil {
			t.Fatalf("%s: the agent was not started: %v: %s", uname, err, said)
		}
		lines := strings.Split(string(started), "\n")
		if lines[0] != "run "+base || lines[1] != "secret-token" || strings.Contains(strings.Join(lines[2:], "\n"), "secret-token") {
			t.Errorf("%s: it was started with %s", uname, started)
		}
		agent, _ := os.ReadFile(filepath.Join(dir, "homeport-agent"))
		if !strings.HasSuffix(string(agent), "# "+arch+"\n") {
			t.Errorf("%s has the agent %s", uname, agent)
		}
		if info, err := os.Stat(filepath.Join(dir, "token")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the token's file: %v, %v", info.Mode(), err)
		}
	}
}

// TestInstallerKeepsToTheAddressOfItsMachine: one that reaches the nodes at
// another address than the public one fetches and dials there.
func TestInstallerKeepsToTheAddressOfItsMachine(t *testing.T) {
	t.Parallel()
	base := node(t, func(path string, w http.ResponseWriter) bool {
		if strings.HasPrefix(path, "/agent/bin/") {
			w.WriteHeader(http.StatusNotFound) // the public address does not lead here
			return true
		}
		return false
	})
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(fakeAgent + "# amd64\n")) }))
	t.Cleanup(near.Close)
	dir, said, _ := install(t, base, "x86_64", "HP_TOKEN=t", "HP_BASE="+near.URL)
	started, err := os.ReadFile(filepath.Join(dir, "started"))
	if err != nil || !strings.HasPrefix(string(started), "run "+near.URL+"\n") || strings.Contains(string(started), "HP_BASE") {
		t.Errorf("it was started with %s, %v: %s", started, err, said)
	}
}

func TestInstallerTakesNothingElse(t *testing.T) {
	t.Parallel()
	bin := func(answer func(w http.ResponseWriter)) func(string, http.ResponseWriter) bool {
		return func(path string, w http.ResponseWriter) bool {
			if !strings.HasPrefix(path, "/agent/bin/") {
				return false
			}
			answer(w)
			return true
		}
	}
	for name, one := range map[string]struct {
		change func(string, http.ResponseWriter) bool
		uname  string
		env    []string
		want   string
	}{
		"another binary":    {bin(func(w http.ResponseWriter) { _, _ = w.Write([]byte(fakeAgent + "echo stolen\n")) }), "x86_64", []string{"HP_TOKEN=t"}, "not what the node promised"},
		"half a binary":     {bin(func(w http.ResponseWriter) { _, _ = w.Write([]byte(fakeAgent[:20])) }), "x86_64", []string{"HP_TOKEN=t"}, "not what the node promised"},
		"no binary":         {bin(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }), "x86_64", []string{"HP_TOKEN=t"}, "could not be fetched"},
		"another processor": {nil, "riscv64", []string{"HP_TOKEN=t"}, "no agent for riscv64"},
		"no token":          {nil, "x86_64", nil, "HP_TOKEN is not set"},
	} {
		dir, said, err := install(t, node(t, one.change), one.uname, one.env...)
		if err == nil || !strings.Contains(said, one.want) {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
			t.Errorf("%s: an agent was started", name)
		}
	}
}

func TestAgentsAreServedByTheirHashAlone(t *testing.T) {
	t.Parallel()
	base := node(t, nil)
	for _, path := range []string{"/agent/bin/", "/agent/bin/agent-amd64", "/agent/bin/..%2f..%2fetc%2fpasswd", "/agent/bin/" + strings.Repeat("0", 64)} {
		res, err := http.Get(base + path) //nolint:noctx // a test's server
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
