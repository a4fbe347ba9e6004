//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"net"
	"time"

	"homeport.dev/homeport/internal/provider"
)

// Elsewhere than on Linux the offers are shown and nothing can be launched.

const patientLock = 0

var errLocked = errors.New("locked by another process")

func lockFile(context.Context, string, time.Duration) (func(), error) { return func() {}, nil }

func lockHeld(string) bool { return false }

func listenSocket(string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func (b birth) alive() bool { return false }

type claim struct{ record }

func (c *claim) unlock() {}

func (c *cloud) claim(context.Context, provider.Launch, string) (*claim, error) {
	return nil, errors.ErrUnsupported
}

func (c *cloud) create(context.Context, provider.Launch, string) (record, error) {
	return record{}, errors.ErrUnsupported
}

func (c *cloud) crash(context.Context, string) error { return errors.ErrUnsupported }

func (s *Sandbox) destroy(context.Context, string, string) error { return nil }

func (s *Sandbox) bury(context.Context, string, string) error { return nil }

func (s *Sandbox) sweepGroups() {}

func (s *Sandbox) sweep(context.Context) {}

func (s *Sandbox) trial(context.Context) error {
	return provider.ErrUnsupported.With("Pods cannot run on this host: sandbox pods need Linux. Use the docker provider, or run Homeport in a Linux virtual machine.")
}
