package snapshot

import (
	"encoding/binary"
)

// A stamp is a file time: seconds since the epoch, also before it, and
// nanoseconds.
type stamp struct {
	sec int64
	ns  int64
}

// An entry is one name in a folder: what the tree says of it, and what the
// syncer remembers to see that it changed.
type entry struct {
	name  []byte
	flags uint8
	mode  uint32 // as in st_mode
	uid   uint32
	gid   uint32
	ino   uint64
	size  int64
	mtime stamp
	ctime stamp
	nlink uint32 // of files; 0 stands for 1
	link  uint64 // what all names of one file share in the tree; 0: nlink is 1
	rdev  uint64

	content []byte // ids: of blobs for files, of the subtree for folders
	target  []byte // of symbolic links
	xattrs  []byte // encoded, see appendXattr
}

// Flags of an entry.
const (
	flagRecheck = 1 << iota // changed too recently to trust its times, or not as in the tree
	flagXattrs
	flagTarget
	flagLink
	flagDevice
)

func (e *entry) format() uint32 { return e.mode & modeFormat }
func (e *entry) isDir() bool    { return e.format() == modeDir }
func (e *entry) isFile() bool   { return e.format() == modeFile }

// blobs is the number of ids in content.
func (e *entry) blobs() int { return len(e.content) / len(ID{}) }

// blob is the i-th id in content.
func (e *entry) blob(i int) ID { return ID(e.content[i*len(ID{}) : (i+1)*len(ID{})]) }

// appendEntry appends the record of e: 60 to 100 bytes for a small file.
func appendEntry(b []byte, e *entry) []byte {
	flags := e.flags & flagRecheck
	if len(e.xattrs) > 0 {
		flags |= flagXattrs
	}
	if len(e.target) > 0 {
		flags |= flagTarget
	}
	if e.nlink > 1 {
		flags |= flagLink
	}
	if e.rdev != 0 {
		flags |= flagDevice
	}
	b = append(b, flags)
	b = appendBytes(b, e.name)
	b = binary.AppendUvarint(b, uint64(e.mode))
	b = binary.AppendUvarint(b, uint64(e.uid))
	b = binary.AppendUvarint(b, uint64(e.gid))
	b = binary.AppendUvarint(b, e.ino)
	b = binary.AppendVarint(b, e.size)
	b = binary.AppendVarint(b, e.mtime.sec)
	b = binary.AppendVarint(b, e.mtime.ns)
	b = binary.AppendVarint(b, e.ctime.sec)
	b = binary.AppendVarint(b, e.ctime.ns)
	b = appendBytes(b, e.content)
	if flags&flagXattrs != 0 {
		b = appendBytes(b, e.xattrs)
	}
	if flags&flagTarget != 0 {
		b = appendBytes(b, e.target)
	}
	if flags&flagLink != 0 {
		b = binary.AppendUvarint(b, uint64(e.nlink))
		b = binary.AppendUvarint(b, e.link)
	}
	if flags&flagDevice != 0 {
		b = binary.AppendUvarint(b, e.rdev)
	}
	return b
}

func appendBytes(b, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// A recordReader takes records apart. The first thing that does not fit leaves
// it at its end, broken.
type recordReader struct {
	b      []byte
	broken bool
}

func (r *recordReader) fail() { r.b, r.broken = nil, true }

func (r *recordReader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *recordReader) int() int64 {
	u := r.uint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (r *recordReader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// next reads a record into e, whose slices then point into the records. It
// returns the record's own bytes, nil at the end.
func (r *recordReader) next(e *entry) []byte {
	start := r.b
	if len(start) == 0 {
		return nil
	}
	flags := start[0]
	r.b = start[1:]
	e.flags = flags & flagRecheck
	e.name = r.bytes()
	e.mode = uint32(r.uint())
	e.uid = uint32(r.uint())
	e.gid = uint32(r.uint())
	e.ino = r.uint()
	e.size = r.int()
	e.mtime.sec = r.int()
	e.mtime.ns = r.int()
	e.ctime.sec = r.int()
	e.ctime.ns = r.int()
	e.content = r.bytes()
	e.xattrs, e.target, e.nlink, e.link, e.rdev = nil, nil, 1, 0, 0
	if flags&flagXattrs != 0 {
		e.xattrs = r.bytes()
	}
	if flags&flagTarget != 0 {
		e.target = r.bytes()
	}
	if flags&flagLink != 0 {
		e.nlink = uint32(r.uint())
		e.link = r.uint()
	}
	if flags&flagDevice != 0 {
		e.rdev = r.uint()
	}
	if r.broken {
		return nil
	}
	return start[: len(start)-len(r.b) : len(start)-len(r.b)]
}

// A folder is what is remembered of one directory: the records of its entries
// in the order of their names, and the folders of those that are directories,
// in the same order. It never changes once it is made.
type folder struct {
	records []byte
	kids    []*folder
	bytes   int64 // of data below that is not holes, hard links by their share
	entries int64 // below
}

// appendXattr appends one extended attribute to an encoded list. The lists are
// sorted by name.
func appendXattr(b []byte, name string, value []byte) []byte {
	b = appendBytes(b, []byte(name))
	return appendBytes(b, value)
}

// eachXattr calls fn for each attribute of an encoded list.
func eachXattr(list []byte, fn func(name, value []byte)) {
	for r := (recordReader{b: list}); len(r.b) > 0; {
		name := r.bytes()
		value := r.bytes()
		if r.broken {
			return
		}
		fn(name, value)
	}
}
