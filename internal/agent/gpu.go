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
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/agentapi"
)

// toolFor bounds one look by a program of the driver: the first one on a large
// machine wakes every GPU.
const toolFor = 60 * time.Second

// lookAtGPUs asks the driver what there is, and starts CUDA on it.
func (a *agent) lookAtGPUs(ctx context.Context) agentapi.Checked {
	var found agentapi.Checked
	path, err := lookPath("nvidia-smi")
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
	case err != nil:
		found.CUDA, found.CUDAError = true, shorten(err.Error())
	case count < len(found.GPUs):
		found.CUDA, found.CUDAError = true, fmt.Sprintf("it sees %d of %d GPUs", count, len(found.GPUs))
	default:
		found.CUDA = true
	}
	return found
}

// lookPath finds a program also where an agent without a PATH would not look.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/bin/", "/usr/local/bin/", "/usr/local/nvidia/bin/", "/usr/lib/wsl/lib/"} {
		if info, err := os.Stat(dir + name); err == nil && !info.IsDir() {
			return dir + name, nil
		}
	}
	return "", fmt.Errorf("%s is not there", name)
}

// tool runs a program to its end and returns what it printed.
func (a *agent) tool(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	c, err := a.procs.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	limit := time.NewTimer(toolFor)
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

// errNoLoader occurs where this machine cannot run the program that starts CUDA.
var errNoLoader = errors.New("no dynamic loader")

// startCUDA has CUDA started by a small program of our own, in a process of its
// own: a driver that hangs or crashes takes no agent with it. It returns how
// many GPUs CUDA sees.
func (a *agent) startCUDA(ctx context.Context) (int, error) {
	return a.callLibrary(ctx, "libcuda.so.1", "cuInit", "cuDeviceGetCount")
}

func (a *agent) callLibrary(ctx context.Context, library, first, second string) (int, error) {
	image, loader, err := program(runtime.GOARCH, library, first, second)
	if err != nil {
		return 0, errNoLoader
	}
	if _, err := os.Stat(loader); err != nil {
		return 0, errNoLoader
	}
	fd, err := unix.MemfdCreate("homeport-cuda", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, errNoLoader
	}
	f := os.NewFile(uintptr(fd), "homeport-cuda")
	defer f.Close()
	if _, err := f.Write(image); err != nil {
		return 0, errNoLoader
	}
	out, err := a.tool(ctx, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
	if err != nil {
		return 0, err
	}
	if len(out) != 8 {
		return 0, fmt.Errorf("it says %q", out)
	}
	if code := binary.LittleEndian.Uint32(out); code != 0 {
		return 0, fmt.Errorf("%s: error %d", first, code)
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
