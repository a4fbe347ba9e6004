package snapshot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/scrypt"

	"homeport.dev/homeport/internal/blob"
)

// Cost of opening a key file by its password. Our passwords are random, so
// the cost protects nothing; it is what restic accepts as usual.
const (
	scryptN = 1 << 15
	scryptR = 8
	scryptP = 1
)

// version of the repository format: packs with compression.
const version = 2

// polynomial fills a member that restic demands. It keys restic's own chunker,
// which this package does not use.
const polynomial = "3da3358b4dc173"

// configJSON is the object "config".
type configJSON struct {
	Version    int    `json:"version"`
	ID         ID     `json:"id"`
	Polynomial string `json:"chunker_polynomial"`
}

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

// CreateRepository writes one key file, opened by password, and the config of
// an empty repository. Called again for a repository of the same key it does
// nothing more; of another key the fault is ErrKey.
func CreateRepository(ctx context.Context, store blob.Store, prefix string, key Key, password string) error {
	if !key.usable() {
		return ErrKey.Because(errors.New("the key is empty"))
	}
	err := checkConfig(ctx, store, prefix, key)
	if err == nil || !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	// The config comes last: where it is, the repository is whole.
	if err := putKeyFile(ctx, store, prefix, key, password); err != nil {
		return err
	}
	var id ID
	rand.Read(id[:])
	config, err := json.Marshal(configJSON{Version: version, ID: id, Polynomial: polynomial})
	if err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	err = store.Put(ctx, join(prefix, "config"), key.seal(nil, config))
	if errors.Is(err, blob.ErrExists) {
		return checkConfig(ctx, store, prefix, key)
	}
	if err != nil {
		return fmt.Errorf("create repository %s: %w", prefix, err)
	}
	return nil
}

// checkConfig opens the config of a repository. The faults are
// blob.ErrNotFound when there is none and ErrKey when it has another key.
func checkConfig(ctx context.Context, store blob.Store, prefix string, key Key) error {
	r, err := store.Get(ctx, join(prefix, "config"), 0, -1)
	if err != nil {
		return fmt.Errorf("open repository %s: %w", prefix, err)
	}
	defer r.Close()
	sealed, err := io.ReadAll(io.LimitReader(r, 1<<16))
	if err != nil {
		return fmt.Errorf("open repository %s: %w", prefix, err)
	}
	plain, err := key.open(nil, sealed)
	if err != nil {
		return ErrKey.Because(err)
	}
	var c configJSON
	if err := json.Unmarshal(plain, &c); err != nil || c.Version != version {
		return ErrKey.Because(fmt.Errorf("config of version %d: %w", c.Version, err))
	}
	return nil
}

func putKeyFile(ctx context.Context, store blob.Store, prefix string, key Key, password string) error {
	master, err := json.Marshal(key)
	if err != nil {
		return err
	}
	salt := make([]byte, 64)
	rand.Read(salt)
	derived, err := scrypt.Key([]byte(password), salt, scryptN, scryptR, scryptP, 64)
	if err != nil {
		return fmt.Errorf("derive key: %w", err)
	}
	user := makeKey(derived)
	file, err := json.Marshal(keyFileJSON{
		Created: created, Username: "root", Hostname: "homeport",
		KDF: "scrypt", N: scryptN, R: scryptR, P: scryptP,
		Salt: salt, Data: user.seal(nil, master),
	})
	if err != nil {
		return fmt.Errorf("encode key file: %w", err)
	}
	id := ID(sha256.Sum256(file))
	if err := store.Put(ctx, join(prefix, "keys/"+id.String()), file); err != nil {
		return fmt.Errorf("create repository %s: %w", prefix, err)
	}
	return nil
}
