package pg

import "syscall"

// childAttr makes the kernel end the server, in good order, when we die, and
// keeps a terminal's ctrl-c from it: it is ours to stop.
func childAttr(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred, Setpgid: true, Pdeathsig: syscall.SIGINT}
}
