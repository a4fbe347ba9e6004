package pg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A child is one server process that we started.
type child struct {
	cmd      *exec.Cmd
	done     chan error    // one value, then closed
	exited   chan struct{} // closed with done
	stopping atomic.Bool

	mu   sync.Mutex
	tail []string // the last lines it wrote
}

// startChild starts the server and watches over it.
func startChild(state stateDir, program string, args []string, logger *slog.Logger) (*child, error) {
	c := &child{done: make(chan error, 1), exited: make(chan struct{})}
	c.cmd = exec.Command(program, args...)
	c.cmd.Dir = "/"
	c.cmd.Env = ServerEnv()
	c.cmd.SysProcAttr = childAttr(state.cred)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout, c.cmd.Stderr = in, in
	started := make(chan error)
	read := make(chan struct{})
	go c.read(out, read, logger)
	go func() {
		// The kernel ends the server when this thread ends, not this process:
		// so the thread must live exactly as long as the server may.
		runtime.LockOSThread()
		err := state.enter()
		if err == nil {
			err = c.cmd.Start()
		}
		in.Close()
		started <- err
		if err == nil {
			c.finish(c.cmd.Wait(), read)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return c, nil
}

// finish tells how the server ended, once its last lines were read.
func (c *child) finish(err error, read <-chan struct{}) {
	<-read
	switch {
	case c.stopping.Load():
		err = nil
	case err == nil:
		err = errors.New("PostgreSQL ended unasked")
	default:
		err = fmt.Errorf("PostgreSQL ended: %w: %s", err, c.lastLines())
	}
	c.done <- err
	close(c.done)
	close(c.exited)
}

// read logs what the server writes, until it and its children have ended.
func (c *child) read(out io.ReadCloser, done chan<- struct{}, logger *slog.Logger) {
	defer close(done)
	defer out.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		c.mu.Lock()
		c.tail = append(c.tail[max(0, len(c.tail)-9):], line)
		c.mu.Unlock()
		if strings.HasPrefix(line, "FATAL:") || strings.HasPrefix(line, "PANIC:") {
			logger.Warn("postgres", "line", line)
			continue
		}
		logger.Debug("postgres", "line", line)
	}
}

func (c *child) lastLines() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.tail, " | ")
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// blockedByPredecessor says whether the server gave up because another one
// still seems to hold the data.
func (c *child) blockedByPredecessor() bool {
	lines := c.lastLines()
	return strings.Contains(lines, "pre-existing shared memory block") ||
		strings.Contains(lines, "lock file \"postmaster.pid\" already exists")
}

// waitReady returns when the server has said in its pid file that it is ready.
// That a connection works would not prove it: another server may answer.
func (c *child) waitReady(ctx context.Context, data string) error {
	for {
		if p, err := readPidFile(data); err == nil && p.pid == c.pid() && p.ready {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("PostgreSQL does not start: %s", c.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL to start: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end stops the server and waits for it: in good order while ctx lasts, then
// at once.
func (c *child) end(ctx context.Context) error {
	c.stopping.Store(true)
	var err error
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, time.Minute}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		if step.signal != syscall.SIGINT {
			ctx = context.WithoutCancel(ctx)
			err = errors.New("PostgreSQL did not stop in time and was ended at once")
		}
		select {
		case <-c.exited:
			return nil
		default:
		}
		if err := signalProcess(c.pid(), step.signal); err != nil {
			return err
		}
		timer := time.NewTimer(step.wait)
		select {
		case <-c.exited:
			timer.Stop()
			return err
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return errors.New("PostgreSQL does not end")
}
