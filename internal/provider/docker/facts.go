package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider/gpu"
)

// A device is one GPU of the host.
type device struct {
	id, token, socket string
	vramGB            int
	simulated         bool
}

// lookEvery is how long the GPUs that were found are believed to be there.
const lookEvery = 10 * time.Minute

// devices are the host's GPUs: those of the description, else those that
// nvidia-smi shows in a container.
func (c *Cloud) devices(ctx context.Context) ([]device, error) {
	if named := c.named(); len(named) > 0 {
		return named, nil
	}
	c.mu.Lock()
	known, seen := c.gpus, c.seen
	c.mu.Unlock()
	if len(known) > 0 && c.clock.Wall().Sub(seen) < lookEvery {
		return known, nil
	}
	text, err := c.smi(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the GPUs of %s: %w", c.host.Name, err)
	}
	found := parseSMI(text)
	if len(found) == 0 {
		return nil, fmt.Errorf("host %s has no GPU that can be sold; nvidia-smi says: %s", c.host.Name, shown(text, nil))
	}
	c.mu.Lock()
	c.gpus, c.seen = found, c.clock.Wall()
	c.mu.Unlock()
	return found, nil
}

// named are the GPUs that the description names.
func (c *Cloud) named() []device {
	var list []device
	for _, d := range c.host.GPUs {
		of, _ := gpu.Lookup(d.Type)
		for _, one := range d.IDs {
			list = append(list, device{one, of.Token, d.Socket, of.VRAMGB, false})
		}
	}
	for _, d := range c.host.Simulate {
		of, _ := gpu.Lookup(d.Type)
		for i := range d.Count {
			list = append(list, device{fmt.Sprintf("simulated-%s-%d", of.Token, i), of.Token, d.Socket, of.VRAMGB, true})
		}
	}
	return list
}

// query is how nvidia-smi is asked: one line per GPU, memory in MiB.
var query = []string{"--query-gpu=uuid,name,memory.total,mig.mode.current", "--format=csv,noheader,nounits"}

// parseSMI reads its answer. A GPU that is cut into instances, or whose model
// is not known, is not sold.
func parseSMI(text string) []device {
	var list []device
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) != 4 {
			continue
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		mib, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || !deviceForm.MatchString(fields[0]) || fields[3] == "Enabled" {
			continue
		}
		of, socket, ok := model(fields[1], mib)
		if ok {
			list = append(list, device{id: fields[0], token: of.Token, socket: socket, vramGB: of.VRAMGB})
		}
	}
	slices.SortFunc(list, func(a, b device) int { return strings.Compare(a.token+a.id, b.token+b.id) })
	return list
}

// sockets that the driver's names of models do not say.
var socketOf = map[string]string{
	"NVIDIA H100 80GB HBM3": gpu.SXM5, "NVIDIA H200": gpu.SXM5, "NVIDIA B200": gpu.SXM6,
}

var socketWords = regexp.MustCompile(`(?i)\bSXM[0-9]?\b`)

// model reads the driver's name of a model, such as "NVIDIA A100-SXM4-80GB", as
// the look at a pod's machine reads it.
func model(name string, mib int64) (gpu.Type, string, bool) {
	socket := socketOf[name]
	if socket == "" {
		socket = socketWords.FindString(name)
	}
	of, ok := gpu.Named(name, mib)
	return of, gpu.Socket(socket, of), ok
}

// smi runs nvidia-smi in a container that sees all GPUs, and returns what it prints.
func (c *Cloud) smi(ctx context.Context) (string, error) {
	c.sweepProbes(ctx)
	made, err := c.create(ctx, client.ContainerCreateOptions{
		Name: "hp-probe-" + id.New().String(),
		Config: &container.Config{
			Image: c.host.Image, Entrypoint: []string{"nvidia-smi"}, Cmd: query, Tty: true, // one stream, as it was printed
			Labels: map[string]string{labelProbe: strconv.FormatInt(c.clock.Wall().Unix(), 10)},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", Runtime: c.host.Runtime,
			Resources: container.Resources{DeviceRequests: []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu", "utility"}}}}},
		},
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = c.remove(context.WithoutCancel(ctx), made) }() // else it is swept
	err = do(ctx, makeFor, func(ctx context.Context) error {
		_, err := c.engine.ContainerStart(ctx, made, client.ContainerStartOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	var out []byte
	err = do(ctx, readFor, func(ctx context.Context) error {
		logs, err := c.engine.ContainerLogs(ctx, made, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
		if err != nil {
			return err
		}
		defer logs.Close()
		out, err = io.ReadAll(logs)
		return err
	})
	return string(out), err
}

// sweepProbes removes what crashes left of earlier looks.
func (c *Cloud) sweepProbes(ctx context.Context) {
	list, err := c.list(ctx, make(client.Filters).Add("label", labelProbe))
	if err != nil {
		return // the look itself will say so
	}
	for _, s := range list {
		at, err := strconv.ParseInt(s.Labels[labelProbe], 10, 64)
		if err == nil && c.clock.Wall().Sub(time.Unix(at, 0)) > lookEvery {
			_ = c.remove(ctx, s.ID)
		}
	}
}

// errNoImage occurs when the host lacks the image of its pods.
var errNoImage = errors.New("the image is not there")

// image makes sure that the host has the image.
func (c *Cloud) image(ctx context.Context) error {
	err := do(ctx, readFor, func(ctx context.Context) error {
		_, err := c.engine.ImageInspect(ctx, c.host.Image)
		return err
	})
	switch {
	case !notFound(err):
		return err
	case c.host.Pull:
		return fmt.Errorf("image %s of host %s is being pulled: %w", c.host.Image, c.host.Name, errNoImage)
	}
	return fmt.Errorf("image %s of host %s: %w: pull or import it there, or set pull", c.host.Image, c.host.Name, errNoImage)
}

// pullFor bounds a pull.
const pullFor = 2 * time.Hour

// Prepare pulls the image if the host lacks it and shall. Its caller comes again.
func (c *Cloud) Prepare(ctx context.Context) error {
	if err := c.image(ctx); !c.host.Pull || !errors.Is(err, errNoImage) {
		return nil // what else is wrong the catalogue says
	}
	c.logger.InfoContext(ctx, "pulling the image of a host's pods", "host", c.host.Name, "image", c.host.Image)
	err := do(ctx, pullFor, func(ctx context.Context) error {
		res, err := c.engine.ImagePull(ctx, c.host.Image, client.ImagePullOptions{})
		if err != nil {
			return err
		}
		defer res.Close()
		return res.Wait(ctx)
	})
	if err != nil {
		return fmt.Errorf("pull %s at host %s: %w", c.host.Image, c.host.Name, err)
	}
	return nil
}

// ownNetwork is the bridge of pods whose host names none: they reach the
// internet, and not each other.
const ownNetwork = "homeport"

// network makes sure that the pods' network is there, and returns its name.
func (c *Cloud) network(ctx context.Context) (string, error) {
	if c.host.Network != "" {
		return c.host.Network, nil
	}
	err := do(ctx, readFor, func(ctx context.Context) error {
		_, err := c.engine.NetworkInspect(ctx, ownNetwork, client.NetworkInspectOptions{})
		return err
	})
	if !notFound(err) {
		return ownNetwork, err
	}
	err = do(ctx, readFor, func(ctx context.Context) error {
		_, err := c.engine.NetworkCreate(ctx, ownNetwork, client.NetworkCreateOptions{
			Driver: "bridge", Options: map[string]string{"com.docker.network.bridge.enable_icc": "false"},
		})
		return err
	})
	if f, ok := failed(err); ok && f.status == http.StatusConflict {
		return ownNetwork, nil // another node was faster
	}
	return ownNetwork, err
}
