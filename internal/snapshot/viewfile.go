package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"
)

// Sizes of a file's reader in bytes: it fetches up to stride at once, and one
// stride ahead; it takes no blob above largest, which no syncer makes.
const (
	stride  = 4 << 20
	largest = 16 << 20
)

// A File reads the content of one file of a snapshot; holes read as zeros, and
// nothing is fetched for them. Reads end with the context that it was opened
// with. It is not safe for concurrent use. Close it when it is read.
type File struct {
	Name  string // as on disk
	Size  int64  // bytes
	MTime time.Time
	Tag   string // of the content: equal for equal bytes

	ctx    context.Context
	cancel context.CancelFunc
	view   *View
	entry  entry
	ends   []int64 // of the blobs, as offsets into the file
	pos    int64
	now    piece
	next   chan piece // the piece after now, on its way
	wg     sync.WaitGroup
}

// A piece is a stretch of a file that is in memory.
type piece struct {
	from, to int64 // offsets
	plain    []byte
	after    int // number of the blob behind it
	err      error
}

// OpenFile opens the file at a path, and reads its beginning. The faults are
// ErrNoEntry, ErrNotFile and ErrDamaged; Read has the last one too.
func (v *View) OpenFile(ctx context.Context, path string) (*File, error) {
	at, err := v.find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	if !at.isFile() {
		return nil, ErrNotFile
	}
	f, err := v.open(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	if f.Size > 0 {
		if err := f.move(); err != nil {
			f.Close()
			return nil, fmt.Errorf("open file: %w", err)
		}
	}
	return f, nil
}

// open prepares the reading of a file.
func (v *View) open(ctx context.Context, e entry) (*File, error) {
	sum := sha256.Sum256(e.content)
	f := &File{
		Name: string(e.name), Size: e.size, MTime: time.Unix(e.mtime.sec, e.mtime.ns).UTC(), Tag: hex.EncodeToString(sum[:16]),
		view: v, entry: e, ends: make([]int64, e.blobs()),
	}
	end := int64(0)
	for i := range f.ends {
		at, ok := v.index.look(dataBlob, e.blob(i))
		if !ok {
			return nil, ErrDamaged.Because(fmt.Errorf("blob %s is in no index", e.blob(i)))
		}
		if at.size() > largest {
			return nil, ErrDamaged.Because(fmt.Errorf("blob %s has %d bytes", at.id, at.size()))
		}
		end += at.size()
		f.ends[i] = end
	}
	if end != e.size {
		return nil, ErrDamaged.Because(fmt.Errorf("a file of %d bytes has blobs of %d", e.size, end))
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	return f, nil
}

// Close ends what is on its way.
func (f *File) Close() {
	f.cancel()
	f.wg.Wait()
}

// Read reads on from the position.
func (f *File) Read(p []byte) (int, error) {
	if f.pos >= f.Size {
		return 0, io.EOF
	}
	if err := f.ctx.Err(); err != nil { // also while there is something left in memory
		return 0, fmt.Errorf("read file: %w", err)
	}
	if f.pos < f.now.from || f.pos >= f.now.to {
		if err := f.move(); err != nil {
			return 0, err
		}
	}
	n := int(min(int64(len(p)), f.now.to-f.pos))
	if f.now.plain == nil {
		clear(p[:n])
	} else {
		copy(p[:n], f.now.plain[f.pos-f.now.from:])
	}
	f.pos += int64(n)
	return n, nil
}

// Seek moves the position.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += f.Size
	}
	if offset < 0 {
		return 0, errors.New("snapshot: seek before the file's beginning")
	}
	f.pos = offset
	return offset, nil
}

// move brings the piece of the position in, and sends for the one behind it.
func (f *File) move() error {
	blob := sort.Search(len(f.ends), func(i int) bool { return f.ends[i] > f.pos })
	next := f.next
	f.next = nil
	if next != nil && blob == f.now.after {
		f.now = <-next
	} else {
		f.now = f.load(blob)
	}
	if err := f.now.err; err != nil {
		f.now = piece{}
		return fmt.Errorf("read file: %w", err)
	}
	if after := f.now.after; after < len(f.ends) {
		ahead := make(chan piece, 1)
		f.next = ahead
		f.wg.Go(func() { ahead <- f.load(after) })
	}
	return nil
}

// load reads the piece that begins with a blob: holes that follow each other, or
// blobs that lie side by side in one pack.
func (f *File) load(blob int) piece {
	r := piece{after: blob}
	if blob > 0 {
		r.from = f.ends[blob-1]
	}
	if isZero(f.entry.blob(blob)) {
		for r.after < len(f.ends) && isZero(f.entry.blob(r.after)) {
			r.after++
		}
		r.to = f.ends[r.after-1]
		return r
	}
	var parts []indexed
	var sealed int64
	for r.after < len(f.ends) {
		at, ok := f.view.index.look(dataBlob, f.entry.blob(r.after))
		if !ok {
			r.err = ErrDamaged.Because(fmt.Errorf("blob %s is in no index", f.entry.blob(r.after)))
			return r
		}
		if len(parts) > 0 {
			last := parts[len(parts)-1]
			if at.pack != last.pack || at.offset != last.offset+last.length || isZero(at.id) ||
				sealed+int64(at.length) > stride || f.ends[r.after]-r.from > stride {
				break
			}
		}
		parts = append(parts, at)
		sealed += int64(at.length)
		r.after++
	}
	r.to = f.ends[r.after-1]
	r.plain, r.err = f.view.readSide(f.ctx, parts, sealed, r.to-r.from)
	return r
}

// readSide reads blobs that lie side by side in one pack.
func (v *View) readSide(ctx context.Context, parts []indexed, sealed, plain int64) ([]byte, error) {
	pack, _ := v.index.pack(parts[0].pack)
	out := make([]byte, 0, plain)
	err := twice(func() error {
		body, err := fetch(ctx, v.src, KindData, pack, int64(parts[0].offset), sealed, nil)
		if err != nil {
			return err
		}
		out = out[:0]
		var scratch []byte
		for i := range parts {
			n := int64(parts[i].length)
			if out, scratch, err = openBlob(v.key, body[:n], &parts[i], out, scratch); err != nil {
				return err
			}
			body = body[n:]
		}
		return nil
	})
	return out, err
}
