package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/provider/docker/dockertest"
)

// own describes a machine of ours to the server: dockerd as the test started it,
// whose pods reach the server through their network's gateway. It returns the
// settings to start the server with.
func own(t *testing.T, s *server, e *dockertest.Engine) []string {
	t.Helper()
	network, gateway := e.Network()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), ":")
	hosts, err := json.Marshal(map[string]any{"hosts": []map[string]any{{
		"name": "attic", "engine": "unix://" + e.Socket, "country": "DE", "image": dockertest.Image, "network": network,
		"agent_url": "http://" + dockertest.Forward(t, gateway, "127.0.0.1:"+port),
		"prices":    map[string]string{"H100_80GB": "1.10"}, "disk_gb": 200,
		"simulate": []map[string]any{{"type": "H100_80GB", "socket": "SXM5", "count": 1}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.state, "hosts.json")
	if err := os.WriteFile(path, hosts, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOMEPORT_DOCKER_HOSTS=" + path, agents(t, s), "HOMEPORT_SANDBOX=on", "HOMEPORT_PREFLIGHT=0/0"} // a busy machine may be slow
}

// agents is the setting by which a server has the agent for every processor: this
// host's, for whom it is fetched.
func agents(t *testing.T, s *server) string {
	t.Helper()
	dir := filepath.Join(s.state, "agents")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadFile(filepath.Join(bin, "homeport-agent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.WriteFile(filepath.Join(dir, "homeport-agent-linux-"+arch), agent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return "HOMEPORT_AGENT_DIR=" + dir
}

// at returns an offer of one cloud.
func (u *user) at(cloud string) apitype.Offer {
	u.t.Helper()
	var found apitype.Offer
	until(u.t, "an offer of "+cloud, func() bool {
		for _, list := range steady(u.t, func() (map[string][]apitype.Offer, error) { return u.Resources(u.t.Context()) }) {
			if i := slices.IndexFunc(list, func(o apitype.Offer) bool { return o.Provider == cloud }); i >= 0 {
				found = list[i]
				return true
			}
		}
		return false
	})
	return found
}

// odd writes what volumes must keep, and sums prints it.
const (
	odd = `cd /workspace && head -c 20000000 /dev/urandom >big && mkdir -p a/b && echo deep >a/b/c && ln -s a/b/c link && ln big hard && : >empty &&
truncate -s 5000000 sparse && chmod 4711 a/b/c && touch -d 1969-07-20T20:17:40Z old && echo x >"$(printf 'no\377utf8')" && echo secret >/root/stays && sync`
	sums = `cd /workspace && find . -type f | LC_ALL=C sort | while read -r f; do sha256sum <"$f"; stat -c '%a %h %s %Y' "$f"; done; readlink link; find . | LC_ALL=C sort`
)

// TestVolumeGoesToAnOwnMachineAndBack is the journey with a real Docker engine in
// its middle: the files of a sandbox pod are in the container, to the byte and
// the mode, and what is written there is in the next sandbox pod. The container
// outlives the server and comes back after a restart of the engine, with its
// files and its port.
func TestVolumeGoesToAnOwnMachineAndBack(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	s := newServer(t)
	s.env = append(s.env, own(t, s, e)...)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	first := u.rent(u.offer("H100_80GB", "attic"), v.ID)
	u.run(first, odd)
	want := u.run(first, sums)
	first = u.end(first.ID)

	second := u.rent(u.at("attic"), v.ID)
	if got := u.run(second, sums); got != want {
		t.Errorf("the container holds\n%s\nthe sandbox held\n%s", got, want)
	}
	if got := u.run(second, "ls /root"); got != "" {
		t.Errorf("/root came along: %q", got)
	}
	if got := containers(t, e); len(got) != 1 || !strings.Contains(got[0], second.ID[:8]) {
		t.Errorf("the engine holds %v", got)
	}
	u.checkSecrets(second, strings.TrimSpace(u.run(second, "cat /opt/homeport/token")), readKeys(t, s))
	u.run(second, "echo from the container >/workspace/a/b/d; rm /workspace/empty; echo here >/root/here; sync")
	s.end(syscall.SIGKILL)
	if got := u.run(second, "cat /root/here"); got != "here\n" {
		t.Errorf("without the server it says %q", got)
	}
	e.Restart(syscall.SIGTERM)
	s.start()
	until(t, "log-in after a restart of the engine", func() bool {
		out, err := u.try(second, "cat /root/here /workspace/a/b/d")
		return err == nil && out == "here\nfrom the container\n"
	})
	want = u.run(second, sums)
	second = u.end(second.ID)
	until(t, "the container is gone", func() bool { return len(containers(t, e)) == 0 })

	third := u.rent(u.offer("H100_80GB", "attic", first.Provider), v.ID)
	if got := u.run(third, sums); got != want {
		t.Errorf("the sandbox holds\n%s\nthe container held\n%s", got, want)
	}
	third = u.end(third.ID)
	u.checkMoney("25", []apitype.Pod{first, second, third}, v.ID)
	checkNothingLeft(t, s)
}

// containers lists what the engine holds, by name.
func containers(t *testing.T, e *dockertest.Engine) (names []string) {
	t.Helper()
	res, err := e.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Items {
		names = append(names, strings.Join(c.Names, " "))
	}
	return names
}
