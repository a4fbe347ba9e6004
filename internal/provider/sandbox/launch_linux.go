package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/provider"
)

// create launches a machine and returns once PID 1 is set up. The launch goes
// on when the caller's context ends: the machine is then found later. A fault may
// make it another one than was sold.
func (c *cloud) create(ctx context.Context, l provider.Launch, fault string) (record, error) {
	cl, err := c.claim(ctx, l, "")
	if err != nil {
		return record{}, err
	}
	type result struct {
		record record
		err    error
	}
	done := make(chan result, 1)
	lasting := context.WithoutCancel(ctx)
	err = c.s.background(func() {
		r, err := c.raise(lasting, cl, l, fault)
		done <- result{r, err}
	})
	if err != nil {
		cl.unlock()
		return record{}, errors.Join(err, c.s.destroy(lasting, c.dir, cl.Name))
	}
	select {
	case r := <-done:
		return r.record, r.err
	case <-ctx.Done():
		return record{}, fmt.Errorf("launch %s: %w", l.Name, ctx.Err())
	}
}

// raise builds a claimed machine, or leaves nothing of it.
func (c *cloud) raise(ctx context.Context, cl *claim, l provider.Launch, fault string) (record, error) {
	err := c.boot(ctx, cl, l, fault)
	cl.unlock()
	if err == nil {
		return cl.record, nil
	}
	if undo := c.s.destroy(ctx, c.dir, cl.Name); undo != nil {
		return record{}, fmt.Errorf("launch %s: %w", cl.Name, errors.Join(err, undo))
	}
	if errors.Is(err, provider.ErrPortTaken) {
		return record{}, err
	}
	return record{}, provider.ErrRefused.With("The sandbox could not start a pod on this host.").Because(err)
}

func (c *cloud) boot(ctx context.Context, cl *claim, l provider.Launch, fault string) error {
	port := l.SSHPort
	if c.ChoosesPort {
		port = 0
	}
	files, port, err := listen(port)
	if err != nil {
		return err
	}
	defer closeAll(files)
	cl.Port = port
	if err := c.save(cl.record); err != nil {
		return err
	}
	if err := c.s.serve(ctx, c, cl.Name); err != nil {
		return err
	}
	p, err := c.s.newPlan(cl.dir)
	if err != nil {
		return err
	}
	p.Hardware = hardware(l.Offer, fault)
	p.UIDBase, p.SSH, p.Token = cl.UIDBase, len(files), l.Bootstrap.Token
	if l.Bootstrap.Hostname != "" {
		p.Hostname = l.Bootstrap.Hostname
	}
	p.Cgroup = c.Name + "-" + cl.Ref
	p.Weight = min(100, 10*max(1, cl.GPUCount))
	return c.s.stage1(p, cl.lock, files)
}

// maxPids is the most processes of one machine.
const maxPids = 4096

// newPlan is what every machine's plan has.
func (s *Sandbox) newPlan(dir string) (plan, error) {
	skeleton, extra, err := s.skeleton()
	if err != nil {
		return plan{}, err
	}
	agent, err := filepath.Abs(s.AgentBinary)
	if err != nil {
		return plan{}, fmt.Errorf("agent binary: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return plan{}, fmt.Errorf("size of the host's memory: %w", err)
	}
	return plan{
		Dir: dir, Skeleton: skeleton, Extra: extra, Agent: agent, Rootless: rootless(), Hostname: "pod",
		Pids: maxPids, Memory: int64(info.Totalram) * int64(info.Unit) / 2, Weight: 10,
	}, nil
}

// stage1 runs the agent binary's first stage to its end. Its standard error is
// the machine's log.
func (s *Sandbox) stage1(p plan, lock *os.File, ssh []*os.File) error {
	log, err := os.OpenFile(filepath.Join(p.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("machine's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	answer, report, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer func() { _ = answer.Close() }()
	cmd := exec.Command(p.Agent, "stage1")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = append([]*os.File{report, lock}, ssh...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS}
	if p.Rootless {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	feed, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	err = cmd.Start()
	_ = report.Close()
	if err != nil {
		_ = feed.Close()
		return fmt.Errorf("start %s: %w", p.Agent, err)
	}
	told := json.NewEncoder(feed).Encode(p)
	_ = feed.Close()
	var r struct {
		Error string `json:"error"`
	}
	heard := json.NewDecoder(answer).Decode(&r)
	ended := cmd.Wait()
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return errors.Join(told, heard, ended)
}

// listen makes the machine's listening sockets in the host's network, on both
// loopback addresses: a pod with a network of its own still answers there.
func listen(port int) ([]*os.File, int, error) {
	const tries = 20
	for try := 0; ; try++ {
		files, got, err := listenBoth(port)
		if err == nil || port != 0 || try == tries || !errors.Is(err, provider.ErrPortTaken) {
			return files, got, err
		}
	}
}

func listenBoth(port int) ([]*os.File, int, error) {
	v4, err := listenOne("tcp4", "127.0.0.1", port)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = v4.Close() }()
	port = v4.Addr().(*net.TCPAddr).Port
	f4, err := v4.File()
	if err != nil {
		return nil, 0, fmt.Errorf("listen: %w", err)
	}
	v6, err := listenOne("tcp6", "::1", port)
	if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) {
		return []*os.File{f4}, port, nil // this host has no IPv6
	}
	if err != nil {
		_ = f4.Close()
		return nil, 0, err
	}
	defer func() { _ = v6.Close() }()
	f6, err := v6.File()
	if err != nil {
		_ = f4.Close()
		return nil, 0, fmt.Errorf("listen: %w", err)
	}
	return []*os.File{f4, f6}, port, nil
}

func listenOne(network, host string, port int) (*net.TCPListener, error) {
	l, err := net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EACCES) {
		return nil, provider.ErrPortTaken.With("Port %d of this host is taken.", port).Because(provider.ErrRefused.Because(err))
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l.(*net.TCPListener), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
