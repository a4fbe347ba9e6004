//go:build linux

package agent

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	killGrace = 10 * time.Second // between SIGTERM and SIGKILL
	killWait  = 30 * time.Second // for what SIGKILL cannot end at once
	killPoll  = 10 * time.Millisecond
)

// siginfoPid reads si_pid, which x/sys does not name: after three ints, padded
// to the size of a pointer.
func siginfoPid(info *unix.Siginfo) int {
	const offset = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset))) //nolint:gosec // within the struct the kernel filled
}

// killAll ends every process of the pod but this one, politely first, and
// reports whether all of them are gone. No new one can be started from here.
func (t *table) killAll(ctx context.Context, grace time.Duration) bool {
	t.close()
	if t.signalAll(syscall.SIGTERM) == 0 {
		return true
	}
	t.signalAll(syscall.SIGHUP) // interactive shells ignore SIGTERM
	t.signalAll(syscall.SIGCONT)
	if t.waitGone(ctx, grace, 0) {
		return true
	}
	return t.waitGone(ctx, killWait, syscall.SIGKILL)
}

// waitGone polls until nothing is left, sending sig at each look.
func (t *table) waitGone(ctx context.Context, limit time.Duration, sig syscall.Signal) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(killPoll)
	defer tick.Stop()
	for {
		if t.signalAll(sig) == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// signalAll sends sig to every process of the pod and returns how many there
// were; as PID 1, whose kernel does it in one call, 1 stands for any number.
func (t *table) signalAll(sig syscall.Signal) int {
	if t.init {
		if err := syscall.Kill(-1, sig); err != nil {
			return 0
		}
		return 1
	}
	n := 0
	for _, pid := range t.victims(listProcesses()) {
		if syscall.Kill(pid, sig) == nil {
			n++
		}
	}
	return n
}

// process is one line of the process list.
type process struct {
	pid, parent, session int
	dead                 bool // not waited for yet
}

// victims picks the pod's own processes: all descendants when this process is
// alone, else the members of the sessions started here.
func (t *table) victims(all []process) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pids []int
	if t.alone {
		self := os.Getpid()
		parent := make(map[int]int, len(all))
		for _, p := range all {
			parent[p.pid] = p.parent
		}
		for _, p := range all {
			if !p.dead && descends(parent, p.pid, self) {
				pids = append(pids, p.pid)
			}
		}
		return pids
	}
	members := map[int]struct{}{}
	for _, p := range all {
		if _, ours := t.sessions[p.session]; ours && !p.dead {
			pids = append(pids, p.pid)
			members[p.session] = struct{}{}
		}
	}
	for id := range t.sessions { // an empty session's number may come to mean another one
		_, full := members[id]
		_, live := t.live[id]
		if !full && !live {
			delete(t.sessions, id)
		}
	}
	return pids
}

// descends reports whether pid is a true descendant of top.
func descends(parent map[int]int, pid, top int) bool {
	for range len(parent) {
		up, ok := parent[pid]
		if !ok || up == 0 {
			return false
		}
		if up == top {
			return true
		}
		pid = up
	}
	return false
}

// listProcesses reads /proc. A process that ends meanwhile is left out.
func listProcesses() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if p, ok := parseStat(pid, stat); ok {
			all = append(all, p)
		}
	}
	return all
}

// parseStat reads the fields after the command's name, which may itself hold
// blanks and parentheses.
func parseStat(pid int, stat []byte) (process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	f := bytes.Fields(stat[end+1:])
	if len(f) < 4 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	if err1 != nil || err2 != nil {
		return process{}, false
	}
	dead := len(f[0]) == 1 && (f[0][0] == 'Z' || f[0][0] == 'X')
	return process{pid: pid, parent: parent, session: session, dead: dead}, true
}
