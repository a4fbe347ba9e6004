//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ExecCommand is the first argument with which the agent's binary is run again
// for every process of a user; the rest goes to Exec.
const ExecCommand = "exec"

// userCapabilities are what root keeps in a pod: enough for packages, owners,
// setuid bits and file capabilities; nothing that reaches mounts, other
// processes' memory, the clock or kernel modules. The agent keeps more, and so
// cannot be traced by the pod's user.
var userCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
	unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW,
	unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP,
}

// Exec becomes a user's process: it gives up what users do not get and
// executes args[0] with the remaining arguments, the name among them. It
// returns only when that failed.
func Exec(args []string) error {
	if len(args) < 2 {
		return errors.New("exec needs a path and the arguments, their name first")
	}
	runtime.LockOSThread() // what follows counts for this thread, and exec keeps this thread's
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	unix.Umask(0o022)
	if err := unix.Exec(args[0], args[1:], os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", args[0], err)
	}
	return nil
}

// dropCapabilities bounds what this thread, and all that it executes, can ever
// hold. A process that holds nothing has nothing to give up.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	if have[0].Permitted|have[1].Permitted == 0 {
		return nil
	}
	var keep [2]uint32
	for _, c := range userCapabilities {
		keep[c/32] |= 1 << (c % 32)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keep[c/32]&(1<<(c%32)) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: this kernel has no such capability
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for i := range have {
		have[i].Permitted &= keep[i]
		have[i].Effective = have[i].Permitted
		have[i].Inheritable = 0
	}
	if err := unix.Capset(&head, &have[0]); err != nil {
		return fmt.Errorf("set capabilities: %w", err)
	}
	return nil
}
