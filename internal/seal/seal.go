// Package seal encrypts small secrets at rest (signing keys, volume keys)
// under the installation's master key, with AES-256-GCM.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// KeySize is the length of a master key in bytes.
const KeySize = 32

// ErrOpen is returned for a box that this key, or this purpose, did not seal.
var ErrOpen = errors.New("seal: the box does not open with this master key")

// A Box seals and opens secrets. It is safe for concurrent use.
type Box struct{ aead cipher.AEAD }

// New returns a box for a master key of KeySize bytes.
func New(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("seal: the master key has %d bytes, want %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return &Box{aead: aead}, nil
}

// Seal encrypts plain for one purpose, such as "volume key <id>"; only Open
// with the same purpose gives it back.
func (b *Box) Seal(plain []byte, purpose string) []byte {
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(plain)+b.aead.Overhead())
	rand.Read(nonce) // never fails since Go 1.24
	return b.aead.Seal(nonce, nonce, plain, []byte(purpose))
}

// Open decrypts what Seal made. The fault is ErrOpen.
func (b *Box) Open(sealed []byte, purpose string) ([]byte, error) {
	n := b.aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrOpen
	}
	plain, err := b.aead.Open(nil, sealed[:n], sealed[n:], []byte(purpose))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}
