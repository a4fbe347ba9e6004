package pgtest

import "syscall"

func mountedNoexec(st *syscall.Statfs_t) bool {
	const noexec = 0x8
	return st.Flags&noexec != 0
}
