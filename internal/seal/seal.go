// Package seal encrypts small secrets at rest (signing keys, volume keys)
// under the installation's master keys, with AES-256-GCM.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// KeySize is the length of a master key in bytes.
const KeySize = 32

// ErrOpen is returned for a box that these keys, or this purpose, did not seal.
var ErrOpen = errors.New("seal: the box does not open with this master key")

// A Mark names the key of a sealed value, at its front. The zero Mark is that of
// an installation's first key, which leaves none: its values begin at once.
type Mark [8]byte

// magic stands before a mark, where a value of the first key has a random nonce.
// A migration knows it too.
const magic = "hpsealed"

// String is the mark in hex.
func (m Mark) String() string { return hex.EncodeToString(m[:]) }

// MarkOf is the mark of a key that is not the first. It tells nothing of the key.
func MarkOf(secret []byte) Mark {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("homeport master key mark"))
	return Mark(m.Sum(nil))
}

// A Box seals secrets under one key and opens what any of its keys sealed. It is
// safe for concurrent use.
type Box struct {
	mu      sync.RWMutex
	keys    map[Mark]cipher.AEAD
	current Mark
}

// New returns a box with a first master key of KeySize bytes, under which it
// seals.
func New(key []byte) (*Box, error) {
	b := NewEmpty()
	if err := b.Add(Mark{}, key); err != nil {
		return nil, err
	}
	return b, nil
}

// NewEmpty returns a box without keys, which opens nothing. Add some and call
// SealUnder before anything is sealed.
func NewEmpty() *Box { return &Box{keys: map[Mark]cipher.AEAD{}} }

// Add lets the box open what a key of KeySize bytes sealed under that mark. It
// does so for its whole life: what was read a moment ago still opens.
func (b *Box) Add(mark Mark, key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("seal: the master key has %d bytes, want %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[mark] = aead
	return nil
}

// SealUnder makes the box seal under one of its keys from now on.
func (b *Box) SealUnder(mark Mark) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys[mark] == nil {
		return fmt.Errorf("seal: there is no key of mark %s", mark)
	}
	b.current = mark
	return nil
}

// Current is the mark under which the box seals.
func (b *Box) Current() Mark {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.current
}

// Seal encrypts plain for one purpose, such as "volume key <id>"; only Open
// with the same purpose gives it back.
func (b *Box) Seal(plain []byte, purpose string) []byte {
	b.mu.RLock()
	mark, aead := b.current, b.keys[b.current]
	b.mu.RUnlock()
	var front []byte
	if mark != (Mark{}) {
		front = slices.Concat([]byte(magic), mark[:])
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce) // never fails since Go 1.24
	return aead.Seal(slices.Concat(front, nonce), nonce, plain, []byte(purpose))
}

// Open decrypts what Seal made. The fault is ErrOpen.
func (b *Box) Open(sealed []byte, purpose string) ([]byte, error) {
	var mark Mark
	if rest, ok := bytes.CutPrefix(sealed, []byte(magic)); ok && len(rest) >= len(mark) {
		mark, sealed = Mark(rest[:len(mark)]), rest[len(mark):]
	}
	b.mu.RLock()
	aead := b.keys[mark]
	b.mu.RUnlock()
	if aead == nil {
		return nil, fmt.Errorf("%w: it is sealed under key %s, which is not here", ErrOpen, mark)
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrOpen
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], []byte(purpose))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// A Column is where a package keeps sealed values: its statements let them be
// sealed again under another key, a batch of rows at a time, and counted. All
// name a row by a text.
type Column struct {
	Name string // for people, in the plural
	// List takes a row's name, a mark and a number: at most that many rows after
	// that one, in order, whose value is not under that mark. It locks them and
	// returns each one's name and value.
	List string
	// First comes before every row's name.
	First string
	// Keep takes a row's name and its value, sealed again.
	Keep string
	// Count returns marks and how many values are under each.
	Count string
	// Purpose is what a row's value was sealed for.
	Purpose func(row string) string
}
