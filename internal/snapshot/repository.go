package snapshot

import (
	"context"
	"errors"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// CreateRepository writes the config and one key file, opened by password, of
// an empty repository. Called again for a repository of the same key it does
// nothing more; of another key the fault is ErrKey.
func CreateRepository(ctx context.Context, store blob.Store, prefix string, key Key, password string) error {
	return errors.New("snapshot: not written yet")
}

// A Snapshot is one committed or proposed state of a volume.
type Snapshot struct {
	Time     time.Time
	Parent   ID // zero: none
	Tree     ID // a tree of one node, the folder itself
	Paths    []string
	Hostname string
	Username string
}

// DecodeSnapshot reads a snapshot object. The fault is ErrDamaged.
func DecodeSnapshot(key Key, stored []byte) (Snapshot, error) {
	return Snapshot{}, errors.New("snapshot: not written yet")
}
