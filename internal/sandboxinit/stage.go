package sandboxinit

import (
	"context"
	"errors"
)

// Stage1 runs as `homeport-agent stage1`, as root, before the user namespace
// exists: it makes the id-mapped mounts that only real root can make, starts
// stage 2 in its namespaces, reports once, and returns.
func Stage1() error {
	return errors.New("stage 1 is not built in")
}

// Stage2 runs as `homeport-agent stage2`, as PID 1 of the pod: it finishes the
// root file system, leaves the host's, and calls run, which does not return
// while the pod lives. The context ends when the pod must end.
func Stage2(run func(ctx context.Context, pod Pod) error) error {
	return errors.New("stage 2 is not built in")
}
