//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/fault"
)

// errClosing occurs when a process is asked for after the last sync began.
var errClosing = fault.New(fault.Conflict, "pod_closing", "This pod is being deleted.")

// table is the agent's list of the processes it started for users. Each leads
// a session of its own.
type table struct {
	init  bool // this is PID 1
	alone bool // every descendant of this process belongs to the pod

	mu       sync.Mutex
	live     map[int]struct{} // started here and not waited for
	sessions map[int]struct{} // session ids that may have processes
	closed   bool
	exited   chan struct{} // nudges the reaper
	waits    sync.WaitGroup
}

func newTable(alone bool) *table {
	return &table{
		init: os.Getpid() == 1, alone: alone,
		live: map[int]struct{}{}, sessions: map[int]struct{}{}, exited: make(chan struct{}, 1),
	}
}

// child is one process of a user's.
type child struct {
	pid    int
	done   chan struct{}      // closed when it was waited for
	status syscall.WaitStatus // valid then
}

// start starts a process in a session of its own. The lock is held so that the
// reaper never meets a child that is not in the list yet.
func (t *table) start(cmd *exec.Cmd) (*child, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosing
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{pid: cmd.Process.Pid, done: make(chan struct{})}
	t.live[c.pid] = struct{}{}
	t.sessions[c.pid] = struct{}{}
	t.waits.Go(func() { t.wait(cmd, c) })
	return c, nil
}

// wait takes a child's end, also when nobody asks for it any more.
func (t *table) wait(cmd *exec.Cmd, c *child) {
	_ = cmd.Wait() // what it says is in the state
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		c.status = status
	}
	t.mu.Lock()
	delete(t.live, c.pid)
	t.mu.Unlock()
	close(c.done)
	select {
	case t.exited <- struct{}{}:
	default:
	}
}

// signal sends sig to the process group that the child leads, while it lives.
func (t *table) signal(c *child, sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, live := t.live[c.pid]; live {
		_ = syscall.Kill(-c.pid, sig)
	}
}

// close makes every further start fail.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// reaps reports whether orphans come to this process.
func (t *table) reaps() bool { return t.init || t.alone }

// reap waits for orphans until ctx ends. It looks before it takes, so that the
// children started here are left to those who wait for them.
func (t *table) reap(ctx context.Context) {
	if !t.init {
		// Orphans of a process that is not PID 1 come to it only when asked for.
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	tick := time.NewTicker(time.Second) // one behind a child that nobody waits for yet
	defer tick.Stop()
	for {
		for t.reapOne() {
		}
		select {
		case <-ctx.Done():
			return
		case <-died:
		case <-t.exited:
		case <-tick.C:
		}
	}
}

// reapOne takes one dead orphan, and reports whether there may be more.
func (t *table) reapOne() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	pid, err := peekDead()
	if err != nil || pid == 0 {
		return false
	}
	if _, mine := t.live[pid]; mine {
		return false
	}
	_, err = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil
}

// peekDead returns a child that is dead and not waited for, or 0.
func peekDead() (int, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return siginfoPid(&info), nil
	}
}
