package snapshot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"homeport.dev/homeport/internal/fault"
)

// Limits bound one sync. Zero values mean the defaults.
type Limits struct {
	Workers      int           // readers and coders; default one per core
	Uploads      int           // packs on their way at once; default 4
	PackSize     int           // bytes after which a data pack is full; default 16 MiB, at most 32 MiB
	PartialBytes int64         // bytes uploaded after which Run returns a partial change; default 10 GB
	PartialAfter time.Duration // time after which it does; default 5 minutes
}

func (l Limits) withDefaults() Limits {
	if l.Workers <= 0 {
		l.Workers = runtime.GOMAXPROCS(0)
	}
	if l.Uploads <= 0 {
		l.Uploads = 4
	}
	if l.PackSize <= 0 {
		l.PackSize = 16 << 20
	}
	l.PackSize = min(l.PackSize, 32<<20)
	if l.PartialBytes <= 0 {
		l.PartialBytes = 10e9
	}
	if l.PartialAfter <= 0 {
		l.PartialAfter = 5 * time.Minute
	}
	return l
}

// SyncerOptions say what to sync, and onto what.
type SyncerOptions struct {
	Objects    Objects
	Key        Key
	ChunkerKey []byte           // 32 bytes
	Root       string           // the folder
	State      string           // folder of the state: not in Root, or Root/.homeport
	Head       *Head            // nil: nothing was ever committed
	Indexes    []Object         // all committed index objects
	Resume     []Object         // packs that this attachment uploaded and that are in no committed index
	Hostname   string           // named in snapshots
	Now        func() time.Time // named in snapshots, and for the limits
	Limits     Limits
}

// RunOptions say how to walk once.
type RunOptions struct {
	Force      bool           // return a change even when nothing differs: a new snapshot of the same tree
	Background bool           // leave the processor and the disk to others who want them
	Progress   func(Progress) // called now and then, from one goroutine at a time; may be nil
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
	Partial    bool  // more differs; call Run again at once

	head Head // what the head is once it is committed
}

// A Syncer keeps a volume's snapshots up with its folder. Its methods may be
// called from several goroutines; only one Run goes on at a time.
type Syncer struct {
	o       SyncerOptions
	index   *index
	pending pending
	dirty   atomic.Int64

	run sync.Mutex // held by Run

	mu         sync.Mutex // guards what follows
	head       Head
	state      *folder // a folder of one record, that of Root; nil: not loaded
	tree       ID      // of state
	unsaved    bool
	kept       int64 // bytes of files that the last run could not bring up to date
	lastSave   time.Time
	saveCost   time.Duration
	unfinished map[uint64]progress // large files by inode
}

// NewSyncer reads the indexes and takes over what an earlier syncer, or a
// restore, left in State. The fault is ErrDamaged.
func NewSyncer(ctx context.Context, o SyncerOptions) (*Syncer, error) {
	if !o.Key.usable() {
		return nil, ErrKey.Because(errors.New("the key is empty"))
	}
	if len(o.ChunkerKey) != 32 {
		return nil, ErrKey.Because(fmt.Errorf("the chunker key has %d bytes", len(o.ChunkerKey)))
	}
	o.Limits = o.Limits.withDefaults()
	s := &Syncer{o: o, unfinished: map[uint64]progress{}}
	if o.Head != nil {
		s.head = *o.Head
	}
	ids := make([]ID, 0, len(o.Indexes))
	for _, x := range o.Indexes {
		ids = append(ids, x.ID)
	}
	var err error
	if s.index, err = loadIndex(ctx, o.Objects, &s.o.Key, ids); err != nil {
		return nil, err
	}
	if err := s.resume(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// resume enters the packs that are stored but in no index. One that is not
// there, or not whole, is left out: its blobs are stored again.
func (s *Syncer) resume(ctx context.Context) error {
	return parallel(ctx, 8, len(s.o.Resume), func(ctx context.Context, i int) error {
		o := s.o.Resume[i]
		if o.Kind == KindIndex || s.index.hasPack(o.ID) {
			return nil
		}
		pack, err := readPack(ctx, s.o.Objects, &s.o.Key, o)
		if errors.Is(err, ErrDamaged) || refused(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("resume: %w", err)
		}
		s.index.addPack(pack)
		s.pending.add(pack, o)
		return nil
	})
}

// refused reports whether a store answered that it does not have, or does not
// give, an object.
func refused(err error) bool {
	f := fault.Of(err)
	return f != nil && (f.Kind == fault.NotFound || f.Kind == fault.Forbidden)
}

// DirtyBytes is the size of the files that are known to differ from the head.
func (s *Syncer) DirtyBytes() int64 { return s.dirty.Load() }

// Run walks Root once, stores what is new and returns the change to commit, or
// nil when nothing differs from the head. After an error the next Run goes on
// with what was uploaded.
func (s *Syncer) Run(ctx context.Context, o RunOptions) (*Change, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	r := newRun(ctx, s, o)
	if err := r.walkApart(); err != nil {
		s.mu.Lock()
		clear(s.unfinished) // some of their blobs may be lost
		s.mu.Unlock()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = s.unsaved || s.state != r.top.folder
	s.state, s.tree = r.top.folder, r.top.tree
	s.kept = r.differing.Load()
	s.dirty.Store(s.kept)
	if s.tree == s.head.Tree && !o.Force && !r.partial.Load() {
		return nil, nil
	}
	s.dirty.Store(max(s.kept, r.changed.Load()))
	return s.propose(r)
}

// propose makes the change of a finished run. The caller holds s.mu.
func (s *Syncer) propose(r *run) (*Change, error) {
	at := s.o.Now().UTC().Truncate(time.Millisecond)
	if !at.After(s.head.Time) {
		at = s.head.Time.UTC().Truncate(time.Millisecond).Add(time.Millisecond)
	}
	stored, id, err := EncodeSnapshot(s.o.Key, Snapshot{
		Time: at, Parent: s.head.Snapshot, Tree: s.tree, Paths: []string{"/" + rootName},
		Hostname: s.o.Hostname, Username: "root",
	})
	if err != nil {
		return nil, err
	}
	return &Change{
		SnapshotID: id, Snapshot: stored, Tree: s.tree, Parent: s.head.Snapshot, Objects: s.pending.list(),
		Bytes: s.state.bytes, Entries: s.state.entries,
		Skipped: r.skipped.Load(), Unstable: r.unstable.Load(), Partial: r.partial.Load(),
		head: Head{Snapshot: id, Tree: s.tree, Time: at},
	}, nil
}

// Committed tells that the control plane accepted c: it is the head now.
func (s *Syncer) Committed(c *Change) {
	s.pending.remove(c.Objects)
	s.mu.Lock()
	s.head = c.head
	s.dirty.Store(s.kept)
	s.mu.Unlock()
	s.saveNowAndThen()
}

func (s *Syncer) takeProgress(st *fileStat) (progress, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.unfinished[st.Ino]
	delete(s.unfinished, st.Ino)
	return p, ok && sameStat(&p.stat, st)
}

func (s *Syncer) keepProgress(p progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfinished[p.stat.Ino] = p
}
