package snapshot

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// plan reads all trees, makes folders, links, pipes and files without data,
// removes what the head does not have, and notes which blobs go where.
func (r *restorer) plan(ctx context.Context) error {
	entries, err := r.trees.read(ctx, r.o.Head.Tree)
	if err != nil {
		return err
	}
	if len(entries) != 1 || !entries[0].isDir() {
		return ErrDamaged.Because(errors.New("the root tree is not one folder"))
	}
	fd, err := openRoot(r.o.Root)
	if err != nil {
		return err
	}
	r.root = &rdir{meta: entries[0], tree: entries[0].blob(0), depth: 1}
	r.dirs.pin(r.root, newDirFD(fd))
	old, _, err := readState(r.o.State, &r.o.Key)
	if err != nil {
		return err
	}
	if old != nil && len(old.kids) == 1 {
		old = old.kids[0]
	}
	if err := r.planDir(ctx, r.root, fd, old); err != nil {
		return err
	}
	r.fetched.Add(r.trees.fetched)
	r.trees = nil
	return nil
}

// planDir plans an open folder and those below it. old is what a syncer
// remembers of it, or nil.
func (r *restorer) planDir(ctx context.Context, d *rdir, fd int, old *folder) error {
	if d.depth > maxDepth {
		return ErrDamaged.Because(errors.New("folders nest too deep"))
	}
	entries, err := r.trees.read(ctx, d.tree)
	if err != nil {
		return err
	}
	var there map[string]*fileStat
	if !d.fresh {
		if there, err = r.clear(d, fd, entries); err != nil {
			return err
		}
	}
	known := rememberedOf(old, there)
	d.folder = &folder{}
	for i := range entries {
		e := &entries[i]
		if d.depth == 1 && string(e.name) == ownName {
			continue
		}
		if err := r.planEntry(d, fd, e, there[string(e.name)], known); err != nil {
			return fmt.Errorf("%q: %w", e.name, err)
		}
	}
	for _, kid := range d.kids {
		if err := r.planKid(ctx, kid, fd, known); err != nil {
			return err
		}
	}
	return nil
}

// planKid plans a folder in an open one.
func (r *restorer) planKid(ctx context.Context, kid *rdir, at int, known map[string]remembered) error {
	fd, err := openDirAt(at, string(kid.meta.name))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return r.planDir(ctx, kid, fd, known[string(kid.meta.name)].folder)
}

// A remembered is what a syncer knows of an entry.
type remembered struct {
	entry  entry
	folder *folder
}

// rememberedOf looks names up in a syncer's state; only where something is
// there already.
func rememberedOf(old *folder, there map[string]*fileStat) map[string]remembered {
	if old == nil || len(there) == 0 {
		return nil
	}
	known := make(map[string]remembered)
	var m remembered
	kid := 0
	for r := (recordReader{b: old.records}); r.next(&m.entry) != nil; {
		m.folder = nextKid(old, &m.entry, &kid)
		known[string(m.entry.name)] = m
	}
	return known
}

// clear removes what is not in the tree, or of another format, from a folder
// that was there, and returns what is left.
func (r *restorer) clear(d *rdir, fd int, entries []entry) (map[string]*fileStat, error) {
	if err := unix.Fchmod(fd, 0o700); err != nil && !errors.Is(err, unix.EPERM) {
		return nil, err
	}
	_ = unix.Fremovexattr(fd, "system.posix_acl_default") // what is made here must not inherit it
	names, err := listNames(fd, make([]byte, 32<<10))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	formats := make(map[string]uint32, len(entries))
	for i := range entries {
		formats[string(entries[i].name)] = entries[i].format()
	}
	there := make(map[string]*fileStat, len(names))
	for _, name := range names {
		if d.depth == 1 && name == ownName {
			continue
		}
		var st fileStat
		if err := statAt(fd, name, &st); err != nil {
			return nil, err
		}
		format := st.Mode & modeFormat
		keep := format == formats[name] && (format == modeDir || format == modeFile && st.Nlink == 1)
		if keep {
			there[name] = &st
			continue
		}
		if err := removeAllAt(fd, name); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// removeAllAt removes an entry and all below it, never following a link.
func removeAllAt(at int, name string) error {
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, err := openDirAt(at, name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	names, err := listNames(fd, make([]byte, 32<<10))
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := removeAllAt(fd, n); err != nil {
			return err
		}
	}
	return unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
}

// planEntry makes or plans one entry. st is what is there already, or nil.
func (r *restorer) planEntry(d *rdir, fd int, e *entry, st *fileStat, known map[string]remembered) error {
	r.result.Files++
	rec := uint32(len(d.folder.records))
	switch e.format() {
	case modeDir:
		kid := &rdir{parent: d, meta: *e, tree: e.blob(0), depth: d.depth + 1, fresh: st == nil}
		if st == nil {
			if err := unix.Mkdirat(fd, string(e.name), 0o700); err != nil {
				return err
			}
		}
		d.kids = append(d.kids, kid)
	case modeFile:
		r.result.Bytes += e.size
		d.folder.records = appendEntry(d.folder.records, e)
		return r.planFile(d, fd, e, rec, st, known[string(e.name)])
	default:
		if err := r.makeSpecial(d, fd, e); err != nil {
			if !errors.Is(err, unix.EPERM) && !errors.Is(err, errNoDevices) {
				return err
			}
			r.skipped.Add(1)
			r.result.Files--
			return nil
		}
	}
	d.folder.records = appendEntry(d.folder.records, e)
	return nil
}

var errNoDevices = errors.New("snapshot: device nodes are not wanted")

// makeSpecial makes a symbolic link, a pipe or a device.
func (r *restorer) makeSpecial(d *rdir, fd int, e *entry) error {
	name := string(e.name)
	var err error
	switch e.format() {
	case modeLink:
		err = unix.Symlinkat(string(e.target), fd, name)
	case modeFifo:
		err = unix.Mknodat(fd, name, unix.S_IFIFO|0o600, 0)
	default:
		if !r.o.Devices {
			return errNoDevices
		}
		err = unix.Mknodat(fd, name, e.format()|0o600, int(e.rdev))
	}
	if err != nil {
		return err
	}
	if e.uid != r.uid || e.gid != r.gid || !d.fresh {
		if err := allow(unix.Fchownat(fd, name, int(e.uid), int(e.gid), unix.AT_SYMLINK_NOFOLLOW)); err != nil {
			return err
		}
	}
	if e.format() != modeLink {
		if err := unix.Fchmodat(fd, name, e.mode&0o7777, 0); err != nil {
			return err
		}
	}
	return setTimes(fd, name, e.mtime)
}

// planFile notes where the blobs of a file go.
func (r *restorer) planFile(d *rdir, fd int, e *entry, rec uint32, st *fileStat, m remembered) error {
	if e.nlink > 1 {
		if first, ok := r.links[e.link]; ok && r.sameFile(first, e) {
			if st != nil {
				if err := unix.Unlinkat(fd, string(e.name), 0); err != nil {
					return err
				}
			}
			r.others = append(r.others, otherName{dir: d, name: e.name, file: first})
			return nil
		}
		r.links[e.link] = len(r.files)
	}
	index := len(r.files)
	r.files = append(r.files, rfile{})
	f := &r.files[index]
	f.dir, f.rec = d, rec
	if st != nil {
		f.there.Store(true)
		if m.folder == nil && m.entry.sameAs(st) && string(m.entry.content) == string(e.content) {
			r.kept.Add(e.size) // the syncer read these very bytes
			return r.stampThere(fd, e, st)
		}
		if !r.written(e) || st.Size != e.size {
			r.checks = append(r.checks, index)
			return nil
		}
		r.kept.Add(e.size)
		return r.stampThere(fd, e, st)
	}
	n, err := r.addPlaces(index, e)
	if err != nil {
		return err
	}
	if n == 0 {
		return r.makeEmpty(d, fd, e)
	}
	r.meter.expect(e.size)
	return nil
}

// written reports whether a restore that was cut off had written the file.
func (r *restorer) written(e *entry) bool {
	if !r.journal.resumed {
		return false
	}
	for i := range e.blobs() {
		_, b, err := r.find(e.blob(i))
		if err != nil {
			return false
		}
		if id, _ := r.index.pack(b.pack); !isZero(b.id) && !r.journal.has(id) {
			return false
		}
	}
	return true
}

// sameFile reports whether a name belongs to a file that another name of the
// same link number began.
func (r *restorer) sameFile(first int, e *entry) bool {
	other := r.files[first].entry()
	return other.size == e.size && string(other.content) == string(e.content)
}

// addPlaces notes the blobs of a file, and returns how many are no holes.
func (r *restorer) addPlaces(index int, e *entry) (int, error) {
	f := &r.files[index]
	offset, n := int64(0), 0
	for i := range e.blobs() {
		pos, b, err := r.find(e.blob(i))
		if err != nil {
			return 0, err
		}
		at := offset
		offset += b.size()
		if isZero(b.id) {
			continue // a hole
		}
		r.places[b.pack] = append(r.places[b.pack], place{blob: pos, file: uint32(index), offset: at})
		n++
	}
	if offset != e.size {
		return 0, ErrDamaged.Because(fmt.Errorf("%q has blobs of %d bytes, not %d", e.name, offset, e.size))
	}
	f.left.Store(int32(n))
	f.many = e.blobs() > 1
	return n, nil
}

// find looks a blob of a file up.
func (r *restorer) find(id ID) (uint32, *indexed, error) {
	t := &r.index.table[dataBlob]
	pos, ok := t.find(id)
	if !ok || t.at(pos).pack >= packMax {
		return 0, nil, ErrDamaged.Because(fmt.Errorf("blob %s is in no index", id))
	}
	return pos, t.at(pos), nil
}
