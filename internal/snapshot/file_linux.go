package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// A job is a file to read.
type job struct {
	run   *run
	d     *dirWork
	isNew bool // the last sync did not have it
	name  string
	st    fileStat
	dir   *dirFD     // nil: opened when its turn comes
	group *linkGroup // of a file with several names, read for all of them
	ent   *entry     // the result; nil: as at the last sync
}

// A linkGroup are the names of one file that are met in one sync.
type linkGroup struct {
	mu    sync.Mutex
	over  bool
	ent   *entry // the result; nil: it failed
	names []*job
}

// wait leaves j to be answered when the file is read. It is false when the
// reading failed: then j is read for itself.
func (g *linkGroup) wait(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.names = append(g.names, j)
		return true
	}
	if g.ent == nil {
		return false
	}
	j.answer(g.ent)
	return true
}

// end answers all who wait.
func (g *linkGroup) end(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over, g.ent = true, e
	for _, j := range g.names {
		if e != nil {
			j.answer(e)
			continue
		}
		j.keep()
	}
	g.names = nil
}

// answer ends a job with what another name of the same file gave.
func (j *job) answer(e *entry) {
	own := *e
	own.name = []byte(j.name)
	j.finish(&own)
}

// finish ends a job with the file's new entry.
func (j *job) finish(e *entry) {
	j.ent = e
	j.d.changed.Store(true)
	if j.group != nil {
		j.group.end(e)
	}
	j.d.complete()
}

// keep ends a job with the file as it was at the last sync, or left out.
func (j *job) keep() {
	if j.isNew {
		j.d.incomplete.Store(true)
	}
	j.run.differing.Add(j.st.Size)
	if j.group != nil {
		j.group.end(nil)
	}
	j.d.complete()
}

// drop ends a job of a sync that was cancelled.
func (j *job) drop() {
	if j.dir != nil {
		j.dir.release()
	}
	j.keep()
}

// file does a job.
func (r *run) file(own *reader, j *job) {
	if r.ctx.Err() != nil || r.spent() {
		j.drop()
		return
	}
	e, err := r.readFile(own, j)
	if j.dir != nil {
		j.dir.release()
	}
	r.done.Add(1)
	switch {
	case err == nil && e != nil:
		j.finish(e)
		return
	case err == nil: // gone
		j.d.incomplete.Store(true)
	case errors.Is(err, errDeferred):
	case errors.Is(err, errTorn):
		r.unstable.Add(1)
		if e != nil && j.isNew {
			j.finish(e) // torn is better than nothing
			return
		}
	case r.ctx.Err() != nil:
	case fatal(err):
		r.cancel(err)
	default:
		r.skipped.Add(1)
		j.d.incomplete.Store(true)
	}
	j.keep()
}

// fatal reports whether an error is not about the file, but about the store.
func fatal(err error) bool {
	var errno unix.Errno
	return !errors.As(err, &errno) && !errors.Is(err, errTooBig)
}

// readFile stores a file and returns its entry, nil when it is no file any
// more. With errTorn the entry is of what was read.
func (r *run) readFile(own *reader, j *job) (*entry, error) {
	dir := j.dir
	if dir == nil {
		var err error
		if dir, err = j.d.open(); err != nil {
			return nil, err
		}
		defer dir.release()
	}
	fd, err := openFileAt(dir.fd, j.name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for try := 0; ; try++ {
		e, err := r.readOpen(own, j, fd)
		if e == nil || !errors.Is(err, errTorn) || try > 0 {
			return e, err
		}
		if err := unix.Fstat(fd, &j.st); err != nil {
			return nil, err
		}
	}
}

// readOpen reads a file once, and looks whether it changed meanwhile.
func (r *run) readOpen(own *reader, j *job, fd int) (*entry, error) {
	if j.st.Mode&modeFormat != modeFile {
		return nil, nil
	}
	limit, err := r.flush(fd, &j.st)
	if err != nil {
		return nil, err
	}
	e := &entry{name: []byte(j.name)}
	content, size, err := own.read(fd, &j.st)
	torn := errors.Is(err, errTorn)
	if err != nil && !torn {
		return nil, err
	}
	e.xattrs = readXattrs(fd, own.xattrBuf())
	var after fileStat
	if err := unix.Fstat(fd, &after); err != nil {
		return nil, err
	}
	e.setStat(&j.st)
	e.content, e.size = content, size
	if e.nlink > 1 {
		e.link = linkID(&j.st)
	}
	if torn || !sameStat(&j.st, &after) {
		e.flags = flagRecheck
		return e, errTorn
	}
	if fresh(&after) || since(&after, limit) {
		e.flags = flagRecheck
	}
	return e, nil
}

// linkID is what the names of one file share in the tree. All names are read
// again when the file changes, so that they agree; the time of the change
// keeps it from meeting a number of another machine.
func linkID(st *fileStat) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], st.Ino)
	binary.LittleEndian.PutUint64(b[8:], uint64(st.Ctim.Sec))
	binary.LittleEndian.PutUint64(b[16:], uint64(st.Ctim.Nsec))
	sum := sha256.Sum256(b[:])
	return binary.LittleEndian.Uint64(sum[:])>>1 | 1
}

func (r *reader) xattrBuf() []byte {
	if r.xattrs == nil {
		r.xattrs = make([]byte, 4096)
	}
	return r.xattrs
}

// open opens a folder again from the root, name by name.
func (d *dirWork) open() (*dirFD, error) {
	if d.parent == d.run.top {
		fd, err := openRoot(d.run.s.o.Root)
		if err != nil {
			return nil, err
		}
		return newDirFD(fd), nil
	}
	above, err := d.parent.open()
	if err != nil {
		return nil, err
	}
	defer above.release()
	fd, err := openDirAt(above.fd, d.name)
	if err != nil {
		return nil, err
	}
	return newDirFD(fd), nil
}

// complete takes one thing to do off a folder, and makes its tree when it was
// the last.
func (d *dirWork) complete() {
	for ; d != nil && d.left.Add(-1) == 0; d = d.parent {
		if d.run.ctx.Err() != nil {
			continue // the result does not matter
		}
		if err := d.run.makeTree(d); err != nil {
			d.run.cancel(err)
		}
		d.items, d.old = nil, nil // the folders above may take long
	}
}
