package e2e_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
)

// driver is what an agent finds of a GPU's driver on a machine that has none: a
// program that names the GPU, and a library that starts CUDA on it.
func driver(t *testing.T, gpuType string) map[string]string {
	t.Helper()
	said := map[string]string{
		"A6000_48GB": "NVIDIA RTX A6000, 49140", "H100_80GB": "NVIDIA H100 80GB HBM3, 81559", "A10_24GB": "NVIDIA A10, 23028",
		"RTX4090_24GB": "NVIDIA GeForce RTX 4090, 24564",
	}[gpuType]
	if said == "" {
		t.Fatalf("what would a driver say of a %s?", gpuType)
	}
	return map[string]string{
		"/usr/bin/nvidia-smi":                  fmt.Sprintf("#!/bin/sh\necho '%s, 575.57.08'\n", said),
		"/usr/local/nvidia/lib64/libcuda.so.1": string(libcuda(t)),
	}
}

// libcuda is a shared library of two functions: cuInit returns 0, and
// cuDeviceGetCount writes 1 to where its argument points.
func libcuda(t *testing.T) []byte {
	t.Helper()
	machine, text := uint16(62), []byte{
		0x31, 0xc0, 0xc3, 0x90, // xor eax,eax; ret
		0xc7, 0x07, 1, 0, 0, 0, 0x31, 0xc0, 0xc3, // mov dword [rdi],1; xor eax,eax; ret
	}
	second := 4
	switch runtime.GOARCH {
	case "amd64":
	case "arm64":
		var words bytes.Buffer
		put(t, &words, []uint32{0x52800000, 0xd65f03c0, 0x52800021, 0xb9000001, 0x52800000, 0xd65f03c0}) // mov w0,0; ret; mov w1,1; str w1,[x0]; mov w0,0; ret
		machine, text, second = 183, words.Bytes(), 8
	default:
		t.Skipf("no library is made for %s", runtime.GOARCH)
	}
	const names = "\x00libcuda.so.1\x00cuInit\x00cuDeviceGetCount\x00"
	// The parts, one after the other, in one segment.
	const (
		symbols = 64 + 3*56
		hash    = symbols + 3*24
		strings = hash + 6*4
		dynamic = strings + 48
		code    = dynamic + 7*16
	)
	end := uint64(code + len(text))
	var b bytes.Buffer
	put(t, &b, []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	put(t, &b, uint16(3), machine, uint32(1), uint64(0), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(3), uint16(64), uint16(0), uint16(0))
	put(t, &b, uint32(1), uint32(7), uint64(0), uint64(0), uint64(0), end, end, uint64(0x10000))                                               // load all
	put(t, &b, uint32(2), uint32(6), uint64(dynamic), uint64(dynamic), uint64(dynamic), uint64(code-dynamic), uint64(code-dynamic), uint64(8)) // dynamic
	put(t, &b, uint32(0x6474e551), uint32(6), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(16))                               // a stack as all have
	put(t, &b, make([]byte, 24), uint32(14), uint8(0x12), uint8(0), uint16(1), uint64(code), uint64(second))                                   // cuInit
	put(t, &b, uint32(21), uint8(0x12), uint8(0), uint16(1), uint64(code+second), uint64(len(text)-second))                                    // cuDeviceGetCount
	put(t, &b, []uint32{1, 3, 1, 0, 2, 0})                                                                                                     // one bucket that holds both
	put(t, &b, append([]byte(names), make([]byte, dynamic-strings-len(names))...))                                                             // and zeroes
	put(t, &b, []uint64{14, 1, 4, hash, 5, strings, 6, symbols, 10, uint64(len(names)), 11, 24, 0, 0})
	put(t, &b, text)
	return b.Bytes()
}

func put(t *testing.T, b *bytes.Buffer, values ...any) {
	t.Helper()
	for _, v := range values {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
}
