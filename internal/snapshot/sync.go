package snapshot

import (
	"context"
	"errors"
	"time"
)

// Limits bound one sync. Zero values mean the defaults.
type Limits struct {
	Workers      int           // readers and coders; default one per core
	Uploads      int           // packs on their way at once; default 3
	PackSize     int           // bytes after which a data pack is full; default 16 MiB
	PartialBytes int64         // bytes uploaded after which Run returns a partial change; default 10 GB
	PartialAfter time.Duration // time after which it does; default 5 minutes
}

// SyncerOptions say what to sync, and onto what.
type SyncerOptions struct {
	Objects    Objects
	Key        Key
	ChunkerKey []byte           // 32 bytes
	Root       string           // the folder
	State      string           // folder of the journal and the state: not in Root, or Root/.homeport
	Head       *Head            // nil: nothing was ever committed
	Indexes    []Object         // all committed index objects
	Resume     []Object         // packs that are in the store, uploaded by this attachment and in no index yet
	Hostname   string           // named in snapshots
	Now        func() time.Time // named in snapshots, and for the limits
	Limits     Limits
}

// RunOptions say how to walk once.
type RunOptions struct {
	Force    bool           // return a change even when nothing differs: a new snapshot of the same tree
	Progress func(Progress) // called now and then, from one goroutine at a time; may be nil
}

// A Change is a snapshot that is stored but for its snapshot object: the
// control plane commits it, or not.
type Change struct {
	SnapshotID ID
	Snapshot   []byte // the stored bytes of the snapshot object
	Tree       ID
	Parent     ID       // snapshot of the head it builds on; zero = none
	Objects    []Object // new packs and indexes, all stored
	Bytes      int64    // of file data that are not holes; the server measures for itself
	Entries    int64
	Skipped    int64 // entries that could not be read, or cannot be kept (sockets)
	Unstable   int64 // files that changed while they were read
	Partial    bool  // more differs; call Run again soon
}

// A Syncer keeps a volume's snapshots up with its folder. Its methods may be
// called from several goroutines; only one Run goes on at a time.
type Syncer struct{}

// NewSyncer reads the indexes and takes over what an earlier syncer left in
// State. The fault is ErrDamaged.
func NewSyncer(ctx context.Context, o SyncerOptions) (*Syncer, error) {
	return nil, errors.New("snapshot: not written yet")
}

// Run walks Root once, stores what is new and returns the change to commit, or
// nil when nothing differs from the head. After an error the next Run goes on
// with what was uploaded.
func (s *Syncer) Run(ctx context.Context, o RunOptions) (*Change, error) {
	return nil, errors.New("snapshot: not written yet")
}

// Committed tells that the control plane accepted c: it is the head now.
func (s *Syncer) Committed(c *Change) {}

// DirtyBytes is the size of the files that are known to differ from the head.
func (s *Syncer) DirtyBytes() int64 { return 0 }
