package sandboxinit

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// keep are the capabilities that root in a pod has: those of a common
// container. Without SYS_PTRACE the agent's memory, and so its token, stays
// closed to the user's processes; without SYS_ADMIN its mounts stay as they are.
var keep = []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW,
	unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT,
	unix.CAP_KILL, unix.CAP_AUDIT_WRITE}

// AsUser runs start on a thread whose children can never have more than a
// container's root: start begins the user's processes in it (exec.Cmd.Start,
// pty.Start) and starts no goroutine that does. PID 1 itself keeps its rights.
func AsUser(start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := narrow(); err != nil {
			done <- err
			return
		}
		done <- start()
	}()
	return <-done
}

// narrow drops every other capability from the thread's bounding set.
func narrow() error {
	kept := map[int]bool{}
	for _, c := range keep {
		kept[c] = true
	}
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if kept[c] {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if err != nil && err != unix.EINVAL { // EINVAL: this kernel has not so many
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}
