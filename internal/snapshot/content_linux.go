package snapshot

import (
	"errors"
	"fmt"
	"io"
	"sync"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // registers the algorithm
	"golang.org/x/sys/unix"
)

// Sizes in bytes of what a file is cut into.
const (
	oneBlob      = 512 << 10 // a stretch of data up to this is one blob
	minChunk     = 256 << 10
	normalChunk  = 512 << 10 // makes chunks of about 610 KiB
	sparseFrom   = 4 << 10   // smaller files have no holes
	wideHole     = 64 << 10  // in large files smaller holes count as data
	largeFile    = 16 << 20
	chunkBuffers = 2 * maxChunk
)

// Reasons to give a file up for this time.
var (
	errTorn     = errors.New("snapshot: file changed while it was read")
	errDeferred = errors.New("snapshot: file put off to the next sync")
)

// A reader turns open files into blobs. Each worker has one.
type reader struct {
	run     *run
	small   []byte
	xattrs  []byte
	chunker *chunkers.Chunker
}

// progress is how far a large file was stored when a sync ended early.
type progress struct {
	stat    fileStat
	offset  int64
	content []byte
}

// A chunkList collects the ids of a file's blobs in order, while other
// workers still compute some of them.
type chunkList struct {
	mu   sync.Mutex
	wg   sync.WaitGroup
	ids  []byte
	fail error
}

// reserve makes room for the next id.
func (l *chunkList) reserve() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.ids)
	l.ids = append(l.ids, make([]byte, len(ID{}))...)
	return at
}

func (l *chunkList) set(at int, id ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	copy(l.ids[at:], id[:])
	if err != nil && l.fail == nil {
		l.fail = err
	}
}

// read stores the content of an open file of st.Size bytes and returns the ids
// of its blobs and the bytes they hold. The error is errTorn when the file is
// shorter, errDeferred when the sync is to end.
func (r *reader) read(fd int, st *fileStat) ([]byte, int64, error) {
	list := &chunkList{}
	offset := int64(0)
	if p, ok := r.run.s.takeProgress(st); ok {
		offset, list.ids = p.offset, p.content
	}
	end, err := r.segments(fd, st, offset, list)
	list.wg.Wait()
	switch {
	case list.fail != nil:
		return nil, 0, list.fail
	case errors.Is(err, errDeferred):
		r.run.s.keepProgress(progress{stat: *st, offset: end, content: list.ids})
	}
	return list.ids, end, err
}

// segments goes through the data and the holes of a file from offset on. It
// returns how far it got.
func (r *reader) segments(fd int, st *fileStat, offset int64, list *chunkList) (int64, error) {
	sparse := st.Size >= sparseFrom && st.Blocks*512 < st.Size
	for offset < st.Size {
		data, hole := offset, st.Size
		if sparse {
			data, hole = nextData(fd, offset, st.Size)
		}
		if err := r.hole(data-offset, list); err != nil {
			return offset, err
		}
		offset = data
		var err error
		if offset, err = r.data(fd, offset, hole, list); err != nil {
			return offset, err
		}
	}
	return offset, nil
}

// nextData finds where data begins at or after offset, and where it ends.
func nextData(fd int, offset, size int64) (data, hole int64) {
	least := int64(1)
	if size >= largeFile {
		least = wideHole
	}
	data = seek(fd, offset, size, unix.SEEK_DATA)
	if data-offset < least && data < size {
		data = offset
	}
	for hole = data; hole < size; {
		hole = seek(fd, hole, size, unix.SEEK_HOLE)
		next := seek(fd, hole, size, unix.SEEK_DATA)
		if next-hole >= least || next == size {
			break
		}
		hole = next
	}
	return data, hole
}

// seek finds the next data or hole; there is always a hole at the end. The
// file's position serves nothing else.
func seek(fd int, offset, size int64, whence int) int64 {
	if offset >= size {
		return size
	}
	at, err := unix.Seek(fd, offset, whence)
	if errors.Is(err, unix.ENXIO) {
		return size
	}
	if err != nil { // the file system cannot tell
		if whence == unix.SEEK_DATA {
			return offset
		}
		return size
	}
	return min(at, size)
}

func (r *reader) hole(n int64, list *chunkList) error {
	for n > 0 {
		exponent := nextZero(n)
		id, err := r.run.saver.saveZeros(exponent)
		if err != nil {
			return err
		}
		list.set(list.reserve(), id, nil)
		n -= 1 << exponent
	}
	return nil
}

// data stores the bytes from offset to end, and returns how far it got.
func (r *reader) data(fd int, offset, end int64, list *chunkList) (int64, error) {
	if offset >= end {
		return offset, nil
	}
	if end-offset <= oneBlob {
		return r.single(fd, offset, end, list)
	}
	if err := r.rewind(&section{fd: fd, at: offset, end: end}); err != nil {
		return offset, err
	}
	for offset < end {
		if r.run.spent() {
			return offset, errDeferred
		}
		chunk, err := r.chunker.Next()
		if len(chunk) > 0 {
			if err := r.run.chunk(chunk, list); err != nil {
				return offset, err
			}
			offset += int64(len(chunk))
			r.run.count(int64(len(chunk)))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return offset, err
		}
		if err != nil && offset < end {
			return offset, errTorn
		}
	}
	return offset, nil
}

// single stores a stretch as one blob.
func (r *reader) single(fd int, offset, end int64, list *chunkList) (int64, error) {
	if r.small == nil {
		r.small = make([]byte, oneBlob)
	}
	n, err := readAt(fd, r.small[:end-offset], offset)
	if err != nil {
		return offset, err
	}
	if n > 0 {
		id, err := r.run.saver.save(dataBlob, r.small[:n])
		if err != nil {
			return offset, err
		}
		list.set(list.reserve(), id, nil)
		r.run.count(int64(n))
	}
	if offset+int64(n) < end {
		return offset + int64(n), errTorn
	}
	return end, nil
}

// rewind points the chunker at a new stretch.
func (r *reader) rewind(src io.Reader) error {
	if r.chunker != nil {
		r.chunker.Reset(src)
		return nil
	}
	var err error
	r.chunker, err = chunkers.NewChunkerBuffer("fastcdc-v1.0.0", src, &chunkers.ChunkerOpts{
		MinSize: minChunk, NormalSize: normalChunk, MaxSize: maxChunk, Key: r.run.s.o.ChunkerKey,
	}, make([]byte, chunkBuffers))
	if err != nil {
		return fmt.Errorf("make chunker: %w", err)
	}
	return nil
}

// A section reads a stretch of an open file.
type section struct {
	fd      int
	at, end int64
}

func (s *section) Read(p []byte) (int, error) {
	if s.at >= s.end {
		return 0, io.EOF
	}
	n, err := readAt(s.fd, p[:min(int64(len(p)), s.end-s.at)], s.at)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	s.at += int64(n)
	return n, nil
}

// readAt fills p as far as the file goes.
func readAt(fd int, p []byte, offset int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(fd, p[done:], offset+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, err
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// A chunkTask is a chunk that another worker stores.
type chunkTask struct {
	b    []byte
	list *chunkList
	at   int
}

// chunk stores a chunk: in another goroutine when one is idle, else here. The
// chunk may be changed after the call.
func (r *run) chunk(b []byte, list *chunkList) error {
	at := list.reserve()
	select {
	case buf := <-r.idle:
		list.wg.Add(1)
		r.chunks <- chunkTask{b: append(buf[:0], b...), list: list, at: at} // has room: one per buffer
		return nil
	default:
	}
	id, err := r.saver.save(dataBlob, b)
	list.set(at, id, nil)
	return err
}

// storeChunks serves chunk until the channel is closed.
func (r *run) storeChunks() {
	for t := range r.chunks {
		id, err := r.saver.save(dataBlob, t.b)
		t.list.set(t.at, id, err)
		r.idle <- t.b
		t.list.wg.Done()
	}
}
