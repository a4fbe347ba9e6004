//go:build linux

package agent

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/clock"
)

func looker(t *testing.T) *agent {
	t.Helper()
	c, err := Config{BaseURL: "http://unused", Token: "t", StateDir: t.TempDir(), Workspace: t.TempDir(), Clock: clock.New()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &agent{cfg: c, log: c.Logger, procs: newTable(false), driver: newDriver()}
}

// The tables that drivers print, in the words of nvidia-smi.
func TestDriversTableIsRead(t *testing.T) {
	t.Parallel()
	gpus, driver, err := parseGPUs("NVIDIA H100 80GB HBM3, 81559, 570.86.10\nNVIDIA H100 80GB HBM3, 81559, 570.86.10\n")
	want := []agentapi.GPU{{Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559}, {Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559}}
	if diff := cmp.Diff(want, gpus); diff != "" || driver != "570.86.10" || err != nil {
		t.Errorf("%s, driver %q, %v", diff, driver, err)
	}
	if gpus, _, err = parseGPUs("NVIDIA GB10, [N/A], 580.95.05"); err != nil || len(gpus) != 1 || gpus[0].MemoryMiB != 0 {
		t.Errorf("memory that is not said: %+v, %v", gpus, err)
	}
	if gpus, _, err = parseGPUs("\n"); err != nil || len(gpus) != 0 {
		t.Errorf("no GPU: %+v, %v", gpus, err)
	}
	if _, _, err = parseGPUs("No devices were found"); err == nil {
		t.Error("a sentence is no table")
	}
}

// needLoader skips the test where no loader can run the small program.
func needLoader(t *testing.T) {
	t.Helper()
	_, err := os.Stat(codes[runtime.GOARCH].loader)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal("the tests need glibc:", err)
	default:
		t.Skip("this machine has no dynamic loader of glibc:", err)
	}
}

// The small program really calls a library: here the C library's, for want of a
// driver's.
func TestSmallProgramCallsALibrary(t *testing.T) {
	t.Parallel()
	needLoader(t)
	a := looker(t)
	n, err := a.callLibrary(t.Context(), "libc.so.6", "abs", "rand_r")
	if err != nil || n == 0 { // rand_r changes the seed that it is given
		t.Errorf("abs(0), rand_r(&n): %d, %v", n, err)
	}
	if _, err := a.callLibrary(t.Context(), "libc.so.6", "getpid", "rand_r"); err == nil {
		t.Error("a result that is not 0 is no error")
	}
	if _, err := a.callLibrary(t.Context(), "libhomeport-none.so.1", "cuInit", "cuDeviceGetCount"); err == nil {
		t.Error("a library that is not there is called")
	}
	if _, err := a.callLibrary(t.Context(), "libc.so.6", "cuInit", "cuDeviceGetCount"); err == nil {
		t.Error("a function that is not there is called")
	}
}

// The code for the other architecture runs too: under qemu, with Debian's C
// library for it.
func TestSmallProgramRunsOnARM(t *testing.T) {
	t.Parallel()
	const system = "/usr/aarch64-linux-gnu"
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if _, gone := os.Stat(system + "/lib/libc.so.6"); err != nil || gone != nil {
		t.Skip("scripts/need-tools installs qemu-user-static and libc6-arm64-cross")
	}
	image, _, err := program("arm64", "libc.so.6", "abs", "rand_r")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, image, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), qemu, "-L", system, path).Output()
	if err != nil || len(out) != 8 {
		t.Fatalf("it said %x: %v", out, err)
	}
	if code, n := binary.LittleEndian.Uint32(out), binary.LittleEndian.Uint32(out[4:]); code != 0 || n == 0 { // rand_r changes the seed that it is given
		t.Errorf("abs(0), rand_r(&n): %d, %d", code, n)
	}
}

// A driver's library is found in the driver's own folders, which the loader's
// cache does not know.
func TestLibraryOutsideTheCacheIsFound(t *testing.T) {
	t.Parallel()
	needLoader(t)
	var libc []string
	for _, pattern := range []string{"/lib/*/libc.so.6", "/usr/lib/*/libc.so.6", "/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		libc = append(libc, found...)
	}
	if len(libc) == 0 {
		t.Fatal("there is a loader, but no C library")
	}
	const name = "libhomeport-apart.so.1"
	dir := t.TempDir()
	if err := os.Symlink(libc[0], filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	a := looker(t)
	if _, err := a.callLibrary(t.Context(), name, "abs", "rand_r"); err == nil {
		t.Error("the loader's cache knows it")
	}
	a.driver.libraries = append(a.driver.libraries, dir)
	if n, err := a.callLibrary(t.Context(), name, "abs", "rand_r"); err != nil || n == 0 {
		t.Errorf("in a folder of the driver: %d, %v", n, err)
	}
}

// CUDA that is not ready yet is waited for, but not for ever, and nothing else is.
func TestCUDAThatIsNotReadyIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDriver()
	if wait := time.Duration(d.readyTries) * d.readyEvery; wait != 2*time.Minute {
		t.Errorf("it is waited for %s", wait)
	}
	d.readyEvery, d.readyTries = time.Millisecond, 5
	stub := func(codes ...uint32) (n, tries int, err error) {
		n, err = d.whenReady(t.Context(), func() (int, error) {
			code := codes[min(tries, len(codes)-1)]
			tries++
			if code != 0 {
				return 0, cudaError{"cuInit", code}
			}
			return 8, nil
		})
		return n, tries, err
	}
	if n, tries, err := stub(802, 802, 0); n != 8 || tries != 3 || err != nil {
		t.Errorf("ready at the third try: %d GPUs after %d tries, %v", n, tries, err)
	}
	if _, tries, err := stub(802); tries != 5 || err == nil || err.Error() != "cuInit: error 802" {
		t.Errorf("never ready: %d tries, %v", tries, err)
	}
	if _, tries, err := stub(100, 0); tries != 1 || err == nil {
		t.Errorf("no GPU: %d tries, %v", tries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.readyEvery = time.Hour
	if _, err := d.whenReady(ctx, func() (int, error) { return 0, cudaError{"cuInit", 802} }); !errors.Is(err, context.Canceled) {
		t.Errorf("an agent that ends: %v", err)
	}
}

// Both architectures' programs are whole: what they link, and where they begin.
func TestSmallProgramsAreWellFormed(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image, loader, err := program(arch, "libcuda.so.1", "cuInit", "cuDeviceGetCount")
		if err != nil || len(image) > 1024 {
			t.Fatalf("%s: %d bytes, %v", arch, len(image), err)
		}
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Type != elf.ET_DYN || f.Entry%16 != 0 {
			t.Errorf("%s: %+v", arch, f.FileHeader)
		}
		var kinds []elf.ProgType
		for _, p := range f.Progs {
			kinds = append(kinds, p.Type)
			if p.Type == elf.PT_INTERP {
				name := make([]byte, p.Filesz)
				if _, err := p.ReadAt(name, 0); err != nil || string(name) != loader+"\x00" {
					t.Errorf("%s: its loader is %q", arch, name)
				}
			}
		}
		if want := []elf.ProgType{elf.PT_PHDR, elf.PT_INTERP, elf.PT_LOAD, elf.PT_LOAD, elf.PT_DYNAMIC, elf.PT_GNU_STACK}; !slices.Equal(kinds, want) {
			t.Errorf("%s: %v", arch, kinds)
		}
	}
	if _, _, err := program("riscv64", "l", "a", "b"); err == nil {
		t.Error("a program for a machine that nobody has code for")
	}
}

// A speed is what went over until the end, or until its time was up; nothing is
// left of what was written.
func TestDiskIsMeasuredWithoutATrace(t *testing.T) {
	t.Parallel()
	a := looker(t)
	rate, err := a.diskRate(t.Context(), 8<<20, time.Minute)
	if err != nil || rate < 1<<20 {
		t.Errorf("%d bytes a second, %v", rate, err)
	}
	for _, dir := range []string{a.cfg.Workspace, a.cfg.StateDir} {
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	if rate, err = a.diskRate(t.Context(), 1<<40, 0); err != nil || rate != 1 {
		t.Errorf("in no time: %d, %v", rate, err)
	}
}

// A machine without a driver has no GPU, and says why.
func TestMachineWithoutADriverSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	a := looker(t)
	a.driver.programs = []string{t.TempDir()}
	if found := a.lookAtGPUs(t.Context()); found.GPUError != "nvidia-smi is not there" || len(found.GPUs) != 0 || found.CUDA {
		t.Errorf("found %+v", found)
	}
}

// A driver's tool that fails is not believed.
func TestToolThatFailsIsNotBelieved(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	a := looker(t)
	a.driver.programs = []string{t.TempDir()}
	bintest.WriteProgram(t, filepath.Join(a.driver.programs[0], "nvidia-smi"), []byte("#!/bin/sh\necho no devices; exit 9\n"))
	if found := a.lookAtGPUs(t.Context()); !strings.HasSuffix(found.GPUError, "ended with 9: no devices") || len(found.GPUs) != 0 || found.CUDA {
		t.Errorf("found %+v", found)
	}
}

// A driver's tool that hangs is ended, with all that it started.
func TestToolThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	a := looker(t)
	a.driver.answers = 50 * time.Millisecond
	if out, err := a.tool(t.Context(), "/bin/sh", "-c", "sleep 1000 & sleep 1000"); err == nil {
		t.Errorf("it came to an end: %q", out)
	}
	ended := make(chan struct{})
	go func() { // both hold its output open as long as they live
		defer close(ended)
		a.procs.waits.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a process is left")
	}
}
