package docker

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/provider"
)

// sshPort is where the agent listens in a container.
const sshPort = 22

// maxPIDs is how many processes a pod may have, beside what its offer says.
const maxPIDs = 16384

// dropped are rights that a container has by default and a tenant must not: to
// forge packets beside other tenants, and to make device files.
var dropped = []string{"NET_RAW", "MKNOD"}

// options describe a pod's container. It is started again with the engine and
// the host, unless somebody stopped it by hand.
func (c *Cloud) options(l provider.Launch, onNetwork string, chosen []device) client.ContainerCreateOptions {
	ids := make([]string, len(chosen))
	for i, d := range chosen {
		ids[i] = d.id
	}
	memory, pids, port := int64(l.Offer.MemoryGB)*1e9, int64(maxPIDs), network.MustParsePort(strconv.Itoa(sshPort)+"/tcp")
	published := network.PortBinding{}
	if l.SSHPort != 0 {
		published.HostPort = strconv.Itoa(l.SSHPort)
	}
	var env []string
	if c.host.AgentURL != "" {
		env = append(env, "HP_BASE="+c.host.AgentURL)
	}
	again := true
	o := client.ContainerCreateOptions{
		Name: l.Name,
		Config: &container.Config{
			Hostname: l.Bootstrap.Hostname, User: "root", Env: env, Image: c.host.Image, WorkingDir: "/",
			Entrypoint: []string{"/bin/sh"}, Cmd: []string{payloadFile}, ExposedPorts: network.PortSet{port: {}},
			Labels: map[string]string{
				labelMachine: l.Name, labelGPUs: strings.Join(ids, ","),
				labelAsked: strconv.FormatInt(c.clock.Wall().Unix(), 10),
			},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(onNetwork), PortBindings: network.PortMap{port: {published}},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyUnlessStopped}, Init: &again, Runtime: c.host.Runtime,
			LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "2"}},
			CapDrop:   dropped, ShmSize: memory / 2,
			Resources: container.Resources{
				Memory: memory, MemorySwap: memory, NanoCPUs: int64(l.Offer.VCPU) * 1e9, PidsLimit: &pids,
				DeviceRequests: requests(chosen, ids),
			},
		},
	}
	if c.host.DiskQuota {
		o.HostConfig.StorageOpt = map[string]string{"size": strconv.FormatInt(int64(l.Offer.DiskGB)*1e9, 10)}
	}
	return o
}

// requests ask the engine for GPUs: by CDI where their ids are names of it.
func requests(chosen []device, ids []string) []container.DeviceRequest {
	switch {
	case chosen[0].simulated:
		return nil
	case slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "=") }):
		return []container.DeviceRequest{{Driver: "cdi", DeviceIDs: ids}}
	}
	return []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: ids, Capabilities: [][]string{{"gpu", "compute", "utility", "video", "graphics"}}}}
}

// refused reads the engine's words of a create. What it does not say for
// certain stays as it is: a container may be there.
func refused(err error) error {
	f, ok := failed(err)
	switch {
	case !ok, provider.NoMachine(err):
		return err
	case f.says("--storage-opt is supported only"): // a 500 of engines that cannot hold a quota
		return provider.ErrRefused.Because(err)
	case f.status >= 400 && f.status < 500 && f.status != http.StatusConflict && f.status != http.StatusRequestTimeout:
		return provider.ErrRefused.Because(err)
	}
	return err
}

// Words of an engine that could not start a container, which then does not run.
var (
	portWords  = []string{"port is already allocated", "address already in use"}
	spentWords = []string{"unknown device", "device error", "no space left on device", "cannot allocate memory"}
	startWords = []string{
		"oci runtime create failed", "could not select device driver", "failed to create task", "failed to create shim",
		"failed to set up container networking", "driver failed programming external connectivity", "failed to create endpoint",
		"nvidia-container-cli", "error running hook", "unknown or invalid runtime",
	}
)

// stillborn reads the engine's words of a start: the fault of a container that
// certainly does not run, or nil.
func stillborn(err error) error {
	f, ok := failed(err)
	switch {
	case errors.Is(err, provider.ErrRateLimited): // nothing was done
		return err
	case !ok || f.status < 400:
		return nil
	case f.says(portWords...):
		return provider.ErrPortTaken.Because(provider.ErrRefused.Because(err))
	case f.says(spentWords...):
		return provider.ErrNoCapacity.Because(err)
	case f.says(startWords...):
		return provider.ErrRefused.Because(err)
	case f.status == http.StatusBadRequest, f.status == http.StatusNotFound, f.status == http.StatusForbidden, f.status == http.StatusUnauthorized:
		return provider.ErrRefused.Because(err)
	}
	return nil
}
