package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"homeport.dev/homeport/internal/blob"
)

// A Reader reads the objects of one volume, on the server's side.
type Reader interface {
	// Indexes lists the ids of all index objects that count.
	Indexes(ctx context.Context) ([]ID, error)
	// Get reads length bytes of an object from offset; a length below 0 means
	// to the end.
	Get(ctx context.Context, kind Kind, id ID, offset, length int64) (io.ReadCloser, error)
}

// StoreReader reads the volume whose objects lie below prefix in store and
// whose index objects are these.
func StoreReader(store blob.Store, prefix string, indexes []ID) Reader {
	return storeReader{store: store, prefix: prefix, indexes: indexes}
}

type storeReader struct {
	store   blob.Store
	prefix  string
	indexes []ID
}

func (r storeReader) Indexes(context.Context) ([]ID, error) { return r.indexes, nil }

func (r storeReader) Get(ctx context.Context, kind Kind, id ID, offset, length int64) (io.ReadCloser, error) {
	return r.store.Get(ctx, ObjectKey(r.prefix, kind, id), offset, length)
}

// Measured is what a volume's owner pays for.
type Measured struct {
	Bytes   int64 // of file data that are not holes, hard links once
	Entries int64 // files, folders and others, without the root
}

// maxEntries bounds what one snapshot may hold.
const maxEntries = 5_000_000

// maxBytes bounds what a tree may claim to hold: it keeps the sums from
// overflowing.
const maxBytes = 1 << 60

// Measure walks the tree of a snapshot. cache may be nil. The faults are
// ErrDamaged, also when a tree or a blob is in no index, and ErrTooLarge.
//
// A tree found in the cache was whole by the same indexes, or fewer: when one
// of them does not count any more, everything is looked at again.
func Measure(ctx context.Context, src Reader, key Key, root ID, cache *MeasureCache) (Measured, error) {
	if !key.usable() {
		return Measured{}, ErrKey.Because(errors.New("the key is empty"))
	}
	ids, err := src.Indexes(ctx)
	if err != nil {
		return Measured{}, fmt.Errorf("measure: %w", err)
	}
	m := &measuring{key: &key, cache: cache, seen: map[ID]*measuredTree{}}
	if m.index, m.age, err = cache.index(ctx, src, &key, ids); err != nil {
		return Measured{}, fmt.Errorf("measure: %w", err)
	}
	m.trees = &treeReader{from: src, key: &key, index: m.index, blobs: treeBlob}
	t, err := m.tree(ctx, root, 0)
	if err != nil {
		return Measured{}, fmt.Errorf("measure: %w", err)
	}
	total := t.total
	if err := m.addLinks(ctx, root, map[ID]bool{}, map[ID]bool{}, &total); err != nil {
		return Measured{}, fmt.Errorf("measure: %w", err)
	}
	total.Entries-- // the root itself
	return total, nil
}

// A measuring is one measurement.
type measuring struct {
	key   *Key
	index *index
	age   uint64 // of index in cache
	trees *treeReader
	cache *MeasureCache
	seen  map[ID]*measuredTree // of this measurement, also what the cache dropped
}

// deepest bounds the recursion; users make the trees.
const deepest = 4000

// tree measures a tree without its files of several names.
func (m *measuring) tree(ctx context.Context, id ID, depth int) (*measuredTree, error) {
	if t := m.seen[id]; t != nil {
		return t, nil
	}
	if depth > deepest {
		return nil, ErrTooLarge.Because(errors.New("folders nest too deep"))
	}
	key := treeKey{volume: m.key.macK, age: m.age, tree: id}
	if t := m.cache.find(key); t != nil {
		m.seen[id] = t
		return t, nil
	}
	entries, err := m.trees.read(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &measuredTree{key: key}
	for i := range entries {
		if err := m.entry(ctx, t, &entries[i], depth); err != nil {
			return nil, err
		}
		if t.total.Entries > maxEntries || t.total.Bytes > maxBytes {
			return nil, ErrTooLarge
		}
	}
	m.seen[id] = t
	m.cache.add(t)
	return t, nil
}

// entry adds an entry to its tree.
func (m *measuring) entry(ctx context.Context, t *measuredTree, e *entry, depth int) error {
	t.total.Entries++
	switch {
	case e.isDir():
		kid, err := m.tree(ctx, e.blob(0), depth+1)
		if err != nil {
			return err
		}
		t.total.Entries += kid.total.Entries
		t.total.Bytes += kid.total.Bytes
		if len(kid.links) > 0 || len(kid.kids) > 0 {
			t.kids = append(t.kids, e.blob(0))
		}
	case e.isFile():
		bytes, err := m.bytes(e)
		if err != nil {
			return err
		}
		if e.nlink > 1 {
			t.links = append(t.links, measuredLink{file: linkedFile(e), bytes: bytes})
			return nil
		}
		t.total.Bytes += bytes
	}
	return nil
}

// linkedFile names a file of several names. Its bytes are part of the name, or
// else all files of a volume could claim to be one.
func linkedFile(e *entry) ID {
	return sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, e.link), e.content...))
}

// bytes is what the blobs of a file hold but for holes. What the file claims
// as its size does not count.
func (m *measuring) bytes(e *entry) (int64, error) {
	n := int64(0)
	for i := range e.blobs() {
		id := e.blob(i)
		b, ok := m.index.look(dataBlob, id)
		if !ok {
			return 0, ErrDamaged.Because(fmt.Errorf("blob %s is in no index", id))
		}
		if !isZero(id) {
			// Who writes the index may lie about the plain size, but then pays
			// for what is stored.
			n += max(b.size(), int64(b.length)-overhead)
		}
	}
	return n, nil
}

// addLinks adds the files of several names, each once.
func (m *measuring) addLinks(ctx context.Context, id ID, seen map[ID]bool, counted map[ID]bool, total *Measured) error {
	if seen[id] {
		return nil
	}
	seen[id] = true
	t, err := m.tree(ctx, id, 0)
	if err != nil {
		return err
	}
	for _, l := range t.links {
		if !counted[l.file] {
			counted[l.file] = true
			total.Bytes += l.bytes
		}
	}
	for _, kid := range t.kids {
		if err := m.addLinks(ctx, kid, seen, counted, total); err != nil {
			return err
		}
	}
	return nil
}
