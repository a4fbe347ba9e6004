package gpu_test

import (
	"testing"

	"homeport.dev/homeport/internal/provider/gpu"
)

// Names and sizes as nvidia-smi prints them.
func TestNamesOfDriversAreKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		mib  int64
		want string
	}{
		{"NVIDIA H100 80GB HBM3", 81559, "H100_80GB"},
		{"NVIDIA H100 PCIe", 81559, "H100_80GB"},
		{"NVIDIA H100 NVL", 95830, "H100NVL_94GB"},
		{"NVIDIA H200", 143771, "H200_141GB"},
		{"NVIDIA A100-SXM4-80GB", 81920, "A100_80GB"},
		{"NVIDIA A100-SXM4-40GB", 40960, "A100_40GB"},
		{"NVIDIA A100 80GB PCIe", 81920, "A100_80GB"},
		{"NVIDIA A100-PCIE-40GB", 40960, "A100_40GB"},
		{"NVIDIA A10", 23028, "A10_24GB"},
		{"NVIDIA L4", 23034, "L4_24GB"},
		{"NVIDIA L40S", 46068, "L40S_48GB"},
		{"NVIDIA B200", 183359, "B200_180GB"},
		{"NVIDIA GH200 480GB", 97871, "GH200_96GB"},
		{"NVIDIA GeForce RTX 4090", 24564, "RTX4090_24GB"},
		{"NVIDIA GeForce RTX 3090 Ti", 24564, "RTX3090Ti_24GB"},
		{"NVIDIA RTX A6000", 49140, "A6000_48GB"},
		{"NVIDIA RTX 6000 Ada Generation", 49140, "RTX6000Ada_48GB"},
		{"Quadro RTX 6000", 24220, "RTX6000_24GB"},
		{"Tesla V100-SXM2-16GB", 16384, "V100_16GB"},
		{"Tesla V100-SXM2-32GB", 32768, "V100_32GB"},
		{"Tesla T4", 15360, "T4_16GB"},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "RTX_PRO_6000B_96GB"},
		{"NVIDIA H100 80GB HBM3 of ten", 10240, ""},
		{"NVIDIA GeForce RTX 4090 D", 24564, ""},
		{"NVIDIA GeForce RTX 5090 Laptop GPU", 24463, ""},
		{"NVIDIA Quantum 9000", 81920, ""},
	} {
		if got, _ := gpu.Named(tt.name, tt.mib); got.Token != tt.want {
			t.Errorf("%s with %d MiB is %q, want %q", tt.name, tt.mib, got.Token, tt.want)
		}
	}
}
