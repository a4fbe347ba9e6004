package snapshot

import (
	"bytes"
	"errors"
)

// makeTree stores the tree of a folder all of whose items are done.
func (r *run) makeTree(d *dirWork) error {
	changed := d.old == nil || d.changed.Load()
	for i := range d.items {
		if it := &d.items[i]; it.child != nil && r.takeChild(it) {
			changed = true
		}
	}
	if !changed {
		d.folder, d.tree = d.old, d.oldTree
		return nil
	}
	f := &folder{}
	tree := []byte(`{"nodes":[`)
	for i := range d.items {
		it := &d.items[i]
		var e entry
		switch {
		case it.job != nil && it.job.ent != nil:
			e = *it.job.ent
			f.records = appendEntry(f.records, &e)
		case it.ent != nil:
			e = *it.ent
			f.records = appendEntry(f.records, &e)
		case it.rec != nil:
			(&recordReader{b: it.rec}).next(&e)
			f.records = append(f.records, it.rec...)
		default:
			continue
		}
		if e.isDir() {
			f.kids = append(f.kids, it.kid)
			f.bytes += it.kid.bytes
			f.entries += it.kid.entries
		} else if e.isFile() {
			f.bytes += (e.size - holeBytes(e.content)) / int64(max(e.nlink, 1))
		}
		f.entries++
		if tree[len(tree)-1] == '}' {
			tree = append(tree, ',')
		}
		tree = appendNode(tree, &e)
	}
	tree = append(tree, "]}\n"...)
	f.records = bytes.Clone(f.records) // without the room to grow
	if len(tree) > maxPlain {
		return r.giveUp(d)
	}
	id, err := r.saver.save(treeBlob, tree)
	if errors.Is(err, errTooBig) {
		return r.giveUp(d)
	}
	d.folder, d.tree = f, id
	return err
}

// takeChild puts the result of a folder into its item, and reports whether the
// item differs from the last sync.
func (r *run) takeChild(it *item) bool {
	c := it.child
	var e entry
	if it.ent != nil {
		e = *it.ent
	} else {
		(&recordReader{b: it.rec}).next(&e)
		e.flags = 0
	}
	e.content = bytes.Clone(c.tree[:])
	if c.incomplete.Load() {
		e.flags |= flagRecheck
	}
	if it.kid == c.folder && it.rec != nil && bytes.Equal(appendEntry(nil, &e), it.rec) {
		it.ent = nil
		return false
	}
	it.ent, it.kid = &e, c.folder
	return true
}

// giveUp leaves a folder as it was, or empty, as it has more entries than one
// tree can hold.
func (r *run) giveUp(d *dirWork) error {
	r.skip(d)
	if d.old != nil {
		d.folder, d.tree = d.old, d.oldTree
		return nil
	}
	id, err := r.saver.save(treeBlob, []byte("{\"nodes\":[]}\n"))
	d.folder, d.tree = &folder{}, id
	return err
}
