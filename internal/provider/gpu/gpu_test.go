package gpu_test

import (
	"regexp"
	"strconv"
	"testing"

	"homeport.dev/homeport/internal/provider/gpu"
)

func TestEveryTokenSaysItsMemory(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[A-Za-z0-9_]+_([0-9]+)GB$`)
	seen := map[string]bool{}
	for _, token := range gpu.Tokens() {
		m := form.FindStringSubmatch(token)
		if m == nil || seen[token] {
			t.Errorf("token %q is malformed or there twice", token)
			continue
		}
		seen[token] = true
		size, _ := strconv.Atoi(m[1])
		one, ok := gpu.Lookup(token)
		if !ok || one.VRAMGB != size {
			t.Errorf("%s has %d GB", token, one.VRAMGB)
		}
		if found, ok := gpu.Find(token, 0); !ok || found != one {
			t.Errorf("%s is not found by its own name: %+v", token, found)
		}
	}
}

func TestNamesOfCloudsBecomeTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		vram int
		want string // "" = not sold
	}{
		{"H100", 80, "H100_80GB"},
		{"NVIDIA H100 80GB HBM3", 80, ""}, // a product's full name is each adapter's own table
		{"NVIDIA H100", 80, "H100_80GB"},
		{"h100_sxm5", 80, "H100_80GB"},
		{"H100", 94, "H100NVL_94GB"},
		{"H100 NVL", 94, "H100NVL_94GB"},
		{"H100", 0, ""},   // of two sizes, and the cloud does not say which
		{"H100", 640, ""}, // a total is no size of one GPU
		{"H200", 141, "H200_141GB"},
		{"H200", 143, "H200_141GB"},
		{"A100", 40, "A100_40GB"},
		{"A100", 80, "A100_80GB"},
		{"A100_80G", 80, "A100_80GB"},
		{"A100", 48, ""},
		{"A100_80G", 0, "A100_80GB"},
		{"GeForce RTX 4090", 24, "RTX4090_24GB"},
		{"NVIDIA GeForce RTX 3080 Ti", 12, "RTX3080Ti_12GB"},
		{"RTX6000Ada", 48, "RTX6000Ada_48GB"},
		{"RTX 6000 Ada Generation", 48, "RTX6000Ada_48GB"},
		{"RTX6000", 24, "RTX6000_24GB"},
		{"RTX6000", 48, "RTX6000Ada_48GB"},
		{"RTX PRO 6000", 96, "RTX_PRO_6000B_96GB"},
		{"B200", 192, "B200_180GB"},
		{"B200", 180, "B200_180GB"},
		{"V100", 16, "V100_16GB"},
		{"V100", 32, "V100_32GB"},
		{"GH200", 96, "GH200_96GB"},
		{"L40", 48, "L40_48GB"},
		{"L40S", 45, "L40S_48GB"},
		{"MI300X", 192, ""},
		{"Gaudi3", 128, ""},
		{"", 80, ""},
	} {
		got, ok := gpu.Find(c.name, c.vram)
		if got.Token != c.want || ok != (c.want != "") {
			t.Errorf("%s with %d GB is %q, want %q", c.name, c.vram, got.Token, c.want)
		}
	}
}

func TestSocketsPromiseNoMoreThanTheCloudSaid(t *testing.T) {
	t.Parallel()
	h100, _ := gpu.Lookup("H100_80GB")
	a100, _ := gpu.Lookup("A100_80GB")
	l4, _ := gpu.Lookup("L4_24GB")
	for _, c := range []struct {
		name string
		of   gpu.Type
		want string
	}{
		{"pcie", h100, gpu.PCIe},
		{"PCIe", h100, gpu.PCIe},
		{"", h100, gpu.PCIe},
		{"infiniband", h100, gpu.PCIe},
		{"sxm5", h100, gpu.SXM5},
		{"SXM4", a100, gpu.SXM4},
		{"SXM", h100, gpu.SXM5},
		{"sxm", a100, gpu.SXM4},
		{"sxm", l4, gpu.PCIe},
	} {
		if got := gpu.Socket(c.name, c.of); got != c.want {
			t.Errorf("%q of %s is %s, want %s", c.name, c.of.Token, got, c.want)
		}
	}
}
