//go:build linux

package sandbox_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/sandboxinit"
)

func TestMachineGetsWhatItsAgentNeeds(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	m := launch(t, s.Clouds()["saltpier"], "hp-abcd-00000001-1")
	if m.State != provider.Running || m.Host != "127.0.0.1" || m.Ref == m.Name {
		t.Errorf("launched %+v", m)
	}
	var pod sandboxinit.Pod
	if err := json.Unmarshal([]byte(ask(t, m, "pod")), &pod); err != nil {
		t.Fatal(err)
	}
	want := sandboxinit.Pod{
		Socket: "/run/homeport/node.sock", Token: "token-of-" + m.Name, Hostname: "abcd1234",
		StateDir: "/var/lib/homeport-agent", Workspace: "/workspace", Rootless: os.Geteuid() != 0, Limits: pod.Limits,
		Hardware: &agentapi.Checked{
			GPUs: []agentapi.GPU{{Name: "NVIDIA H100 80GB", MemoryMiB: 80 * 1024}}, Driver: "570.86.10", CUDA: true,
			DiskRate: 1_000_000_000, NetRate: 1_000_000_000,
		},
	}
	if a, b := toJSON(t, pod), toJSON(t, want); a != b {
		t.Errorf("pod %s, want %s", a, b)
	}
	if !strings.HasPrefix(pod.Limits, "Limits: at most 4096 processes") {
		t.Errorf("limits %q", pod.Limits)
	}
	if got := ask(t, m, "call /agent/v1/hello"); got != "200 node says hello" {
		t.Errorf("agent API answered %q", got)
	}
	if got := ask(t, m, "call /api/pods"); !strings.HasPrefix(got, "404 ") {
		t.Errorf("another path of the node answered %q", got)
	}
	// The path of PID 1's program is of no use in there; the link and AgentPath are.
	for _, self := range []string{"/proc/1/exe", sandboxinit.AgentPath} {
		if got := ask(t, m, "init "+self+" stage1 hold </dev/null && echo ran"); got != "ran" {
			t.Errorf("the agent runs itself again through %s: %q", self, got)
		}
	}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		_ = l.Close()
		if got := askAt(t, "::1", m.SSHPort, "user hostname"); got != "abcd1234" {
			t.Errorf("over IPv6 the host name is %q", got)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPodSeesNothingOfTheHost(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	_, port, _ := net.SplitHostPort(host.Addr().String())
	m := launch(t, s.Clouds()["saltpier"], "hp-abcd-00000001-1")
	for _, c := range []struct{ script, want string }{
		{"cat /etc/shadow >/dev/null 2>&1; echo $?", "1"},
		{"cat " + secret + " >/dev/null 2>&1; echo $?", "1"},
		{"ls -A /home /mnt /srv /root", "/home:\n\n/mnt:\n\n/root:\n\n/srv:"},
		{"cat /proc/1/comm; ls /proc | grep -c '^[0-9]*$' | awk '{print ($1 < 9)}'", "homeport-agent\n1"},
		{"bash -c '</dev/tcp/127.0.0.1/" + port + "' 2>/dev/null; echo $?", "1"},
		{"ls /sys/class /sys/fs 2>/dev/null | wc -l", "0"},
		{"cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '", "lo"},
		{"mount -t tmpfs none /mnt 2>/dev/null || echo refused", "refused"},
		{"echo 1 2>/dev/null > /proc/sys/vm/drop_caches || echo refused", "refused"},
		{"cat /proc/1/environ /proc/1/mem 2>/dev/null | wc -c", "0"},
		{"grep token /proc/1/environ /proc/1/cmdline || echo none", "none"},
		{"echo x > /opt/homeport/bin/homeport-agent || chmod 777 /opt/homeport/bin/homeport-agent || echo kept", "kept"},
		{"rm -f /run/homeport/node.sock; test -S /run/homeport/node.sock && echo kept", "kept"},
		{"ls -l /opt/homeport/bin | grep -c 'r-x.*homeport-agent'", "1"},
		{"touch /run/homeport/x || echo refused", "refused"},
		{"kill -TERM 1; kill -KILL 1; kill -SEGV 1; sleep 0.1; cat /proc/1/comm", "homeport-agent"},
		{"echo text > /dev/null && head -c 4 /dev/zero | wc -c && test -c /dev/ptmx && echo devices", "4\ndevices"},
	} {
		got := ask(t, m, "user ("+c.script+") 2>/dev/null")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
	}
}

func TestPodWritesStayInThePod(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	c := s.Clouds()["saltpier"]
	one, two := launch(t, c, "hp-abcd-00000001-1"), launch(t, c, "hp-abcd-00000002-1")
	ask(t, one, "user echo mine > /etc/mine; echo mine > /workspace/mine; echo mine > /root/mine; echo mine > /tmp/mine; rm /etc/profile")
	if got := ask(t, one, "user cat /etc/mine /workspace/mine /root/mine /tmp/mine"); got != "mine\nmine\nmine\nmine" {
		t.Errorf("the pod's own files: %q", got)
	}
	if got := ask(t, two, "user ls /etc/mine /workspace/mine /root/mine /tmp/mine 2>/dev/null; test -f /etc/profile && echo whole"); got != "whole" {
		t.Errorf("another pod sees %q", got)
	}
	if os.Geteuid() == 0 {
		ask(t, one, "user echo mine > /usr/bin/homeport-test-mine; rm /usr/bin/env; chown 1000 /workspace/mine")
		if _, err := os.Stat("/usr/bin/homeport-test-mine"); err == nil {
			t.Error("a write to /usr reached the host")
		}
		if _, err := os.Stat("/usr/bin/env"); err != nil {
			t.Error("a removal in /usr reached the host")
		}
		if got := ask(t, one, "user ls /usr/bin/homeport-test-mine; stat -c %u /workspace/mine"); got != "/usr/bin/homeport-test-mine\n1000" {
			t.Errorf("the pod's own /usr and owners: %q", got)
		}
	}
	if err := c.Terminate(t.Context(), one.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "saltpier", one.Name)); !os.IsNotExist(err) {
		t.Errorf("folder of an ended machine: %v", err)
	}
}

func TestUserProcessesAreLimited(t *testing.T) {
	t.Parallel()
	s, dir := fresh(t)
	m := launch(t, s.Clouds()["saltpier"], "hp-abcd-00000001-1")
	if got := ask(t, m, "user grep -E 'Cap(Eff|Bnd)' /proc/self/status"); got != "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb" {
		t.Errorf("rights of a user's process: %q", got)
	}
	for _, g := range controlGroups(t, dir) {
		if b, err := os.ReadFile(filepath.Join(g, "pids.max")); err == nil {
			if strings.TrimSpace(string(b)) != "4096" {
				t.Errorf("processes are limited to %s", b)
			}
			return
		}
	}
	if got := ask(t, m, "user grep processes /proc/self/limits"); !strings.Contains(got, " 4096 ") {
		t.Errorf("processes are not limited: %q", got)
	}
}
