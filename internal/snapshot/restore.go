package snapshot

import (
	"context"
	"errors"
	"time"
)

// RestoreOptions say what to restore, and where.
type RestoreOptions struct {
	Objects  Objects
	Key      Key
	Head     Head
	Indexes  []Object         // all committed index objects
	Root     string           // the folder; it exists
	State    string           // folder for the journal and the syncer's state: not in Root, or Root/.homeport
	Progress func(Progress)   // called now and then, from one goroutine at a time; may be nil
	Workers  int              // decoders and writers; 0 = one per core
	Devices  bool             // make device nodes too
	Now      func() time.Time // for the estimate; nil = no estimate
}

// RestoreResult tells what a restore did.
type RestoreResult struct {
	Files   int64 // entries that are there now
	Bytes   int64 // of file data, as the tree says
	Fetched int64 // bytes read from the store
	Kept    int64 // bytes of data that were there already
	Skipped int64 // entries that this system did not let us make, such as device nodes
}

// Restore makes Root equal to the head. A restore that was cut off, even by
// kill -9, goes on where it was when called again with the same State. Files
// that Root has already are kept where their bytes are proven right; entries
// that the head does not have are removed, but for .homeport. The faults are
// ErrDamaged and ErrDiskFull; a wrong byte is never written.
func Restore(ctx context.Context, o RestoreOptions) (RestoreResult, error) {
	return RestoreResult{}, errors.New("snapshot: not written yet")
}
