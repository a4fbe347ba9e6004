//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider/sandbox"
	"homeport.dev/homeport/internal/sandboxinit"
)

// TestMain lets the test binary be the agent of the machines it launches.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "stage1":
			exit(sandboxinit.Stage1())
		case "stage2":
			exit(sandboxinit.Stage2(context.Background(), testAgent))
		case "node":
			exit(testNode(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// testAgent answers each connection to the SSH port by running the shell
// command it reads, as a user's process would.
func testAgent(ctx context.Context, pod sandboxinit.Pod) error {
	for _, f := range pod.SSH {
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		_ = f.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go answer(conn, pod)
			}
		}()
	}
	_ = pod.Ready.Close()
	<-ctx.Done()
	return nil
}

func answer(conn net.Conn, pod sandboxinit.Pod) {
	defer func() { _ = conn.Close() }()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch verb {
	case "pod":
		pod.SSH, pod.Ready = nil, nil
		_ = json.NewEncoder(conn).Encode(pod)
	case "call":
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", pod.Socket)
		}}}
		res, err := client.Get("http://node" + rest)
		if err != nil {
			fmt.Fprintln(conn, "error", err)
			return
		}
		b, _ := io.ReadAll(res.Body)
		fmt.Fprint(conn, res.StatusCode, " ", string(b))
	case "init": // with the rights of PID 1
		runIn(conn, rest, func(start func() error) error { return start() })
	case "user":
		runIn(conn, rest, asUser)
	}
}

func runIn(conn net.Conn, script string, as func(func() error) error) {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = conn, conn
	err := as(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		fmt.Fprintln(conn, err)
	}
}

// asUser starts a process on a thread that gave up what the agent's users do
// not get. The thread ends with the goroutine.
func asUser(start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		const kept = 0xa80425fb
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			if kept>>c&1 == 0 {
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
					done <- err
					return
				}
			}
		}
		done <- start()
	}()
	return <-done
}

// testNode is a node that launches one machine and prints it, for tests that kill it.
func testNode(dir, name string) error {
	s, err := newSandbox(dir, nil)
	if err != nil {
		return err
	}
	c := s.Clouds()["saltpier"]
	offers, err := c.Offers(context.Background())
	if err != nil {
		return err
	}
	if err := s.Supported(context.Background()); err != nil {
		return err
	}
	fmt.Println("launching")
	m, err := c.Launch(context.Background(), request(name, offers[0], 0))
	if err != nil {
		return err
	}
	fmt.Println("launched", m.Ref)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func newSandbox(dir string, agent http.Handler) (*sandbox.Sandbox, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if agent == nil {
		agent = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "node says hello") })
	}
	return sandbox.New(sandbox.Config{Dir: dir, AgentBinary: self, Agent: agent, Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
}
