//go:build unix && !linux

package pg

import (
	"errors"
	"syscall"
)

func mountPoint(*syscall.Credential, string) string { return "" }

func enterMount(string, string) error { return errors.ErrUnsupported }
