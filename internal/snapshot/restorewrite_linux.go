package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/sha256x16"
)

// What a worker opens before it proves and writes any of it: enough blobs for
// all lanes of the proof, and little memory beside the packs in flight.
const (
	batchBlobs = 64
	batchBytes = 8 << 20
)

// A writer is the memory of one worker.
type writer struct {
	plain   []byte // of the blobs, one behind the other
	scratch []byte
	blobs   []openedBlob
	texts   [][]byte
	sums    [][sha256.Size]byte
}

// An openedBlob is one blob of a batch.
type openedBlob struct {
	*indexed
	places   []place
	from, to int // in the writer's plain bytes; none when it is damaged
}

// writePack writes all that is wanted of a pack, and then journals it.
func (r *restorer) writePack(ctx context.Context, w *writer, p *packJob) error {
	for places := p.places; len(places) > 0; {
		places = r.openBatch(w, p, places)
		for i := range w.blobs {
			plain, err := r.proven(ctx, w, p, i)
			if err != nil {
				return err
			}
			for j := range w.blobs[i].places {
				if err := r.write(&w.blobs[i].places[j], plain); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return r.journal.add(p.id)
}

// openBatch opens the next blobs of a pack and computes their checksums. It
// returns the places of those that are left.
func (r *restorer) openBatch(w *writer, p *packJob, places []place) []place {
	w.plain, w.blobs, w.texts = w.plain[:0], w.blobs[:0], w.texts[:0]
	for size := int64(0); len(places) > 0 && len(w.blobs) < batchBlobs; {
		b := openedBlob{indexed: r.blob(places[0]), from: len(w.plain)}
		if size += b.size(); size > batchBytes && len(w.blobs) > 0 {
			break
		}
		n := 1
		for n < len(places) && r.blob(places[n]) == b.indexed {
			n++
		}
		b.places, places = places[:n], places[n:]
		w.plain = slices.Grow(w.plain, int(b.size())+16)                                                // the decoder's own growth would copy all for each blob
		plain, scratch, err := unsealBlob(&r.o.Key, p.sealed(b.indexed), b.indexed, w.plain, w.scratch) //nolint:gosec // the nonce was drawn when the blob was sealed
		if w.scratch = scratch; err == nil {
			w.plain = plain
		}
		b.to = len(w.plain)
		w.blobs = append(w.blobs, b)
	}
	for _, b := range w.blobs { // only now the plain bytes stay where they are
		w.texts = append(w.texts, w.plain[b.from:b.to])
	}
	w.sums = slices.Grow(w.sums[:0], len(w.texts))[:len(w.texts)]
	sha256x16.Sums(w.sums, w.texts)
	return places
}

// proven gives the proven bytes of a blob of the batch, which it fetches once
// more when they are damaged.
func (r *restorer) proven(ctx context.Context, w *writer, p *packJob, i int) ([]byte, error) {
	b := w.blobs[i].indexed
	if int64(len(w.texts[i])) == b.size() && ID(w.sums[i]) == b.id {
		return w.texts[i], nil
	}
	again, err := fetch(ctx, r.o.Objects, KindData, p.id, int64(b.offset), int64(b.length), nil)
	if err != nil {
		return nil, err
	}
	r.fetched.Add(int64(len(again)))
	plain, _, err := openBlob(&r.o.Key, again, b, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", p.id, err)
	}
	return plain, nil
}

// write puts proven bytes into a file, and completes the file when they were
// the last.
func (r *restorer) write(p *place, plain []byte) error {
	f := &r.files[p.file]
	e := f.entry()
	dir, err := r.dirs.open(f.dir)
	if err != nil {
		return err
	}
	defer dir.release()
	name := string(e.name)
	exact := !f.many && r.plainMode(f.dir, &e) // can be made with its final mode
	mode := uint32(0o600)
	if exact {
		mode = e.mode & 0o777
	}
	fd, made, err := r.openFile(f, dir.fd, name, mode)
	if err != nil {
		return err
	}
	err = writeAt(fd, plain, p.offset)
	if err == nil && f.left.Add(-1) == 0 {
		err = r.complete(f, dir.fd, fd, &e, exact && made)
	}
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	r.meter.add(int64(len(plain)))
	return nil
}

// openFile opens a file for writing, and makes it when it is not there.
func (r *restorer) openFile(f *rfile, dir int, name string, mode uint32) (fd int, made bool, err error) {
	const flags = unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if !f.there.Load() {
		fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL, mode)
		if err == nil {
			f.there.Store(true)
			return fd, true, nil
		}
		if !errors.Is(err, unix.EEXIST) { // another worker was faster
			return -1, false, err
		}
	}
	err = retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags, 0)
		return err
	})
	return fd, false, err
}

// plainMode reports whether a file that is made with its mode has that mode
// and owner without more ado.
func (r *restorer) plainMode(d *rdir, e *entry) bool {
	return d.fresh && e.mode&0o7000 == 0 && e.mode&r.umask == 0 && e.mode&0o200 != 0
}

// complete gives a file whose data is all there its size, owner, mode,
// attributes and times, in the order in which they do not undo each other.
func (r *restorer) complete(f *rfile, dir, fd int, e *entry, exact bool) error {
	if f.many {
		if err := unix.Ftruncate(fd, e.size); err != nil {
			return err
		}
	}
	if e.uid != r.uid || e.gid != r.gid || !f.dir.fresh {
		if err := allow(unix.Fchown(fd, int(e.uid), int(e.gid))); err != nil {
			return err
		}
	}
	if !exact {
		if err := unix.Fchmod(fd, e.mode&0o7777); err != nil {
			return err
		}
	}
	if err := setXattrs(fd, e.xattrs, !f.dir.fresh); err != nil {
		return err
	}
	r.meter.file()
	return setTimes(dir, string(e.name), e.mtime)
}

// makeEmpty makes a file that has no data, though perhaps a size.
func (r *restorer) makeEmpty(d *rdir, dir int, e *entry) error {
	fd, err := unix.Openat(dir, string(e.name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	err = r.complete(&rfile{dir: d, many: e.size > 0}, dir, fd, e, false)
	return errors.Join(err, unix.Close(fd))
}

// stampThere makes the owner, mode, attributes and times of a file right whose
// bytes are.
func (r *restorer) stampThere(dir int, e *entry, st *fileStat) error {
	fd, err := openFileAt(dir, string(e.name))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if st.Mode == e.mode && st.Uid == e.uid && st.Gid == e.gid && st.Size == e.size &&
		st.Mtim.Sec == e.mtime.sec && st.Mtim.Nsec == e.mtime.ns &&
		string(readXattrs(fd, make([]byte, 4096))) == string(e.xattrs) {
		r.meter.file()
		return nil
	}
	if err := allow(unix.Fchown(fd, int(e.uid), int(e.gid))); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, e.mode&0o7777); err != nil {
		return err
	}
	if err := setXattrs(fd, e.xattrs, true); err != nil {
		return err
	}
	r.meter.file()
	return setTimes(dir, string(e.name), e.mtime)
}

// check proves the files that were there already, by their bytes. What is
// wrong in them is to be written; what is right stays.
func (r *restorer) check(ctx context.Context) error {
	return parallel(ctx, r.o.Workers, len(r.checks), func(_ context.Context, i int) error {
		index := r.checks[i]
		f := &r.files[index]
		e := f.entry()
		if err := r.checkFile(index, f, &e); err != nil {
			return fmt.Errorf("check %q: %w", e.name, err)
		}
		return nil
	})
}

func (r *restorer) checkFile(index int, f *rfile, e *entry) error {
	dir, err := r.dirs.open(f.dir)
	if err != nil {
		return err
	}
	defer dir.release()
	fd, err := openWritable(dir.fd, string(e.name))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st fileStat
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Size != e.size {
		if err := unix.Ftruncate(fd, e.size); err != nil {
			return err
		}
		st.Size = -1 // its times are not right
	}
	wrong, err := r.compare(index, fd, e)
	if err != nil {
		return err
	}
	f.many = true
	r.mu.Lock()
	for pack, places := range wrong {
		r.places[pack] = append(r.places[pack], places...)
		f.left.Add(int32(len(places)))
	}
	r.mu.Unlock()
	if len(wrong) > 0 {
		r.meter.expect(e.size)
		return nil
	}
	return r.stampThere(dir.fd, e, &st)
}

// openWritable opens a file of ours, whatever its mode is.
func openWritable(dir int, name string) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		if err := unix.Fchmodat(dir, name, 0o600, 0); err != nil {
			return -1, err
		}
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

// compare hashes a file blob by blob and returns the places whose bytes are
// wrong. Holes are made at once.
func (r *restorer) compare(index, fd int, e *entry) (map[uint32][]place, error) {
	wrong := map[uint32][]place{}
	buf := make([]byte, 0, oneBlob)
	offset := int64(0)
	for i := range e.blobs() {
		pos, b, err := r.find(e.blob(i))
		if err != nil {
			return nil, err
		}
		size := b.size()
		if offset+size > e.size {
			return nil, ErrDamaged.Because(fmt.Errorf("blobs of more than %d bytes", e.size))
		}
		if int64(cap(buf)) < size {
			buf = make([]byte, 0, size)
		}
		n, err := readAt(fd, buf[:size], offset)
		if err != nil {
			return nil, err
		}
		switch {
		case int64(n) == size && ID(sha256.Sum256(buf[:n])) == b.id:
			r.kept.Add(size)
		case isZero(b.id):
			if err := punch(fd, offset, size); err != nil {
				return nil, err
			}
		default:
			wrong[b.pack] = append(wrong[b.pack], place{blob: pos, file: uint32(index), offset: offset})
		}
		offset += size
	}
	if offset != e.size {
		return nil, ErrDamaged.Because(fmt.Errorf("blobs of %d bytes, not %d", offset, e.size))
	}
	return wrong, nil
}
