//go:build linux

package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/agentapi"
)

// A driver says where the files of a GPU's driver are, beside the places where
// this machine looks by itself, and how long it is waited for.
type driver struct {
	programs, libraries []string      // folders
	answers             time.Duration // for one answer of a program: the first one on a large machine wakes every GPU
	readyEvery          time.Duration // between two tries to start CUDA
	readyTries          int
}

// newDriver knows NVIDIA's folders in containers and in WSL. GPUs with an
// NVSwitch are ready only when its fabric manager is, some time after the boot:
// two minutes are given.
func newDriver() driver {
	return driver{
		programs:  []string{"/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib"},
		libraries: []string{"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"},
		answers:   time.Minute, readyEvery: 5 * time.Second, readyTries: 24,
	}
}

// lookAtGPUs asks the driver what there is, and starts CUDA on it.
func (a *agent) lookAtGPUs(ctx context.Context) agentapi.Checked {
	var found agentapi.Checked
	path, err := a.driver.find("nvidia-smi")
	if err == nil {
		var out []byte
		out, err = a.tool(ctx, path, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
		if err == nil {
			found.GPUs, found.Driver, err = parseGPUs(string(out))
		}
	}
	if err != nil {
		found.GPUError = shorten(err.Error())
		return found
	}
	count, err := a.startCUDA(ctx)
	switch {
	case errors.Is(err, errNoLoader): // nobody can tell
	case errors.Is(err, errNotTried): // nor here, but it is our fault
		a.log.Error("CUDA was not started", "error", err)
	case err != nil:
		found.CUDA, found.CUDAError = true, shorten(err.Error())
	case count < len(found.GPUs):
		found.CUDA, found.CUDAError = true, fmt.Sprintf("it sees %d of %d GPUs", count, len(found.GPUs))
	default:
		found.CUDA = true
	}
	return found
}

// find looks for a program also where an agent without a PATH would not look.
func (d driver) find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range d.programs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not there", name)
}

// environ is this process's environment, in which the driver's libraries are
// found even if the loader's cache does not know them.
func (d driver) environ() []string {
	dirs := d.libraries
	if own := os.Getenv("LD_LIBRARY_PATH"); own != "" {
		dirs = append([]string{own}, dirs...)
	}
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(dirs, ":"))
}

// tool runs a program to its end and returns what it printed.
func (a *agent) tool(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = a.driver.environ(), &out, &errs
	c, err := a.procs.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	limit := time.NewTimer(a.driver.answers)
	defer limit.Stop()
	select {
	case <-c.done:
	case <-limit.C:
		a.procs.signal(c, unix.SIGKILL)
		return nil, fmt.Errorf("%s does not come to an end", path)
	case <-ctx.Done():
		a.procs.signal(c, unix.SIGKILL)
		return nil, context.Cause(ctx)
	}
	if c.status.ExitStatus() != 0 {
		return nil, fmt.Errorf("%s ended with %d: %s", path, c.status.ExitStatus(), strings.TrimSpace(errs.String()+out.String()))
	}
	return out.Bytes(), nil
}

// parseGPUs reads nvidia-smi's table: name, MiB, version of the driver.
func parseGPUs(text string) (gpus []agentapi.GPU, driver string, err error) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		cells := strings.Split(line, ",")
		if len(cells) != 3 {
			return nil, "", fmt.Errorf("nvidia-smi says %q", line)
		}
		mib, err := strconv.ParseInt(strings.TrimSpace(cells[1]), 10, 64)
		if err != nil { // unified memory has no size of its own
			mib = 0
		}
		gpus = append(gpus, agentapi.GPU{Name: strings.TrimSpace(cells[0]), MemoryMiB: mib})
		driver = strings.TrimSpace(cells[2])
	}
	return gpus, driver, nil
}

var (
	// errNoLoader occurs where this machine cannot run the program that starts CUDA.
	errNoLoader = errors.New("no dynamic loader")
	// errNotTried occurs when that program cannot be made. It tells nothing of the machine.
	errNotTried = errors.New("the program that starts CUDA was not made")
)

// A cudaError is what a function of CUDA returned.
type cudaError struct {
	function string
	code     uint32
}

func (e cudaError) Error() string { return fmt.Sprintf("%s: error %d", e.function, e.code) }

// cudaNotReady is CUDA_ERROR_SYSTEM_NOT_READY.
const cudaNotReady = 802

// startCUDA has CUDA started by a small program of our own, in a process of its
// own: a driver that hangs or crashes takes no agent with it. It returns how
// many GPUs CUDA sees.
func (a *agent) startCUDA(ctx context.Context) (int, error) {
	return a.driver.whenReady(ctx, func() (int, error) {
		return a.callLibrary(ctx, "libcuda.so.1", "cuInit", "cuDeviceGetCount")
	})
}

// whenReady starts CUDA again while it says that the machine is not ready yet.
func (d driver) whenReady(ctx context.Context, start func() (int, error)) (int, error) {
	again := time.NewTicker(d.readyEvery)
	defer again.Stop()
	for try := 1; ; try++ {
		n, err := start()
		var said cudaError
		if !errors.As(err, &said) || said.code != cudaNotReady || try >= d.readyTries {
			return n, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// callLibrary calls two functions of a library, see program. The errors are
// errNoLoader, errNotTried and what became of it.
func (a *agent) callLibrary(ctx context.Context, library, first, second string) (int, error) {
	image, loader, err := program(runtime.GOARCH, library, first, second)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotTried, err)
	}
	if _, err := os.Stat(loader); err != nil {
		return 0, errNoLoader
	}
	fd, err := unix.MemfdCreate("homeport-cuda", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotTried, err)
	}
	f := os.NewFile(uintptr(fd), "homeport-cuda")
	defer f.Close()
	if _, err := f.Write(image); err != nil {
		return 0, fmt.Errorf("%w: %w", errNotTried, err)
	}
	out, err := a.tool(ctx, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
	if err != nil {
		return 0, err
	}
	if len(out) != 8 {
		return 0, fmt.Errorf("it says %q", out)
	}
	if code := binary.LittleEndian.Uint32(out); code != 0 {
		return 0, cudaError{first, code}
	}
	return int(binary.LittleEndian.Uint32(out[4:])), nil
}

// shorten keeps an error within a line.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote], "")
	}
	return text
}
