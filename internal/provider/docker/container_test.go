package docker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const uuid1 = "GPU-00000000-0000-0000-0000-000000000001"

// TestContainerIsHeldToItsOffer reads what the engine is asked for.
func TestContainerIsHeldToItsOffer(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	l.SSHPort = 20_007
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	in := d.bodies[0]
	host := in["HostConfig"].(map[string]any)
	got := map[string]any{"user": in["User"], "entrypoint": in["Entrypoint"], "hostname": in["Hostname"], "env": in["Env"]}
	for _, name := range []string{
		"NetworkMode", "PortBindings", "RestartPolicy", "Privileged", "CapAdd", "CapDrop", "Memory", "MemorySwap", "NanoCpus", "PidsLimit",
		"ShmSize", "DeviceRequests", "StorageOpt", "Binds", "PidMode", "IpcMode", "LogConfig", "Init", "SecurityOpt",
	} {
		got[name] = host[name]
	}
	want := map[string]any{
		"user": "root", "entrypoint": []any{"/bin/sh"}, "hostname": "00000001", "env": nil,
		"NetworkMode": "homeport", "PortBindings": map[string]any{"22/tcp": []any{map[string]any{"HostIp": "", "HostPort": "20007"}}},
		"RestartPolicy": map[string]any{"Name": "unless-stopped", "MaximumRetryCount": 0.0}, "Privileged": false,
		"CapAdd": nil, "CapDrop": []any{"CAP_MKNOD", "CAP_NET_RAW"}, "Memory": 17e9, "MemorySwap": 17e9, "NanoCpus": 4e9, "PidsLimit": 16384.0,
		"ShmSize": 8.5e9, "StorageOpt": nil, "Binds": nil, "PidMode": "", "IpcMode": "", "Init": true, "SecurityOpt": nil,
		"LogConfig": map[string]any{"Type": "json-file", "Config": map[string]any{"max-size": "10m", "max-file": "2"}},
		"DeviceRequests": []any{map[string]any{
			"Driver": "nvidia", "Count": 0.0, "DeviceIDs": []any{uuid1}, "Options": nil,
			"Capabilities": []any{[]any{"gpu", "compute", "utility", "video", "graphics"}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	labels := in["Labels"].(map[string]any)
	if labels["dev.homeport.machine"] != l.Name || labels["dev.homeport.gpus"] != uuid1 {
		t.Errorf("labels %v", labels)
	}
	for name, value := range labels {
		if strings.Contains(value.(string), l.Bootstrap.Token) {
			t.Errorf("the pod's token stands in the label %s", name)
		}
	}
	if text, err := json.Marshal(in); err != nil || strings.Contains(string(text), l.Bootstrap.Token) {
		t.Errorf("the pod's token is there for all to see, %v", err)
	}
	if diff := cmp.Diff([]any{"/opt/homeport/start"}, in["Cmd"]); diff != "" {
		t.Error(diff)
	}
	d.Change(m.Ref, func(m *cloudtest.Machine) {
		if m.Words["file"] != "/opt/homeport/start 600" || !strings.Contains(m.Start, "https://homeport.example/agent/install") || !strings.Contains(m.Start, l.Bootstrap.Token) {
			t.Errorf("%s has %s", m.Words["file"], m.Start)
		}
	})
}

// TestDescriptionShapesTheContainer: what an operator may choose.
func TestDescriptionShapesTheContainer(t *testing.T) {
	t.Parallel()
	_, d := fresh(t)
	c := adapter(t, d, func(h *docker.Host) {
		h.GPUs = []docker.Devices{{Type: "RTX4090_24GB", Socket: "PCIe", IDs: []string{"nvidia.com/gpu=0", "nvidia.com/gpu=1"}}}
		h.AgentURL, h.Network, h.Runtime, h.DiskQuota, h.Secure = "http://10.0.0.1:8080", "tenants", "runsc", true, true
	})
	l := request(t, c)
	if l.Offer.Security != "secure_cloud" {
		t.Errorf("the offer is %s", l.Offer.Security)
	}
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	in := d.bodies[0]
	host := in["HostConfig"].(map[string]any)
	got := map[string]any{
		"network": host["NetworkMode"], "runtime": host["Runtime"], "quota": host["StorageOpt"], "env": in["Env"], "gpus": host["DeviceRequests"],
		"port": host["PortBindings"],
	}
	want := map[string]any{
		"network": "tenants", "runtime": "runsc", "quota": map[string]any{"size": "50000000000"}, "env": []any{"HP_BASE=http://10.0.0.1:8080"},
		"gpus": []any{map[string]any{"Driver": "cdi", "Count": 0.0, "DeviceIDs": []any{"nvidia.com/gpu=0"}, "Options": nil, "Capabilities": nil}},
		"port": map[string]any{"22/tcp": []any{map[string]any{"HostIp": "", "HostPort": ""}}}, // the engine chooses
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	d.Change(m.Ref, func(m *cloudtest.Machine) {
		if !strings.Contains(m.Start, "http://10.0.0.1:8080/agent/install") {
			t.Errorf("it starts with %s", m.Start)
		}
	})
}

// TestSimulatedGPUsAreNoDevices: they are counted, and asked of nobody.
func TestSimulatedGPUsAreNoDevices(t *testing.T) {
	t.Parallel()
	_, d := fresh(t)
	c := adapter(t, d, func(h *docker.Host) { h.Simulate = []docker.Devices{{Type: "RTX4090_24GB", Socket: "PCIe", Count: 2}} })
	if n := len(offers(t, c)); n != 2 {
		t.Errorf("%d offers of two simulated GPUs", n)
	}
	if about := c.Capabilities(); !about.NoGPUs || !strings.Contains(about.Notice, "simulated") {
		t.Errorf("nobody is told: %+v", about)
	}
	if _, err := c.Launch(t.Context(), request(t, c)); err != nil {
		t.Fatal(err)
	}
	if got := d.bodies[0]["HostConfig"].(map[string]any)["DeviceRequests"]; got != nil {
		t.Errorf("devices %v", got)
	}
	if n := len(offers(t, c)); n != 1 {
		t.Errorf("%d offers with one of two let", n)
	}
}

// TestHostThatCannotStartPodsSellsNothing: and says what to do.
func TestHostThatCannotStartPodsSellsNothing(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	d.set("image")
	if list, err := c.Offers(t.Context()); err == nil || !strings.Contains(err.Error(), "pull or import it") {
		t.Errorf("without the image: %v, %v", list, err)
	}
	if err := c.Prepare(t.Context()); err != nil || !d.lack("image") {
		t.Errorf("an image was pulled that nobody asked for: %v", err)
	}
	pulls := adapter(t, d, func(h *docker.Host) { h.Pull = true })
	if list, err := pulls.Offers(t.Context()); err == nil || !strings.Contains(err.Error(), "being pulled") {
		t.Errorf("while the image is pulled: %v, %v", list, err)
	}
	for range 2 {
		if err := pulls.Prepare(t.Context()); err != nil {
			t.Error(err)
		}
	}
	offers(t, c)
	d.set("network")
	offers(t, c) // and it is made
	if d.lack("network") {
		t.Error("the pods' network was not made")
	}
	_, d = fresh(t)
	d.smi = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\r\n"
	if list, err := adapter(t, d, nil).Offers(t.Context()); err == nil || !strings.Contains(err.Error(), "communicate with the NVIDIA driver") {
		t.Errorf("without GPUs: %v, %v", list, err)
	}
}

// TestGPUsAreReadOffTheDriversNames: one row per form of name.
func TestGPUsAreReadOffTheDriversNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"NVIDIA A100-SXM4-80GB, 81920, Disabled":                       "A100_80GB SXM4",
		"NVIDIA A100-SXM4-80GB, 81920, Enabled":                        "", // cut into instances
		"NVIDIA A100 80GB PCIe, 81920, Disabled":                       "A100_80GB PCIe",
		"NVIDIA A100-PCIE-40GB, 40960, Disabled":                       "A100_40GB PCIe",
		"NVIDIA A10G, 23028, [N/A]":                                    "A10_24GB PCIe",
		"NVIDIA B200, 183359, Disabled":                                "B200_180GB SXM6",
		"NVIDIA GeForce RTX 3090 Ti, 24564, [N/A]":                     "RTX3090Ti_24GB PCIe",
		"NVIDIA GeForce RTX 4090 Laptop GPU, 16376, [N/A]":             "",
		"NVIDIA GeForce RTX 4090 D, 24564, [N/A]":                      "",
		"NVIDIA GeForce RTX 5090, 32607, [N/A]":                        "RTX5090_32GB PCIe",
		"NVIDIA GH200 480GB, 97871, Disabled":                          "GH200_96GB PCIe",
		"NVIDIA H100 80GB HBM3, 81559, Disabled":                       "H100_80GB SXM5",
		"NVIDIA H100 NVL, 95830, Disabled":                             "H100NVL_94GB PCIe",
		"NVIDIA H100 PCIe, 81559, Disabled":                            "H100_80GB PCIe",
		"NVIDIA H200, 143771, Disabled":                                "H200_141GB SXM5",
		"NVIDIA L40S, 46068, [N/A]":                                    "L40S_48GB PCIe",
		"NVIDIA RTX 6000 Ada Generation, 49140, [N/A]":                 "RTX6000Ada_48GB PCIe",
		"NVIDIA RTX A6000, 49140, [N/A]":                               "A6000_48GB PCIe",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition, 97887, Enabled": "",
		"Quadro RTX 6000, 24576, [N/A]":                                "RTX6000_24GB PCIe",
		"Tesla T4, 15360, [N/A]":                                       "T4_16GB PCIe",
		"Tesla V100-SXM2-16GB, 16160, [N/A]":                           "V100_16GB SXM2",
		"NVIDIA GeForce GTX 1080, 8192, [N/A]":                         "",
		"NVIDIA L4, [N/A], [N/A]":                                      "",
	} {
		_, d := fresh(t)
		d.smi = "GPU-1, " + line + "\r\n"
		c := adapter(t, d, func(h *docker.Host) {
			h.Prices = map[string]string{strings.Split(want+" ", " ")[0]: "1"}
			if want == "" {
				h.Prices = map[string]string{"RTX4090_24GB": "1"}
			}
		})
		list, err := c.Offers(t.Context())
		got := ""
		if len(list) > 0 {
			got = list[0].GPUType + " " + list[0].Socket
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestPriceComesByConfiguration(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	dearer := adapter(t, d, func(h *docker.Host) { h.Prices["RTX4090_24GB"] = "0.36" })
	if _, err := dearer.Launch(t.Context(), l); !provider.NoMachine(err) || len(d.bodies) != 0 {
		t.Errorf("the price went up, and the launch: %v", err)
	}
}
