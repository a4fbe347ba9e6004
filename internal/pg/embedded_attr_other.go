//go:build unix && !linux

package pg

import "syscall"

// childAttr keeps a terminal's ctrl-c from the server: it is ours to stop. No
// other kernel than Linux ends it when we die; the next start does.
func childAttr(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred, Setpgid: true}
}
