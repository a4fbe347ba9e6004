package snapshot

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A dirWork is a folder that is being synced. It is complete when the walker
// has left it and all its files and folders are done; whoever does the last of
// them then makes its tree.
type dirWork struct {
	run     *run
	parent  *dirWork
	slot    int // in parent.items
	depth   int
	name    string
	old     *folder // of the last sync; nil: new
	oldTree ID
	relist  bool // the names of old may not be all

	items      []item // by name
	left       atomic.Int32
	changed    atomic.Bool
	incomplete atomic.Bool // something is not in the tree that is on disk

	folder *folder // the result
	tree   ID
}

// An item is one name in a dirWork.
type item struct {
	rec   []byte   // its record of the last sync; nil: new
	ent   *entry   // what replaces rec; with rec nil too, the item is left out
	job   *job     // of a file that is read: its result replaces rec
	kid   *folder  // of a folder: that of the last sync, later the result
	child *dirWork // of a folder that is walked
}

// walk visits a folder whose descriptor is dir, and the folders below it.
func (r *run) walk(d *dirWork, dir *dirFD) {
	if r.ctx.Err() != nil {
		return
	}
	if d.old != nil && !d.relist {
		r.walkKnown(d, dir)
	} else if err := r.walkListed(d, dir); err != nil {
		r.skip(d)
		r.keepOld(d)
		return
	}
	for i := range d.items {
		if d.items[i].child != nil {
			r.child(d, i, dir)
		}
	}
}

// walkKnown visits the names of the last sync: the folder's own times say that
// there are no others.
func (r *run) walkKnown(d *dirWork, dir *dirFD) {
	d.items = make([]item, 0, 32)
	var old entry
	kid := 0
	for records := (recordReader{b: d.old.records}); ; {
		rec := records.next(&old)
		if rec == nil {
			return
		}
		r.visit(d, dir, old.name, rec, &old, nextKid(d.old, &old, &kid))
	}
}

// nextKid is the folder of an old entry, when it is one.
func nextKid(f *folder, e *entry, kid *int) *folder {
	if !e.isDir() || *kid >= len(f.kids) {
		return nil
	}
	*kid++
	return f.kids[*kid-1]
}

// walkListed visits the names that are on disk now, side by side with those of
// the last sync.
func (r *run) walkListed(d *dirWork, dir *dirFD) error {
	names, err := listNames(dir.fd, r.names)
	if err != nil {
		return err
	}
	d.items = make([]item, 0, len(names))
	var records recordReader
	var old entry
	var rec []byte
	kid := 0
	if d.old != nil {
		records.b = d.old.records
		rec = records.next(&old)
	}
	for _, name := range names {
		if d.depth == 1 && name == ownName {
			continue
		}
		for rec != nil && string(old.name) < name {
			nextKid(d.old, &old, &kid)
			d.changed.Store(true) // removed
			rec = records.next(&old)
		}
		if rec != nil && string(old.name) == name {
			r.visit(d, dir, old.name, rec, &old, nextKid(d.old, &old, &kid))
			rec = records.next(&old)
			continue
		}
		r.visit(d, dir, []byte(name), nil, nil, nil)
	}
	if rec != nil {
		d.changed.Store(true) // removed
	}
	return nil
}

// keepOld takes the folder over from the last sync, as it cannot be read.
func (r *run) keepOld(d *dirWork) {
	d.items = nil
	if d.old == nil {
		return
	}
	var old entry
	kid := 0
	for records := (recordReader{b: d.old.records}); ; {
		rec := records.next(&old)
		if rec == nil {
			return
		}
		d.items = append(d.items, item{rec: rec, kid: nextKid(d.old, &old, &kid)})
	}
}

// skip counts an entry of d that is not as on disk.
func (r *run) skip(d *dirWork) {
	r.skipped.Add(1)
	d.incomplete.Store(true)
}

// visit looks at one name. rec and old are nil when it is new.
func (r *run) visit(d *dirWork, dir *dirFD, name, rec []byte, old *entry, kid *folder) {
	var st fileStat
	err := statAt(dir.fd, string(name), &st)
	if errors.Is(err, unix.ENOENT) {
		if rec != nil {
			d.changed.Store(true)
		}
		return
	}
	if err != nil {
		r.skip(d)
		if rec != nil {
			d.items = append(d.items, item{rec: rec, kid: kid})
		}
		return
	}
	same := rec != nil && old.sameAs(&st)
	slot := len(d.items)
	format := st.Mode & modeFormat
	if _, known := types[format]; !known {
		r.skip(d) // a socket
		if rec != nil {
			d.changed.Store(true)
		}
		return
	}
	if rec != nil && old.isDir() != (format == modeDir) {
		rec, kid = nil, nil
		d.changed.Store(true)
	}
	d.items = append(d.items, item{rec: rec, kid: kid})
	switch {
	case format == modeDir:
		r.directory(d, slot, name, &st, same, old)
	case same:
	case format == modeFile:
		r.regular(d, dir, slot, name, &st)
	default:
		r.special(d, dir, slot, name, &st)
	}
}

// directory enters a folder to be walked.
func (r *run) directory(d *dirWork, slot int, name []byte, st *fileStat, known bool, old *entry) {
	it := &d.items[slot]
	c := &dirWork{run: r, parent: d, slot: slot, depth: d.depth + 1, name: string(name), old: it.kid, relist: true}
	if it.kid != nil {
		c.oldTree = old.blob(0)
		c.relist = !(known && old.sameAs(st))
	}
	if c.relist {
		e := &entry{name: []byte(c.name)}
		e.setStat(st)
		if fresh(st) {
			e.flags = flagRecheck
		}
		it.ent = e
	}
	it.child = c
	c.left.Store(1)
	d.left.Add(1)
}

// child walks a folder that directory entered.
func (r *run) child(d *dirWork, slot int, dir *dirFD) {
	c := d.items[slot].child
	defer c.complete()
	if d == r.top {
		r.enter(c, dir.retain())
		return
	}
	if c.depth > maxDepth {
		r.skip(c)
		r.keepOld(c)
		return
	}
	fd, err := openDirAt(dir.fd, c.name)
	if err != nil {
		r.skip(c)
		r.keepOld(c)
		return
	}
	r.enter(c, newDirFD(fd))
}

// enter walks an open folder, and releases it.
func (r *run) enter(c *dirWork, dir *dirFD) {
	defer dir.release()
	if e := c.parent.items[c.slot].ent; e != nil {
		var st fileStat
		if err := unix.Fstat(dir.fd, &st); err == nil && st.Dev != r.rootDev && isMount(dir.fd) {
			r.skip(c)
			return // stays an empty folder
		}
		e.xattrs = readXattrs(dir.fd, r.names)
	}
	r.walk(c, dir)
}

// regular enters a file to be read by a worker. The names of one file share
// one reading.
func (r *run) regular(d *dirWork, dir *dirFD, slot int, name []byte, st *fileStat) {
	r.files.Add(1)
	it := &d.items[slot]
	j := &job{run: r, d: d, isNew: it.rec == nil, name: string(name), st: *st}
	it.job = j
	d.left.Add(1)
	if st.Nlink > 1 {
		id := fileID{dev: st.Dev, ino: st.Ino}
		g, ok := r.links[id]
		if !ok {
			g = &linkGroup{}
			r.links[id] = g
			j.group = g
		} else if g.wait(j) {
			return
		}
	}
	r.changed.Add(st.Size)
	if st.Size >= lastFrom {
		r.last = append(r.last, j)
		return
	}
	j.dir = dir.retain()
	r.queue(j)
}

// special enters a link, a pipe or a device.
func (r *run) special(d *dirWork, dir *dirFD, slot int, name []byte, st *fileStat) {
	e := &entry{name: append([]byte(nil), name...)}
	e.setStat(st)
	if fresh(st) {
		e.flags = flagRecheck
	}
	if e.format() == modeLink {
		target, err := readLinkAt(dir.fd, string(name), r.names)
		if err != nil {
			r.skip(d)
			return
		}
		e.target = target
	}
	d.items[slot].ent = e
	d.changed.Store(true)
}
