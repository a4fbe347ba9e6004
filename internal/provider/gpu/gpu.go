// Package gpu is the one vocabulary of GPUs: the tokens that the product, its
// API and its pages know, how much memory each has, and how the names that
// clouds use become tokens. Only NVIDIA's are in it, since pods promise CUDA.
// A name that is not understood is no token: its offer is not sold.
package gpu

import (
	"slices"
	"strings"
)

// A Type is one GPU model with one size of memory.
type Type struct {
	Token  string // e.g. H100_80GB
	VRAMGB int    // of one GPU
	ARM    bool   // sits beside an ARM processor: needs the agent for arm64
}

// types are the tokens of Prime's own vocabulary that name a GPU and its
// memory, and the few models beyond it that other clouds sell.
var types = []struct {
	Type
	names []string // further spellings of the model, without its memory
}{
	{Type{"A10_24GB", 24, false}, []string{"a10", "a10g"}},
	{Type{"A100_40GB", 40, false}, []string{"a100", "a10040g", "a100pcie", "a100sxm4"}},
	{Type{"A100_80GB", 80, false}, []string{"a100", "a10080g", "a100x", "a100pcie", "a100sxm4", "a100sxm"}},
	{Type{"A16_16GB", 16, false}, []string{"a16"}},
	{Type{"A30_24GB", 24, false}, []string{"a30"}},
	{Type{"A40_48GB", 48, false}, []string{"a40"}},
	{Type{"A2000_6GB", 6, false}, []string{"a2000", "rtxa2000"}},
	{Type{"A2000_12GB", 12, false}, []string{"a2000", "rtxa2000"}},
	{Type{"A4000_16GB", 16, false}, []string{"a4000", "rtxa4000"}},
	{Type{"A4500_20GB", 20, false}, []string{"a4500", "rtxa4500"}},
	{Type{"A5000_24GB", 24, false}, []string{"a5000", "rtxa5000"}},
	{Type{"A6000_48GB", 48, false}, []string{"a6000", "rtxa6000"}},
	{Type{"B200_180GB", 180, false}, []string{"b200", "b200sxm", "b200sxm6"}},
	{Type{"B300_262GB", 262, false}, []string{"b300", "b300sxm", "b300sxm6"}},
	{Type{"H100_80GB", 80, false}, []string{"h100", "h100pcie", "h100sxm", "h100sxm5", "h10080g"}},
	{Type{"H100NVL_94GB", 94, false}, []string{"h100nvl", "h100"}},
	{Type{"H200_96GB", 96, false}, nil},
	{Type{"H200_141GB", 141, false}, []string{"h200", "h200sxm", "h200sxm5"}},
	{Type{"H200NVL_141GB", 141, false}, []string{"h200nvl"}},
	{Type{"GH200_96GB", 96, true}, []string{"gh200"}},
	{Type{"GH200_480GB", 480, true}, nil},
	{Type{"GH200_624GB", 624, true}, nil},
	{Type{"L4_24GB", 24, false}, []string{"l4"}},
	{Type{"L40_48GB", 48, false}, []string{"l40"}},
	{Type{"L40S_48GB", 48, false}, []string{"l40s"}},
	{Type{"P4_8GB", 8, false}, []string{"p4", "teslap4"}},
	{Type{"P40_24GB", 24, false}, []string{"p40", "teslap40"}},
	{Type{"P100_16GB", 16, false}, []string{"p100", "teslap100"}},
	{Type{"T4_16GB", 16, false}, []string{"t4", "teslat4"}},
	{Type{"V100_16GB", 16, false}, []string{"v100", "teslav100", "v100sxm2"}},
	{Type{"V100_32GB", 32, false}, []string{"v100", "teslav100", "v10032g", "v100sxm2", "v100sxm3"}},
	{Type{"RTX2000Ada_16GB", 16, false}, []string{"rtx2000ada", "2000ada"}},
	{Type{"RTX4000Ada_20GB", 20, false}, []string{"rtx4000ada", "4000ada"}},
	{Type{"RTX5000Ada_32GB", 32, false}, []string{"rtx5000ada", "5000ada"}},
	{Type{"RTX6000Ada_48GB", 48, false}, []string{"rtx6000ada", "6000ada", "a6000ada", "rtx6000"}},
	{Type{"RTX3070_8GB", 8, false}, []string{"rtx3070", "3070"}},
	{Type{"RTX3080_10GB", 10, false}, []string{"rtx3080", "3080"}},
	{Type{"RTX3080Ti_12GB", 12, false}, []string{"rtx3080ti", "3080ti"}},
	{Type{"RTX3090_24GB", 24, false}, []string{"rtx3090", "3090"}},
	{Type{"RTX3090Ti_24GB", 24, false}, []string{"rtx3090ti", "3090ti"}},
	{Type{"RTX4000_8GB", 8, false}, []string{"rtx4000", "quadrortx4000"}},
	{Type{"RTX4070Ti_12GB", 12, false}, []string{"rtx4070ti", "4070ti"}},
	{Type{"RTX4080_16GB", 16, false}, []string{"rtx4080", "4080"}},
	{Type{"RTX4080Ti_16GB", 16, false}, []string{"rtx4080ti", "4080ti"}},
	{Type{"RTX4090_24GB", 24, false}, []string{"rtx4090", "4090"}},
	{Type{"RTX5000_16GB", 16, false}, []string{"rtx5000", "quadrortx5000"}},
	{Type{"RTX5090_32GB", 32, false}, []string{"rtx5090", "5090"}},
	{Type{"RTX6000_24GB", 24, false}, []string{"rtx6000", "quadrortx6000"}},
	{Type{"RTX8000_48GB", 48, false}, []string{"rtx8000", "quadrortx8000"}},
	{Type{"RTX_PRO_6000B_96GB", 96, false}, []string{
		"rtxpro6000b", "rtxpro6000", "pro6000", "rtx6000pro", "rtxpro6000blackwell", "rtxpro6000s", "rtxpro6000ws", "rtxpro6000wk",
		"rtxpro6000blackwellserver", "rtxpro6000blackwellworkstation", "rtxpro6000server", "rtxpro6000max-q",
	}},
}

// Lookup returns the type of a token.
func Lookup(token string) (Type, bool) {
	i := slices.IndexFunc(types, func(t struct {
		Type
		names []string
	},
	) bool {
		return t.Token == token
	})
	if i < 0 {
		return Type{}, false
	}
	return types[i].Type, true
}

// Tokens lists the vocabulary.
func Tokens() []string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.Token
	}
	return list
}

// Find returns the type that a cloud means by a model's name, such as
// "NVIDIA A100-SXM4" or "rtx_4090", and the memory of one GPU in GB, which
// clouds round each in their way. 0 GB is not said: then the name must mean one
// type only.
func Find(name string, vramGB int) (Type, bool) {
	key := plain(name)
	var found []Type
	for _, t := range types {
		if (slices.Contains(t.names, key) || plain(t.Token) == key) && (vramGB == 0 || near(vramGB, t.VRAMGB)) {
			found = append(found, t.Type)
		}
	}
	if len(found) != 1 {
		return Type{}, false
	}
	return found[0], true
}

// Named returns the type that a driver's name means, such as "NVIDIA A100-SXM4-80GB"
// or "NVIDIA H100 80GB HBM3", with the memory that the driver counts, in MiB: what
// is left of it where some is kept for checks. The longest beginning of the name
// that is known counts, unless the rest makes it a lesser model.
func Named(name string, mib int64) (Type, bool) {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	for _, word := range words {
		if word == "Laptop" || word == "D" || word == "Mobile" {
			return Type{}, false
		}
	}
	for n := len(words); n > 0; n-- {
		key := plain(strings.Join(words[:n], " "))
		for _, t := range types {
			if (slices.Contains(t.names, key) || plain(t.Token) == key) && t.counts(mib) {
				return t.Type, true
			}
		}
	}
	return Type{}, false
}

// counts reports whether a driver that says so many MiB means this size.
func (t Type) counts(mib int64) bool {
	full := int64(t.VRAMGB) * 1024
	return mib*100 >= full*88 && mib*100 <= full*112
}

// Enough reports whether a GPU has the memory of its type, whatever its name.
func (t Type) Enough(mib int64) bool { return mib*100 >= int64(t.VRAMGB)*1024*88 }

// near reports whether a cloud's figure is this size: some say GiB for GB, and
// some what the driver leaves free.
func near(said, size int) bool { return said*100 >= size*92 && said*100 <= size*110 }

// plain is a name without its maker, case and punctuation.
func plain(name string) string {
	name = strings.ToLower(name)
	for _, maker := range []string{"nvidia", "geforce", "tensor core", "generation", "edition"} {
		name = strings.ReplaceAll(name, maker, "")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// The sockets.
const (
	PCIe = "PCIe"
	SXM2 = "SXM2"
	SXM3 = "SXM3"
	SXM4 = "SXM4"
	SXM5 = "SXM5"
	SXM6 = "SXM6"
)

// ofModel is the generation of SXM that a model has, for clouds that say SXM only.
var ofModel = map[string]string{"V100": SXM2, "P100": SXM2, "A100": SXM4, "H100": SXM5, "H200": SXM5, "GH200": SXM5, "B200": SXM6, "B300": SXM6}

// Socket returns the socket that a cloud means for a type. A name that is not
// known is PCIe, which promises least; so is one that is not said.
func Socket(name string, t Type) string {
	switch key := strings.ToUpper(plain(name)); key {
	case SXM2, SXM3, SXM4, SXM5, SXM6:
		return key
	case "SXM", "NVSWITCH", "HGX":
		model, _, _ := strings.Cut(t.Token, "_")
		if s := ofModel[model]; s != "" {
			return s
		}
	}
	return PCIe
}
