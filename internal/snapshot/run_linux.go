package snapshot

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rootName is the one entry of every snapshot's root tree: so the folder's
	// own owner, mode and times are kept too.
	rootName = "workspace"
	// ownName is the entry of the root that belongs to the agent.
	ownName = ".homeport"
	// maxDepth is how deep folders may nest; deeper ones are skipped.
	maxDepth = 2000
	// lastFrom is the size in bytes from which files wait until the smaller
	// ones are done.
	lastFrom = 64 << 20
)

// A run is one walk over the folder: one goroutine walks, workers read files,
// and whoever completes a folder writes its tree.
type run struct {
	s        *Syncer
	o        RunOptions
	ctx      context.Context //nolint:containedctx // that of the one Run it serves
	cancel   context.CancelCauseFunc
	saver    *saver
	top      *dirWork // the root tree
	jobs     chan *job
	chunks   chan chunkTask
	idle     chan []byte
	last     []*job
	links    map[fileID]*linkGroup
	rootDev  uint64
	started  time.Time
	names    []byte // buffer
	partial  atomic.Bool
	skipped  atomic.Int64
	unstable atomic.Int64

	scan    sync.Once // sets the next two
	scanned stamp
	mapped  map[uint64]bool // see mappedFiles

	changed   atomic.Int64 // bytes of files that are read again
	read      atomic.Int64 // bytes of them that were read
	differing atomic.Int64 // bytes of files that could not be brought up to date
	files     atomic.Int64 // to read
	done      atomic.Int64 // read

	report     sync.Mutex
	lastReport time.Time
}

// A fileID tells the files of one system apart.
type fileID struct{ dev, ino uint64 }

func newRun(ctx context.Context, s *Syncer, o RunOptions) *run {
	ctx, cancel := context.WithCancelCause(ctx)
	workers := s.o.Limits.Workers
	r := &run{
		s: s, o: o, ctx: ctx, cancel: cancel, saver: newSaver(ctx, cancel, s, o.Background),
		jobs: make(chan *job, 256), chunks: make(chan chunkTask, workers), idle: make(chan []byte, workers),
		links: map[fileID]*linkGroup{}, started: s.o.Now(), names: make([]byte, 64<<10),
	}
	for range workers {
		r.idle <- nil
	}
	return r
}

// walkApart is walkAll, on a thread of its own in the background.
func (r *run) walkApart() (err error) {
	if !r.o.Background {
		return r.walkAll()
	}
	var walk sync.WaitGroup
	walk.Go(func() {
		giveWay(true)
		err = r.walkAll()
	})
	walk.Wait()
	return err
}

// walkAll walks, and returns when all that is new is stored.
func (r *run) walkAll() error {
	defer r.cancel(nil)
	var readers, chunkers sync.WaitGroup
	for range r.s.o.Limits.Workers {
		readers.Go(func() {
			giveWay(r.o.Background)
			own := &reader{run: r}
			for j := range r.jobs {
				r.file(own, j)
			}
		})
		chunkers.Go(func() {
			giveWay(r.o.Background)
			r.storeChunks()
		})
	}
	err := r.walkTop()
	if err == nil {
		slices.SortFunc(r.last, func(a, b *job) int { return int(min(max(a.st.Size-b.st.Size, -1), 1)) })
		for _, j := range r.last {
			r.queue(j)
		}
	}
	close(r.jobs)
	readers.Wait()
	close(r.chunks)
	chunkers.Wait()
	return r.saver.finish(err)
}

// behind is how far a background thread stands behind others: beside a program
// on every core it gets 3 % of each. Lower, and a thread that the garbage
// collector waits for would hold up the agent's other work noticeably.
const behind = 15

// giveWay gives the calling goroutine a thread that ends with it, and that lets
// others have the processor and the disk first.
func giveWay(background bool) {
	if !background {
		return
	}
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, behind)            // 0 is this thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, 1, 0, ioIdle<<13) // 1, 0: this thread too
}

const ioIdle = 3 // the class of reads and writes that wait for all others

// walkTop walks from the root tree, a folder of the one entry rootName.
func (r *run) walkTop() error {
	fd, err := openRoot(r.s.o.Root)
	if err != nil {
		r.cancel(err)
		return err
	}
	dir := newDirFD(fd)
	defer dir.release()
	var st fileStat
	if err := unix.Fstat(fd, &st); err != nil {
		r.cancel(err)
		return err
	}
	r.rootDev = st.Dev
	r.top = &dirWork{run: r, old: r.s.state, oldTree: r.s.tree, items: make([]item, 1)}
	r.top.left.Store(1)
	var old entry
	rec := (&recordReader{b: r.s.state.records}).next(&old)
	var kid *folder
	if rec != nil && len(r.s.state.kids) == 1 {
		kid = r.s.state.kids[0]
	} else {
		rec = nil
	}
	r.top.items[0] = item{rec: rec, kid: kid}
	r.directory(r.top, 0, []byte(rootName), &st, rec != nil, &old)
	r.child(r.top, 0, dir)
	r.top.complete()
	return context.Cause(r.ctx)
}

// spent reports whether this sync is to end early, and remembers it.
func (r *run) spent() bool {
	if r.partial.Load() {
		return true
	}
	l := &r.s.o.Limits
	if r.saver.uploaded.Load() < l.PartialBytes && r.s.o.Now().Sub(r.started) < l.PartialAfter {
		return false
	}
	r.partial.Store(true)
	return true
}

// count counts bytes that were read.
func (r *run) count(n int64) {
	r.read.Add(n)
	if r.o.Progress == nil || !r.report.TryLock() {
		return
	}
	defer r.report.Unlock()
	now := r.s.o.Now()
	if now.Sub(r.lastReport) < time.Second/2 {
		return
	}
	r.lastReport = now
	r.o.Progress(Progress{
		BytesDone: r.read.Load(), BytesTotal: max(r.changed.Load(), r.read.Load()),
		FilesDone: r.done.Load(), FilesTotal: r.files.Load(),
	})
}

// queue hands a file to the workers.
func (r *run) queue(j *job) {
	select {
	case r.jobs <- j:
	case <-r.ctx.Done():
		j.drop()
	}
}
