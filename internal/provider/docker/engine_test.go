package docker_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/docker/dockertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// real makes an adapter on a real engine whose host has two GPUs that are not there.
func real(t *testing.T, e *dockertest.Engine, change func(*docker.Host)) *docker.Cloud {
	t.Helper()
	h := host("unix://" + e.Socket)
	h.Address, h.Image = "127.0.0.1", dockertest.Image
	h.Simulate = []docker.Devices{{Type: "RTX4090_24GB", Socket: "PCIe", Count: 2}}
	if change != nil {
		change(&h)
	}
	c, err := docker.New(docker.Config{Host: h, Clock: clock.New(), Logger: cloudtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installer is a node in which nothing is installed: the container writes down
// what it was given, and answers on its SSH port.
func installer(t *testing.T, e *dockertest.Engine) (network, address string) {
	t.Helper()
	const script = `echo "$HP_TOKEN $HP_MODE" >/run/given
echo start >>/root/starts
exec bash -c 'while :; do sleep 1; done'
# end`
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, script) }))
	t.Cleanup(node.Close)
	network, gateway := e.Network()
	return network, "http://" + dockertest.Forward(t, gateway, strings.TrimPrefix(node.URL, "http://"))
}

func until(t *testing.T, what string, check func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-limit.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// TestContainerLivesOnARealEngine goes through a pod's life on dockerd: the
// bootstrap runs, the limits hold, the port is the one asked for and stays
// through a restart of the engine, and nothing is left of it at the end.
func TestContainerLivesOnARealEngine(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	network, address := installer(t, e)
	c := real(t, e, func(h *docker.Host) { h.Network, h.AgentURL = network, address })
	l := request(t, c)
	l.SSHPort = freePort(t)
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		m = find(t, c, l.Name)
		return m.State == provider.Running
	}
	until(t, "it runs", running)
	if m.Host != "127.0.0.1" || m.SSHPort != l.SSHPort || m.CreatedAt.IsZero() {
		t.Errorf("it is %+v", m)
	}
	until(t, "the installer ran", func() bool { return run(t, e, m.Ref, "cat /run/given") == "token-of-the-instance container\n" })
	if got := run(t, e, m.Ref, "cat /proc/sys/kernel/hostname; nproc; id -u; ls -d /cache"); !strings.HasPrefix(got, "00000001\n") {
		t.Errorf("inside: %q", got)
	}
	in, err := e.ContainerInspect(t.Context(), m.Ref, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hc := in.Container.HostConfig
	if hc.Memory != int64(l.Offer.MemoryGB)*1e9 || hc.NanoCPUs != int64(l.Offer.VCPU)*1e9 || *hc.PidsLimit != 16384 || hc.Privileged {
		t.Errorf("limits %d bytes, %d, %d", hc.Memory, hc.NanoCPUs, *hc.PidsLimit)
	}
	if got := run(t, e, m.Ref, "grep CapEff /proc/self/status; true"); strings.Contains(got, "a80425fb") || !strings.Contains(got, "a00405fb") {
		t.Errorf("rights: %q", got) // Docker's less NET_RAW and MKNOD
	}

	run(t, e, m.Ref, "echo kept >/root/kept")
	e.Restart(syscall.SIGTERM)
	until(t, "it runs again", running)
	if m.SSHPort != l.SSHPort {
		t.Errorf("after a restart of the engine its port is %d", m.SSHPort)
	}
	until(t, "it was started again", func() bool { return run(t, e, m.Ref, "cat /root/starts") == "start\nstart\n" })
	if got := run(t, e, m.Ref, "cat /root/kept"); got != "kept\n" {
		t.Errorf("after a restart of the engine it holds %q", got)
	}

	for range 3 {
		if err := c.Terminate(t.Context(), m.Ref); err != nil {
			t.Error(err)
		}
	}
	until(t, "it is gone", func() bool {
		list, err := c.Find(t.Context(), l.Name)
		return err == nil && len(list) == 0
	})
	volumes, err := e.VolumeList(t.Context(), client.VolumeListOptions{})
	if err != nil || len(volumes.Items) != 0 {
		t.Errorf("volumes are left: %v, %v", volumes.Items, err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// run runs a command in a container and returns what it printed.
func run(t *testing.T, e *dockertest.Engine, ref, command string) string {
	t.Helper()
	made, err := e.ExecCreate(t.Context(), ref, client.ExecCreateOptions{Cmd: []string{"/bin/sh", "-c", command}, AttachStdout: true, AttachStderr: true, TTY: true})
	if err != nil {
		return err.Error()
	}
	io, err := e.ExecAttach(t.Context(), made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return err.Error()
	}
	defer io.Close()
	var out strings.Builder
	_, _ = io.Reader.WriteTo(&out)
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// TestRealEngineSaysItInTheseWords: the refusals that the adapter tells apart.
func TestRealEngineSaysItInTheseWords(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	network, address := installer(t, e)
	c := real(t, e, func(h *docker.Host) { h.Network, h.AgentURL = network, address })
	l := request(t, c)
	taken, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	with := func(change func(*docker.Host)) *docker.Cloud {
		return real(t, e, func(h *docker.Host) {
			h.Network, h.AgentURL = network, address
			change(h)
		})
	}
	for name, one := range map[string]struct {
		cloud *docker.Cloud
		port  int
		want  error
	}{
		"a port in use": {c, taken.Addr().(*net.TCPAddr).Port, provider.ErrPortTaken},
		"no image":      {with(func(h *docker.Host) { h.Image = "homeport-test:2" }), 0, provider.ErrRefused},
		"no network":    {with(func(h *docker.Host) { h.Network = "nowhere" }), 0, provider.ErrRefused},
		"no runtime":    {with(func(h *docker.Host) { h.Runtime = "nothing" }), 0, provider.ErrRefused},
		"no quota":      {with(func(h *docker.Host) { h.DiskQuota = true }), 0, provider.ErrRefused},
		"no driver of the GPUs": {with(func(h *docker.Host) {
			h.Simulate, h.GPUs = nil, []docker.Devices{{Type: "RTX4090_24GB", Socket: "PCIe", IDs: []string{"0"}}}
		}), 0, provider.ErrRefused},
	} {
		mine := l
		mine.SSHPort = one.port
		if _, err := one.cloud.Launch(t.Context(), mine); !errors.Is(err, one.want) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
		if list, err := c.Find(t.Context(), "hp-"); err != nil || len(list) != 0 {
			t.Fatalf("%s: it left %v, %v", name, list, err)
		}
	}
	if list, err := with(func(h *docker.Host) { h.Simulate = nil }).Offers(t.Context()); err == nil {
		t.Errorf("a host without GPUs offers %v", list)
	}

	// Twice the same launch is one container; an engine that is away is not asked.
	one, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
		t.Errorf("launched again: %+v, %v", two, err)
	}
	if list, err := c.Find(t.Context(), l.Name); err != nil || len(list) != 1 || list[0].Ref != one.Ref {
		t.Errorf("after it was launched again there are %+v, %v", list, err)
	}
	until(t, "the engine chose a port", func() bool { return find(t, c, l.Name).SSHPort != 0 })
	if _, err := e.ContainerStop(t.Context(), one.Ref, client.ContainerStopOptions{}); err != nil {
		t.Fatal(err)
	}
	if m := find(t, c, l.Name); m.State != provider.Failed || m.Reason == "" {
		t.Errorf("stopped by hand it is %+v", m)
	}
	if err := c.Terminate(t.Context(), one.Ref); err != nil {
		t.Error(err)
	}
	if _, err := with(func(h *docker.Host) { h.Engine += ".gone" }).Launch(t.Context(), l); !errors.Is(err, provider.ErrUnreachable) {
		t.Errorf("launch at an engine that is away: %v", err)
	}
}

// TestOwnNetworkAsksForIsolation: it is made with the first look at the host. The
// engine's own firewall rules then keep pods apart; this one's are off.
func TestOwnNetworkAsksForIsolation(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	offers(t, real(t, e, nil))
	offers(t, real(t, e, nil))
	n, err := e.NetworkInspect(t.Context(), "homeport", client.NetworkInspectOptions{})
	if err != nil || n.Network.Options["com.docker.network.bridge.enable_icc"] != "false" {
		t.Errorf("the pods' network: %+v, %v", n.Network, err)
	}
}
