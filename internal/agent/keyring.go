//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"
)

// rights of a key that may authenticate.
type rights int

const (
	rightNone  rights = iota
	rightProbe        // may authenticate, gets no session
	rightLogin
)

// keyring holds the public keys that may authenticate as root. It changes
// while the pod runs.
type keyring struct {
	mu    sync.Mutex
	keys  map[string]struct{} // wire form
	lines []string            // what keys was made of
	probe string              // wire form, or ""
}

// setProbe sets the control plane's own key from its line.
func (k *keyring) setProbe(line string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.probe = ""
	if line == "" {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return fmt.Errorf("read the probe key: %w", err)
	}
	k.probe = string(key.Marshal())
	return nil
}

// set replaces the keys that may log in and reports whether they changed and
// how many lines could not be read; those are left out.
func (k *keyring) set(lines []string) (changed bool, bad int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys != nil && slices.Equal(k.lines, lines) {
		return false, 0
	}
	keys := make(map[string]struct{}, len(lines))
	for _, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace([]byte(line)))
		if err != nil {
			bad++
			continue
		}
		keys[string(key.Marshal())] = struct{}{}
	}
	k.keys, k.lines = keys, slices.Clone(lines)
	return true, bad
}

// rights says what the key of that wire form may do. A login key that is also
// the probe's may log in.
func (k *keyring) rights(wire string) rights {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.keys[wire]; ok {
		return rightLogin
	}
	if k.probe != "" && k.probe == wire {
		return rightProbe
	}
	return rightNone
}
