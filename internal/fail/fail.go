// Package fail holds the failpoints: named lines at which a test may kill the
// process to prove that nothing is lost, doubled or leaked there. They are
// always compiled in and do nothing unless one is armed, which the server
// refuses to do off loopback.
package fail

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

type armed struct {
	name string
	left atomic.Int64
}

var current atomic.Pointer[armed]

// Arm makes the point of that name kill the process. spec is "name" or
// "name:n", to die at the n-th pass. An unknown name is an error.
func Arm(spec string) error {
	name, count, found := strings.Cut(spec, ":")
	n := int64(1)
	if found {
		v, err := strconv.ParseInt(count, 10, 64)
		if err != nil || v < 1 {
			return fmt.Errorf("failpoint %q: the count must be a positive number", spec)
		}
		n = v
	}
	if !slices.Contains(Names, name) {
		return fmt.Errorf("failpoint %q is not registered", name)
	}
	a := &armed{name: name}
	a.left.Store(n)
	current.Store(a)
	return nil
}

// Point dies here, as if by kill -9, when this point is armed.
func Point(name string) {
	a := current.Load()
	if a == nil || a.name != name || a.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
