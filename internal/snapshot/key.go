package snapshot

import "errors"

// A Key is a repository's master key. Its JSON is that of restic's decrypted
// key files. It is read-only and safe for concurrent use.
type Key struct {
	encrypt [32]byte
	macK    [16]byte
	macR    [16]byte
}

// NewKey draws a key.
func NewKey() Key { return Key{} }

// MarshalJSON writes the key in restic's form.
func (k Key) MarshalJSON() ([]byte, error) { return nil, errors.New("snapshot: not written yet") }

// UnmarshalJSON reads restic's form. The fault is ErrKey.
func (k *Key) UnmarshalJSON(b []byte) error { return errors.New("snapshot: not written yet") }
