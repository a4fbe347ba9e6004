package snapshot

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/scrypt"
)

// Cost of opening a key file by its password: a tenth of a second and 32 MiB.
// Our passwords are random, so the cost protects nothing; it is what restic
// accepts as usual.
const (
	scryptN = 1 << 15
	scryptR = 8
	scryptP = 1
)

// keyFileJSON is an object "keys/<id>".
type keyFileJSON struct {
	Created  time.Time `json:"created"`
	Username string    `json:"username"`
	Hostname string    `json:"hostname"`
	KDF      string    `json:"kdf"`
	N        int       `json:"N"`
	R        int       `json:"r"`
	P        int       `json:"p"`
	Salt     []byte    `json:"salt"`
	Data     []byte    `json:"data"`
}

// created stands in the key files: restic wants a time and uses it nowhere.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// MakeKeyFile returns a new key file, which gives the key to whoever has the
// password. It is the object "keys/<SHA-256 of the file>" of a repository. Each
// call makes another one, at the cost of opening one.
func MakeKeyFile(key Key, password string) ([]byte, error) {
	master, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	f := keyFileJSON{
		Created: created, Username: "root", Hostname: "homeport",
		KDF: "scrypt", N: scryptN, R: scryptR, P: scryptP, Salt: make([]byte, 64),
	}
	rand.Read(f.Salt) // never fails since Go 1.24
	user, err := f.derive(password)
	if err != nil {
		return nil, err
	}
	f.Data = user.seal(nil, master)
	file, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode key file: %w", err)
	}
	return file, nil
}

// OpenKeyFile returns the key that MakeKeyFile put into a file. The fault is
// ErrKey: another password, or no such file.
func OpenKeyFile(file []byte, password string) (Key, error) {
	var f keyFileJSON
	if err := json.Unmarshal(file, &f); err != nil {
		return Key{}, ErrKey.Because(err)
	}
	if f.KDF != "scrypt" || f.N != scryptN || f.R != scryptR || f.P != scryptP {
		return Key{}, ErrKey.Because(errors.New("the key file is of another kind"))
	}
	user, err := f.derive(password)
	if err != nil {
		return Key{}, err
	}
	master, err := user.open(nil, f.Data)
	if err != nil {
		return Key{}, ErrKey.Because(err)
	}
	var key Key
	if err := json.Unmarshal(master, &key); err != nil {
		return Key{}, err
	}
	return key, nil
}

// derive makes the key of the file's data from a password.
func (f keyFileJSON) derive(password string) (Key, error) {
	derived, err := scrypt.Key([]byte(password), f.Salt, f.N, f.R, f.P, 64)
	if err != nil {
		return Key{}, fmt.Errorf("derive key: %w", err)
	}
	return makeKey(derived), nil
}
