//go:build linux

package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/agentapi"
)

// preflight looks the machine over, once, before anything is restored. What it
// finds is judged by the control plane, which ends a bad machine.
func (a *agent) preflight(ctx context.Context) error {
	want := a.welcome.Check
	if want == nil {
		return nil
	}
	found := a.look(ctx, *want)
	found.Epoch = a.welcome.Volume.Epoch
	a.log.Info("looked the machine over", "gpus", len(found.GPUs), "driver", found.Driver, "cuda_error", found.CUDAError,
		"disk", found.DiskRate, "net", found.NetRate)
	return a.client.persist(ctx, agentapi.PathChecked, callTimeout, found, nil)
}

// look measures one thing after the other, so that none disturbs another. What
// cannot be measured is left out.
func (a *agent) look(ctx context.Context, want agentapi.Check) agentapi.Checked {
	if a.cfg.Hardware != nil {
		return *a.cfg.Hardware
	}
	found := a.lookAtGPUs(ctx)
	limit := time.Duration(want.Seconds) * time.Second
	var err error
	if want.DiskBytes > 0 {
		if found.DiskRate, err = a.diskRate(ctx, want.DiskBytes, limit); err != nil {
			a.log.Warn("the disk was not measured", "error", err)
		}
	}
	if want.NetBytes > 0 {
		if found.NetRate, err = a.netRate(ctx, want.NetBytes, limit); err != nil {
			a.log.Warn("the network was not measured", "error", err)
		}
	}
	return found
}

const (
	diskChunk = 4 << 20  // bytes written at once
	diskFlush = 32 << 20 // bytes after which the disk must have them
)

// diskRate writes to the disk of /workspace, through its cache, and returns the
// bytes per second. The file has no name: nothing is left of it, whatever ends
// the agent.
func (a *agent) diskRate(ctx context.Context, bytes int64, limit time.Duration) (int64, error) {
	f, err := unnamed(a.cfg.Workspace, a.cfg.StateDir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	chunk := make([]byte, diskChunk)
	fill(chunk)
	start := a.cfg.Clock.Wall()
	var done int64
	for done < bytes && a.cfg.Clock.Wall().Sub(start) < limit && ctx.Err() == nil {
		n, err := f.Write(chunk[:min(diskChunk, bytes-done)])
		if err != nil {
			return 0, fmt.Errorf("write to the disk: %w", err)
		}
		if done += int64(n); done%diskFlush == 0 || done == bytes {
			if err := unix.Fdatasync(int(f.Fd())); err != nil {
				return 0, fmt.Errorf("flush the disk: %w", err)
			}
		}
	}
	return perSecond(done, a.cfg.Clock.Wall().Sub(start)), nil
}

// unnamed opens a file without a name in the first folder that can have one. Where
// none can, its name is taken away at once, in the last folder.
func unnamed(dirs ...string) (*os.File, error) {
	for _, dir := range dirs {
		if fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
			return os.NewFile(uintptr(fd), filepath.Join(dir, "unnamed")), nil
		}
	}
	f, err := os.CreateTemp(dirs[len(dirs)-1], "measure-*")
	if err != nil {
		return nil, fmt.Errorf("make a file to measure the disk: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("make a file to measure the disk: %w", err)
	}
	return f, nil
}

// fill writes what does not compress.
func fill(b []byte) {
	x := uint64(0x9e3779b97f4a7c15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
}

// netRate reads from the control plane and returns the bytes per second.
func (a *agent) netRate(ctx context.Context, bytes int64, limit time.Duration) (int64, error) {
	c, start := a.client, a.cfg.Clock.Wall()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	url := c.base + agentapi.PathSpeed + "?bytes=" + strconv.FormatInt(min(bytes, agentapi.MaxSpeed), 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, fmt.Errorf("measure the network: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return 0, ErrAway.Because(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("measure the network: answered %d", res.StatusCode)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("measure the network: %w", err)
	}
	return perSecond(n, a.cfg.Clock.Wall().Sub(start)), nil
}

// perSecond is at least 1 for what was measured.
func perSecond(bytes int64, took time.Duration) int64 {
	return max(1, int64(float64(bytes)/max(took, time.Millisecond).Seconds()))
}
