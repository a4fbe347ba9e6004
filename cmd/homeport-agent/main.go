//go:build linux

// Command homeport-agent runs inside a pod. `run` is the agent itself, for
// machines whose every process belongs to the pod; `stage1` and `stage2` make
// a sandbox pod and become its agent; `exec` and `sftp` are what the agent
// runs itself again as, for the processes of users.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"homeport.dev/homeport/internal/agent"
	"homeport.dev/homeport/internal/sandboxinit"
)

// version is set by the linker.
var version = "dev"

const usage = "usage: homeport-agent run | stage1 | stage2 | version"

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "homeport-agent:", err)
		os.Exit(1)
	}
}

func dispatch(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "run":
		return run(context.Background(), os.Environ(), os.Stdin)
	case "stage1":
		return sandboxinit.Stage1()
	case "stage2":
		return sandboxinit.Stage2(context.Background(), runSandboxPod)
	case agent.ExecCommand:
		return agent.Exec(args[1:])
	case agent.SFTPCommand:
		return agent.SFTP()
	case "version":
		fmt.Println(version)
		return nil
	default:
		return errors.New(usage)
	}
}

func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// landingFile is there for the last 15 minutes of a pod that is switched off for
// want of money. Its folder is the pod's own.
const landingFile = "/run/homeport-landing"

// runSandboxPod is the agent as PID 1 of a sandbox pod. The node is reached
// through a socket in a shared folder, dialled anew after each of its restarts.
func runSandboxPod(ctx context.Context, pod sandboxinit.Pod) error {
	listeners, err := listen(pod.SSH)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", pod.Socket)
	}
	return agent.Run(ctx, agent.Config{
		BaseURL: "http://homeport", Dial: dial, Token: pod.Token, SSH: listeners,
		StateDir: pod.StateDir, Workspace: pod.Workspace, Limits: pod.Limits,
		Landing: landingFile, Hardware: pod.Hardware,
		Version: version, Ready: func() { ready(pod.Ready) }, Logger: logger(),
	})
}

// ready says that the agent has taken over.
func ready(f *os.File) {
	if f != nil {
		_, _ = f.Write([]byte{1}) // nobody listens any more: nobody needs to know
		f.Close()
	}
}

// listen takes over inherited listening sockets. The files are closed: a
// listener has a descriptor of its own.
func listen(files []*os.File) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, f := range files {
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("take over the ssh socket: %w", err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// run is the agent on a machine of its own: SIGTERM means that the machine is
// about to be taken away.
func run(ctx context.Context, environ []string, stdin *os.File) error {
	o, err := readOptions(environ, stdin)
	if err != nil {
		return err
	}
	var listeners []net.Listener
	for _, addr := range o.ssh {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("listen for ssh: %w", err)
		}
		listeners = append(listeners, l)
	}
	evict, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return agent.Run(ctx, agent.Config{
		BaseURL: strings.TrimSuffix(o.url, "/"), Token: o.token, SSH: listeners,
		StateDir: o.stateDir, Workspace: o.workspace, Version: version, Landing: landingFile,
		Alone: true, Evicted: evict.Done(), Logger: logger(),
	})
}
