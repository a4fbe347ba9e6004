package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
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

// fetches is how many packs are on their way at once; fetchBytes bounds what
// they hold together.
const (
	fetches    = 8
	fetchBytes = 128 << 20
)

// A restorer is one restore on its way.
type restorer struct {
	o        RestoreOptions
	index    *index
	trees    *treeReader
	journal  *journal
	dirs     *dirCache
	umask    uint32
	uid, gid uint32
	root     *rdir
	top      *folder // of the one record of the root
	links    map[uint64]int
	others   []otherName

	mu     sync.Mutex // guards the next two while existing files are checked
	files  []rfile
	places map[uint32][]place // by pack

	checks  []int // files that exist and must be proven
	kept    atomic.Int64
	fetched atomic.Int64
	skipped atomic.Int64
	result  RestoreResult
	meter   meter
}

// An rdir is a folder of the restored tree.
type rdir struct {
	parent *rdir
	meta   entry // its own
	tree   ID
	folder *folder // its records, whose inodes and change times are not known yet
	kids   []*rdir // in the order of folder.kids
	fresh  bool    // made by this restore: nothing else can be in it
	depth  int

	fd *dirFD // see dirCache
}

// An rfile is a file that gets its bytes from packs.
type rfile struct {
	dir   *rdir
	rec   uint32       // where its record begins in dir.folder.records
	left  atomic.Int32 // places that are not written
	there atomic.Bool  // it exists
	many  bool         // it has more than one place
}

// entry reads the file's record.
func (f *rfile) entry() (e entry) {
	(&recordReader{b: f.dir.folder.records[f.rec:]}).next(&e)
	return e
}

// A place is where a blob goes.
type place struct {
	blob   uint32 // position in the index's table
	file   uint32
	offset int64
}

// An otherName is a further name of a file.
type otherName struct {
	dir  *rdir
	name []byte
	file int // in files
}

// Restore makes Root equal to the head. A restore that was cut off, even by
// kill -9, goes on where it was when called again with the same State. Files
// that Root has already are kept where their bytes are proven right; entries
// that the head does not have are removed, but for .homeport. The faults are
// ErrDamaged and ErrDiskFull; a wrong byte is never written.
func Restore(ctx context.Context, o RestoreOptions) (RestoreResult, error) {
	if !o.Key.usable() {
		return RestoreResult{}, ErrKey.Because(errors.New("the key is empty"))
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	r := &restorer{
		o: o, links: map[uint64]int{}, places: map[uint32][]place{}, dirs: newDirCache(),
		umask: umask(), uid: uint32(unix.Geteuid()), gid: uint32(unix.Getegid()),
		meter: meter{report: o.Progress, now: o.Now},
	}
	err := r.run(ctx)
	r.dirs.close()
	r.journal.close()
	r.result.Fetched, r.result.Kept, r.result.Skipped = r.fetched.Load(), r.kept.Load(), r.skipped.Load()
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = ErrDiskFull.Because(err)
	}
	if err != nil {
		return r.result, fmt.Errorf("restore: %w", err)
	}
	return r.result, nil
}

func (r *restorer) run(ctx context.Context) error {
	ids := make([]ID, 0, len(r.o.Indexes))
	for _, x := range r.o.Indexes {
		ids = append(ids, x.ID)
	}
	var err error
	if r.index, err = loadIndex(ctx, r.o.Objects, &r.o.Key, ids); err != nil {
		return err
	}
	r.trees = &treeReader{from: r.o.Objects, key: &r.o.Key, index: r.index, blobs: treeBlob}
	if r.journal, err = openJournal(r.o.State, r.o.Root, r.o.Head.Tree); err != nil {
		return err
	}
	if err := r.plan(ctx); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	if err := writeState(r.o.State, &r.o.Key, r.top, r.o.Head.Tree); err != nil {
		return err
	}
	r.meter.done()
	return r.journal.remove()
}

// fill fetches the packs and writes what they hold: several packs are on their
// way at once, and each worker takes the next that arrived.
func (r *restorer) fill(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	packs := r.packJobs()
	largest := int64(1)
	for _, p := range packs {
		largest = max(largest, p.bytes())
	}
	flights := int(min(max(fetchBytes/largest, 2), fetches))
	todo, arrived := make(chan *packJob), make(chan *packJob)
	tickets := make(chan []byte, flights)
	for range flights {
		tickets <- nil
	}
	var fetchers, writers sync.WaitGroup
	for range flights {
		fetchers.Go(func() {
			for p := range todo {
				if err := r.fetchPack(ctx, p, largest); err != nil {
					cancel(err)
				}
				arrived <- p
			}
		})
	}
	for range r.o.Workers {
		writers.Go(func() {
			var w writer
			for p := range arrived {
				if ctx.Err() == nil {
					if err := r.writePack(ctx, &w, p); err != nil {
						cancel(err)
					}
				}
				tickets <- p.buf
			}
		})
	}
feed:
	for _, p := range packs {
		select {
		case p.buf = <-tickets:
			todo <- p
		case <-ctx.Done():
			break feed
		}
	}
	close(todo)
	fetchers.Wait()
	close(arrived)
	writers.Wait()
	return context.Cause(ctx)
}

// packJobs turns the places into jobs. Packs come in the order of the first
// file they fill, which is about the order of the folders.
func (r *restorer) packJobs() []*packJob {
	jobs := make([]*packJob, 0, len(r.places))
	for pack, places := range r.places {
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(cmp.Compare(r.blob(a).offset, r.blob(b).offset), cmp.Compare(a.file, b.file), cmp.Compare(a.offset, b.offset))
		})
		id, end := r.index.pack(pack)
		jobs = append(jobs, r.ranges(&packJob{id: id, places: places, end: end}))
	}
	slices.SortFunc(jobs, func(a, b *packJob) int { return cmp.Compare(a.places[0].file, b.places[0].file) })
	r.places = nil
	return jobs
}

// blob is where the blob of a place lies. The index does not change any more.
func (r *restorer) blob(p place) *indexed { return r.index.table[dataBlob].at(p.blob) }

// A packJob is a pack of which blobs are wanted.
type packJob struct {
	id     ID
	places []place // by offset of their blobs
	end    int64   // of the last blob in the pack
	parts  []part
	buf    []byte
}

// A part is a stretch of a pack that is fetched in one piece.
type part struct {
	from, to int64
	b        []byte
}

func (p *packJob) bytes() (n int64) {
	for _, part := range p.parts {
		n += part.to - part.from
	}
	return n
}

// smallGap is how many bytes that nobody wants are fetched rather than asked
// for around them.
const smallGap = 128 << 10

// ranges decides which stretches of a pack to fetch: all of it when more than
// half is wanted.
func (r *restorer) ranges(p *packJob) *packJob {
	wanted := int64(0)
	for _, at := range p.places {
		b := r.blob(at)
		from, to := int64(b.offset), int64(b.offset)+int64(b.length)
		n := len(p.parts)
		if n > 0 && from < p.parts[n-1].to {
			continue // the same blob again
		}
		wanted += to - from
		if n > 0 && from-p.parts[n-1].to <= smallGap {
			p.parts[n-1].to = to
			continue
		}
		p.parts = append(p.parts, part{from: from, to: to})
	}
	if 2*wanted > p.end {
		p.parts = []part{{from: p.parts[0].from, to: p.parts[len(p.parts)-1].to}}
	}
	return p
}

// fetchPack fills the job's buffer; a new one has room for the largest job, so
// that it serves all that follow.
func (r *restorer) fetchPack(ctx context.Context, p *packJob, largest int64) error {
	if p.buf == nil {
		p.buf = make([]byte, largest)
	}
	room := p.buf[:cap(p.buf)]
	for i := range p.parts {
		part := &p.parts[i]
		n := part.to - part.from
		b, err := fetch(ctx, r.o.Objects, KindData, p.id, part.from, n, room[:n:n])
		if err != nil {
			return err
		}
		part.b, room = b, room[n:]
		r.fetched.Add(n)
	}
	return nil
}

// sealed is the fetched bytes of a blob.
func (p *packJob) sealed(b *indexed) []byte {
	from, to := int64(b.offset), int64(b.offset)+int64(b.length)
	for _, part := range p.parts {
		if part.from <= from && to <= part.to {
			return part.b[from-part.from : to-part.from]
		}
	}
	return nil
}
