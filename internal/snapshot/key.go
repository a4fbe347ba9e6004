package snapshot

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/poly1305" //nolint:staticcheck // the repository format is built on it
)

// Sizes of the encryption, in bytes.
const (
	ivSize   = 16
	macSize  = 16
	overhead = ivSize + macSize // of each sealed piece
)

// errMAC says that bytes were not sealed with this key, or were changed since.
var errMAC = errors.New("snapshot: message authentication failed")

// A Key is a repository's master key: AES-256 in counter mode for secrecy,
// Poly1305-AES for authenticity. Its JSON is that of restic's decrypted key
// files. It is read-only, safe for concurrent use, and unusable when zero.
type Key struct {
	encrypt [32]byte
	macK    [16]byte
	macR    [16]byte

	aes cipher.Block // of encrypt
	mac cipher.Block // of macK
}

// keyJSON is a key as restic writes it.
type keyJSON struct {
	MAC struct {
		K []byte `json:"k"`
		R []byte `json:"r"`
	} `json:"mac"`
	Encrypt []byte `json:"encrypt"`
}

// NewKey draws a key.
func NewKey() Key {
	var b [64]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return makeKey(b[:])
}

// makeKey makes a key of 64 bytes: encrypt, mac k, mac r.
func makeKey(b []byte) Key {
	var k Key
	copy(k.encrypt[:], b)
	copy(k.macK[:], b[32:])
	copy(k.macR[:], b[48:])
	for _, i := range []int{3, 7, 11, 15} {
		k.macR[i] &= 15
	}
	for _, i := range []int{4, 8, 12} {
		k.macR[i] &= 252
	}
	// The sizes are right, so neither can fail.
	k.aes, _ = aes.NewCipher(k.encrypt[:])
	k.mac, _ = aes.NewCipher(k.macK[:])
	return k
}

// MarshalJSON writes the key in restic's form.
func (k Key) MarshalJSON() ([]byte, error) {
	if !k.usable() {
		return nil, ErrKey.Because(errors.New("the key is empty"))
	}
	var j keyJSON
	j.MAC.K, j.MAC.R, j.Encrypt = k.macK[:], k.macR[:], k.encrypt[:]
	return json.Marshal(j)
}

// UnmarshalJSON reads restic's form. The fault is ErrKey.
func (k *Key) UnmarshalJSON(b []byte) error {
	var j keyJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return ErrKey.Because(err)
	}
	if len(j.Encrypt) != 32 || len(j.MAC.K) != 16 || len(j.MAC.R) != 16 {
		return ErrKey.Because(errors.New("a part has the wrong size"))
	}
	*k = makeKey(append(append(append(make([]byte, 0, 64), j.Encrypt...), j.MAC.K...), j.MAC.R...))
	return nil
}

// ChunkerKey derives a key for the chunker, of 32 bytes, for a repository of
// which nothing but its master key is kept.
func (k Key) ChunkerKey() ([]byte, error) {
	if !k.usable() {
		return nil, ErrKey.Because(errors.New("the key is empty"))
	}
	secret := slices.Concat(k.encrypt[:], k.macK[:], k.macR[:])
	chunker, err := hkdf.Key(sha256.New, secret, nil, "homeport chunker key", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a chunker key: %w", err)
	}
	return chunker, nil
}

// String hides the key from logs.
func (k Key) String() string { return "snapshot.Key" }

// GoString hides the key from logs.
func (k Key) GoString() string { return "snapshot.Key" }

func (k Key) usable() bool { return k.aes != nil && k.mac != nil }

// onceKey is the one-time key of Poly1305-AES under this nonce.
func (k *Key) onceKey(nonce []byte) *[32]byte {
	var key [32]byte
	copy(key[:16], k.macR[:])
	k.mac.Encrypt(key[16:], nonce)
	return &key
}

// seal appends iv, ciphertext and tag of plain to dst. plain must not overlap
// the free part of dst.
func (k *Key) seal(dst, plain []byte) []byte {
	var iv [ivSize]byte
	rand.Read(iv[:]) // never fails since Go 1.24
	start := len(dst)
	dst = slices.Grow(dst, len(plain)+overhead)
	dst = append(dst, iv[:]...)
	dst = dst[:start+ivSize+len(plain)]
	text := dst[start+ivSize:]
	cipher.NewCTR(k.aes, iv[:]).XORKeyStream(text, plain)
	var tag [macSize]byte
	poly1305.Sum(&tag, text, k.onceKey(iv[:]))
	return append(dst, tag[:]...)
}

// open appends the plain text of a sealed piece to dst. The error is errMAC.
func (k *Key) open(dst, sealed []byte) ([]byte, error) {
	if len(sealed) < overhead {
		return nil, errMAC
	}
	iv, text := sealed[:ivSize], sealed[ivSize:len(sealed)-macSize]
	var tag [macSize]byte
	copy(tag[:], sealed[len(sealed)-macSize:])
	if !poly1305.Verify(&tag, text, k.onceKey(iv)) {
		return nil, errMAC
	}
	start := len(dst)
	dst = slices.Grow(dst, len(text))[:start+len(text)]
	cipher.NewCTR(k.aes, iv).XORKeyStream(dst[start:], text)
	return dst, nil
}
