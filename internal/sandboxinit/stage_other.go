//go:build !linux

package sandboxinit

import (
	"context"
	"errors"
)

var errLinux = errors.New("sandbox pods need Linux")

// Stage1 needs Linux.
func Stage1() error { return errLinux }

// Stage2 needs Linux.
func Stage2(context.Context, func(ctx context.Context, pod Pod) error) error { return errLinux }
