//go:build unix && !linux

package pgtest

import "syscall"

func mountedNoexec(*syscall.Statfs_t) bool { return true }
