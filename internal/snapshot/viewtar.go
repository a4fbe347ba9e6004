package snapshot

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// An Archive is a folder of a snapshot, to be written as a tar archive.
type Archive struct {
	Name string // of the folder, as on disk
	view *View
	top  entry
}

// OpenArchive opens the folder at a path, and reads it. The faults are
// ErrNoEntry, ErrNotFolder and ErrDamaged.
func (v *View) OpenArchive(ctx context.Context, path string) (*Archive, error) {
	at, err := v.find(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	if !at.isDir() {
		return nil, ErrNotFolder
	}
	if _, err := v.folder(ctx, at.blob(0)); err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Archive{Name: string(at.name), view: v, top: at}, nil
}

// maxLinks bounds how many files of several names an archive remembers: beyond
// it, a further name is written as a file of its own.
const maxLinks = 200_000

// small is the size in bytes of a file that is read with its neighbours.
const small = 512 << 10

// An archiver writes one archive. Its memory is bounded by the largest folder
// on the way, maxLinks, and the buffers.
type archiver struct {
	view  *View
	w     *bufio.Writer
	tar   *tar.Writer
	trees *treeReader
	blobs *treeReader
	links map[ID]*linked
	buf   []byte
}

// A linked is a file of several names of which one is in the archive.
type linked struct {
	path string
	left uint32 // names that may still come
}

// WriteTo writes the archive, in POSIX pax format with what ustar cannot say:
// exact times, names of any bytes, extended attributes, holes as GNU tar
// writes them. Sockets are in no snapshot. The fault is ErrDamaged; what was
// written then is no whole archive.
func (a *Archive) WriteTo(ctx context.Context, w io.Writer) error {
	v := a.view
	z := &archiver{
		view: v, w: bufio.NewWriterSize(w, 64<<10), links: map[ID]*linked{},
		trees: &treeReader{from: v.src, key: v.key, index: v.index, blobs: treeBlob},
		blobs: &treeReader{from: v.src, key: v.key, index: v.index, blobs: dataBlob},
	}
	z.tar = tar.NewWriter(z.w)
	if err := z.folder(ctx, a.Name, &a.top, 0); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := z.tar.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := z.w.Flush(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// folder writes a folder and what is in it: first its files, then its folders.
func (z *archiver) folder(ctx context.Context, path string, e *entry, depth int) error {
	if depth > deepest {
		return ErrTooLarge.Because(errors.New("folders nest too deep"))
	}
	h := headerOf(path+"/", e)
	h.Typeflag = tar.TypeDir
	if err := z.tar.WriteHeader(h); err != nil {
		return err
	}
	entries, err := z.trees.read(ctx, e.blob(0))
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].isDir() {
			continue
		}
		if err := z.other(ctx, path+"/"+string(entries[i].name), &entries[i]); err != nil {
			return err
		}
	}
	// The files need not be held while the folders are written.
	entries = slices.Clone(slices.DeleteFunc(entries, func(e entry) bool { return !e.isDir() }))
	for i := range entries {
		if err := z.folder(ctx, path+"/"+string(entries[i].name), &entries[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// other writes an entry that is no folder.
func (z *archiver) other(ctx context.Context, path string, e *entry) error {
	h := headerOf(path, e)
	switch e.format() {
	case modeFile:
		return z.file(ctx, h, e)
	case modeLink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(e.target)
	case modeFifo:
		h.Typeflag = tar.TypeFifo
	case modeChar, modeBlock:
		h.Typeflag = tar.TypeChar
		if e.format() == modeBlock {
			h.Typeflag = tar.TypeBlock
		}
		h.Devmajor = int64(e.rdev>>8&0xfff | e.rdev>>32&^0xfff)
		h.Devminor = int64(e.rdev&0xff | e.rdev>>12&^0xff&0xffffffff)
	default:
		return nil
	}
	return z.tar.WriteHeader(h)
}

// file writes a file, or only its further name.
func (z *archiver) file(ctx context.Context, h *tar.Header, e *entry) error {
	if e.nlink > 1 {
		id := linkedFile(e)
		if l := z.links[id]; l != nil {
			if l.left--; l.left == 0 {
				delete(z.links, id)
			}
			h.Typeflag, h.Linkname = tar.TypeLink, l.path
			return z.tar.WriteHeader(h)
		}
		if len(z.links) < maxLinks {
			z.links[id] = &linked{path: h.Name, left: e.nlink - 1}
		}
	}
	h.Typeflag, h.Size = tar.TypeReg, e.size
	if e.size <= small && e.blobs() == 1 {
		return z.small(ctx, h, e)
	}
	f, err := z.view.open(ctx, *e)
	if err != nil {
		return err
	}
	defer f.Close()
	if holeBytes(e.content) >= leastHoles {
		return z.sparse(h, f)
	}
	if err := z.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(z.tar, f)
	return err
}

// small writes a file of one blob.
func (z *archiver) small(ctx context.Context, h *tar.Header, e *entry) (err error) {
	if at, ok := z.view.index.look(dataBlob, e.blob(0)); !ok || at.size() != e.size {
		return ErrDamaged.Because(fmt.Errorf("a file of %d bytes has a blob of %d", e.size, at.size()))
	}
	if z.buf, err = z.blobs.plain(ctx, e.blob(0), z.buf[:0]); err != nil {
		return err
	}
	if err := z.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err = z.tar.Write(z.buf)
	return err
}

// headerOf makes what the headers of all formats have.
func headerOf(path string, e *entry) *tar.Header {
	h := &tar.Header{
		Format: tar.FormatPAX, Name: path, Mode: int64(e.mode & 0o7777), Uid: int(e.uid), Gid: int(e.gid),
		ModTime: time.Unix(e.mtime.sec, e.mtime.ns),
	}
	eachXattr(e.xattrs, func(name, value []byte) {
		if strings.ContainsAny(string(name), "=\x00") { // no record can hold such a name
			return
		}
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["SCHILY.xattr."+string(name)] = string(value)
	})
	return h
}
