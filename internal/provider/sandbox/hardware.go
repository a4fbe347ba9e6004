package sandbox

import (
	"strings"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/provider"
)

// hardware is what the agent of a machine finds: what was sold, but for what a
// scripted fault says.
func hardware(o provider.Offer, fault string) *agentapi.Checked {
	h := &agentapi.Checked{Driver: "570.86.10", CUDA: true, DiskRate: 1_000_000_000, NetRate: 1_000_000_000}
	name, gib := "NVIDIA "+strings.ReplaceAll(o.GPUType, "_", " "), int64(o.GPUMemoryGB/o.GPUCount)
	n := o.GPUCount
	switch fault {
	case "wrong_gpu":
		name, gib = "NVIDIA L4", 24
		if strings.HasPrefix(o.GPUType, "L4_") {
			name, gib = "Tesla T4", 16
		}
	case "few_gpus":
		n--
	case "no_cuda":
		h.CUDAError = "cuInit: error 802"
	case "slow_disk":
		h.DiskRate = 3_400_000
	case "slow_network":
		h.NetRate = 90_000
	}
	for range n {
		h.GPUs = append(h.GPUs, agentapi.GPU{Name: name, MemoryMiB: gib * 1024})
	}
	return h
}
