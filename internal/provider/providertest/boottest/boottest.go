// Package boottest starts machines for real: what a cloud's double was sent as
// the start of a machine is run in namespaces of its own, over an empty root
// that has this host's programs. It fetches the installer of a node and, with
// it, a stand-in for the agent. Where there are no namespaces its tests are
// skipped.
package boottest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentedge"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// agent stands in for the agent's program: it writes down what it was started
// with, and stays.
const agent = `#!/bin/sh
{ echo "$* $HOMEPORT_AGENT_URL"; cat "$HOMEPORT_AGENT_TOKEN_FILE"; echo; env; cat /proc/*/cmdline | tr '\0' ' '; } >/out/new
mv /out/new /out/started
sleep 600
`

// Launch launches a machine at a double and runs it: command makes its first
// program of what the double was sent for its start.
func Launch(t *testing.T, a provider.Adapter, double *cloudtest.Cloud, command func(start string) []string) {
	t.Helper()
	l := providertest.Request(t, a, 0)
	l.Bootstrap.AgentURL = Node(t)
	m, err := a.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	var start string
	double.Change(m.Ref, func(m *cloudtest.Machine) { start = m.Start })
	Run(t, l.Bootstrap, command(start))
}

// Node serves the installer, and returns where.
func Node(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(program, []byte(agent), 0o600); err != nil {
		t.Fatal(err)
	}
	agents, err := agentedge.FindAgents(func(string) string { return program })
	if err != nil {
		t.Fatal(err)
	}
	var install http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { install.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	if install, err = agentedge.Install(s.URL, agents); err != nil {
		t.Fatal(err)
	}
	return s.URL
}

// Script is the command by which a machine runs a start-up script.
func Script(text string) []string {
	return []string{"/bin/sh", "-c", put("/tmp/start", text) + "chmod 700 /tmp/start\nexec /tmp/start"}
}

// CloudInit is the command by which a machine does what its user data say: the
// files that they write, and the commands that they run.
func CloudInit(t testing.TB, userData string) []string {
	t.Helper()
	const head, file, run, item = "#cloud-config\nwrite_files:\n- path: ", "\n  permissions: '0700'\n  encoding: b64\n  content: ", "\nruncmd:\n", "- ["
	text, ok := strings.CutPrefix(userData, head)
	path, rest, wrote := strings.Cut(text, file)
	content, list, runs := strings.Cut(rest, run)
	script, err := base64.StdEncoding.DecodeString(content)
	if !ok || !wrote || !runs || err != nil {
		t.Fatalf("this is not the cloud-init that is understood here: %v: %s", err, userData)
	}
	does := put(path, string(script)) + "chmod 0700 " + path + "\n"
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\n"), "\n") {
		words, ok := strings.CutPrefix(strings.TrimSuffix(line, "]"), item)
		if !ok {
			t.Fatalf("cloud-init would not run %q", line)
		}
		does += "'" + strings.ReplaceAll(words, ", ", "' '") + "'\n"
	}
	return []string{"/bin/sh", "-c", does}
}

// Session is the command by which a machine that runs does what somebody who
// logged in asks of it, with this on its standard input.
func Session(asked, input string) []string {
	return []string{"/bin/sh", "-c", put("/tmp/input", input) + asked + " </tmp/input"}
}

// put is a line that writes a file.
func put(path, text string) string {
	return fmt.Sprintf("echo %s | base64 -d >%s\n", base64.StdEncoding.EncodeToString([]byte(text)), path)
}

// boot makes a machine's root below $1, with $2 in it as /out, and runs the rest
// as its first program. When that ends, the machine stays.
const boot = `set -e
root=$1 out=$2
shift 2
mount -t tmpfs machine "$root"
for dir in bin sbin lib lib32 lib64 usr etc dev; do
  if [ -L "/$dir" ]; then cp -P "/$dir" "$root/"
  elif [ -d "/$dir" ]; then mkdir "$root/$dir"; mount --rbind "/$dir" "$root/$dir"; fi
done
cd "$root"
mkdir proc tmp run var opt root out
mount -t proc proc proc
mount --bind "$out" out
echo 1 >"$out/ready"
chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@" || echo "it ended with $?"
sleep 600
`

// Run runs a machine by its first program until its agent starts. It fails the
// test unless that has its own token, for its node, and the token is shown to
// nobody.
func Run(t testing.TB, b provider.Bootstrap, command []string) {
	t.Helper()
	dir := t.TempDir()
	root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
	for _, d := range []string{root, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append([]string{
		"--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", boot, "boot", root, out,
	}, command...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Skipf("machines cannot be started here: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what it says tells why
		close(ended)
	}()
	started := await(ctx, filepath.Join(out, "started"), ended)
	cancel()
	<-ended
	if _, err := os.Stat(filepath.Join(out, "ready")); err != nil {
		t.Skipf("machines cannot be started here: %s", said.String())
	}
	lines := strings.SplitN(started, "\n", 3)
	if len(lines) != 3 || lines[0] != "run "+b.AgentURL || lines[1] != b.Token {
		t.Fatalf("the agent was not started as it should be: %q; the machine said: %s", started, said.String())
	}
	if strings.Contains(lines[2], b.Token) {
		t.Errorf("the token is shown to all: %s", lines[2])
	}
}

// await returns a file's text when it is there; "" = the machine ended, or ctx.
func await(ctx context.Context, path string, ended <-chan struct{}) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(path); err == nil {
			return string(b)
		}
		select {
		case <-ended:
			return ""
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
	}
}
