// Package id makes every identifier and secret token: it is the only place
// that draws randomness for them.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/google/uuid"
)

// New returns a random UUIDv4. Version 4 matters: pods are addressed by the
// first segment of their id, which a time-ordered version would repeat.
func New() uuid.UUID { return uuid.New() }

// Parse reads a UUID in its canonical 36-character form only.
func Parse(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.Nil, false
	}
	u, err := uuid.Parse(s)
	return u, err == nil
}

// Derive returns the UUIDv5 of the parts within space, each part ended by a
// zero byte so that no two lists of parts collide.
func Derive(space uuid.UUID, parts ...string) uuid.UUID {
	var b []byte
	for _, p := range parts {
		b = append(append(b, p...), 0)
	}
	return uuid.NewSHA1(space, b)
}

// First returns the part of a UUID before its first dash: the name a pod is
// reached by.
func First(u uuid.UUID) string { return u.String()[:8] }

// Token returns 32 random bytes in base64url: a secret to hand out once.
func Token() string { return base64.RawURLEncoding.EncodeToString(Bytes(32)) }

// Hash returns the SHA-256 of a token: the form in which secrets are stored.
func Hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// Bytes returns n random bytes.
func Bytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return b
}
