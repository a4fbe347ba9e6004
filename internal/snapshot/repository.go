package snapshot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"homeport.dev/homeport/internal/blob"
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

// CreateRepository writes one key file, opened by password, and the config of
// an empty repository. Called again for a repository of the same key it does
// nothing more; of another key the fault is ErrKey.
func CreateRepository(ctx context.Context, store blob.Store, prefix string, key Key, password string) error {
	return create(ctx, store, prefix, key, func() ([]byte, error) { return MakeKeyFile(key, password) })
}

// CreateRepositoryWith is CreateRepository with a key file that was made before,
// by MakeKeyFile for the same key.
func CreateRepositoryWith(ctx context.Context, store blob.Store, prefix string, key Key, file []byte) error {
	return create(ctx, store, prefix, key, func() ([]byte, error) { return file, nil })
}

func create(ctx context.Context, store blob.Store, prefix string, key Key, keyFile func() ([]byte, error)) error {
	if !key.usable() {
		return ErrKey.Because(errors.New("the key is empty"))
	}
	err := checkConfig(ctx, store, prefix, key)
	if err == nil || !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	file, err := keyFile()
	if err != nil {
		return err
	}
	// The config comes last: where it is, the repository is whole.
	name := ID(sha256.Sum256(file)).String()
	if err := store.Put(ctx, join(prefix, "keys/"+name), file); err != nil && !errors.Is(err, blob.ErrExists) {
		return fmt.Errorf("create repository %s: %w", prefix, err)
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
