package dockertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
)

// A Machine is a container that stands in for a cloud's machine, with a network
// of its own.
type Machine struct {
	Address netip.Addr // its own, at which this host reaches it

	e         *Engine
	name      string
	made      []string // containers: of the network, and of the programs
	namespace string   // of the network, as a file

	mu    sync.Mutex
	doors []net.Listener
}

// NewMachine makes a machine whose first program is a command, or with nil an
// init that waits. Its network runs at once, its programs with Start. Whoever makes it
// removes it, also after an error.
func (e *Engine) NewMachine(ctx context.Context, name, network string, command []string) (*Machine, error) {
	m := &Machine{e: e, name: name}
	holder, err := m.add(ctx, name+"-network", network, nil)
	if err != nil {
		return m, err
	}
	if err := m.begin(ctx, holder); err != nil {
		return m, err
	}
	res, err := e.ContainerInspect(ctx, holder, client.ContainerInspectOptions{})
	if err != nil {
		return m, fmt.Errorf("look at %s: %w", name, err)
	}
	m.namespace = fmt.Sprintf("/proc/%d/ns/net", res.Container.State.Pid)
	m.Address = res.Container.NetworkSettings.Networks[network].IPAddress
	_, err = m.add(ctx, name, "container:"+holder, command)
	return m, err
}

func (m *Machine) add(ctx context.Context, name, network string, command []string) (string, error) {
	init := command == nil
	if init {
		command = []string{"/bin/sleep", "infinity"}
	}
	res, err := m.e.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name:       name,
		Config:     &container.Config{Image: Image, User: "root", WorkingDir: "/", Entrypoint: command[:1], Cmd: command[1:]},
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(network), Init: &init},
	})
	if err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	m.made = append(m.made, res.ID)
	return res.ID, nil
}

func (m *Machine) begin(ctx context.Context, id string) error {
	if _, err := m.e.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	return nil
}

// id is the container of the programs.
func (m *Machine) id() string { return m.made[len(m.made)-1] }

// Place puts programs and libraries into the machine, by their paths.
func (m *Machine) Place(ctx context.Context, files map[string]string) error {
	var packed bytes.Buffer
	t := tar.NewWriter(&packed)
	for path, text := range files {
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: int64(len(text))})
		if _, more := io.WriteString(t, text); err != nil || more != nil {
			return fmt.Errorf("pack %s: %w", path, errors.Join(err, more))
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("pack files for %s: %w", m.name, err)
	}
	_, err := m.e.CopyToContainer(ctx, m.id(), client.CopyToContainerOptions{DestinationPath: "/", Content: &packed})
	if err != nil {
		return fmt.Errorf("copy files into %s: %w", m.name, err)
	}
	return nil
}

// Start starts the machine's first program.
func (m *Machine) Start(ctx context.Context) error { return m.begin(ctx, m.id()) }

// Run runs a command in the machine as root, with this on its standard input, and
// returns what it printed and its exit status.
func (m *Machine) Run(ctx context.Context, input string, command ...string) (string, int, error) {
	made, err := m.e.ExecCreate(ctx, m.id(), client.ExecCreateOptions{Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return "", 0, fmt.Errorf("run %q in %s: %w", command, m.name, err)
	}
	at, err := m.e.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return "", 0, fmt.Errorf("run %q in %s: %w", command, m.name, err)
	}
	defer at.Close()
	defer context.AfterFunc(ctx, at.Close)()
	_, wrote := io.WriteString(at.Conn, input)
	var out bytes.Buffer
	closed := at.CloseWrite()
	_, read := stdcopy.StdCopy(&out, &out, at.Reader)
	if err := errors.Join(wrote, closed, read, ctx.Err()); err != nil {
		return out.String(), 0, fmt.Errorf("run %q in %s: %w", command, m.name, err)
	}
	res, err := m.e.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err != nil {
		return out.String(), 0, fmt.Errorf("run %q in %s: %w", command, m.name, err)
	}
	return out.String(), res.ExitCode, nil
}

// Listen listens in the machine's network.
func (m *Machine) Listen(address string) (net.Listener, error) {
	type result struct {
		door net.Listener
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this function
		door, err := listenIn(m.namespace, address)
		done <- result{door, err}
	}()
	made := <-done
	if made.err != nil {
		return nil, fmt.Errorf("listen at %s in %s: %w", address, m.name, made.err)
	}
	m.keep(made.door)
	return made.door, nil
}

// listenIn moves its thread into a network.
func listenIn(namespace, address string) (net.Listener, error) {
	f, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return net.Listen("tcp", address)
}

func (m *Machine) keep(door net.Listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors = append(m.doors, door)
}

// Lead has an address in the machine's network lead to one on this host.
func (m *Machine) Lead(address, to string) error {
	door, err := m.Listen(address)
	if err == nil {
		go relay(door, to)
	}
	return err
}

// Publish has a port of an address of this host lead to one of the machine.
func (m *Machine) Publish(on netip.Addr, port uint16) (netip.AddrPort, error) {
	door, err := net.Listen("tcp", netip.AddrPortFrom(on, 0).String())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("publish a port of %s: %w", m.name, err)
	}
	m.keep(door)
	go relay(door, netip.AddrPortFrom(m.Address, port).String())
	return door.Addr().(*net.TCPAddr).AddrPort(), nil
}

// Remove ends the machine.
func (m *Machine) Remove(ctx context.Context) error {
	m.mu.Lock()
	doors := m.doors
	m.mu.Unlock()
	for _, door := range doors {
		_ = door.Close() // it may be closed already
	}
	var errs []error
	for i := len(m.made) - 1; i >= 0; i-- {
		if _, err := m.e.ContainerRemove(ctx, m.made[i], client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", m.name, err))
		}
	}
	return errors.Join(errs...)
}
