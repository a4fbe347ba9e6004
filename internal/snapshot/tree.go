package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// decodeTree turns the JSON of a tree blob into entries, sorted by name. The
// fault is ErrDamaged.
func decodeTree(plain []byte) ([]entry, error) {
	var j struct {
		Nodes []nodeJSON `json:"nodes"`
	}
	if err := json.Unmarshal(plain, &j); err != nil {
		return nil, ErrDamaged.Because(fmt.Errorf("tree: %w", err))
	}
	entries := make([]entry, len(j.Nodes))
	for i := range j.Nodes {
		e, err := j.Nodes[i].entry()
		if err != nil {
			return nil, ErrDamaged.Because(fmt.Errorf("tree: %w", err))
		}
		entries[i] = e
	}
	byName := func(a, b entry) int { return bytes.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(entries, byName) {
		slices.SortFunc(entries, byName)
	}
	for i := 1; i < len(entries); i++ {
		if bytes.Equal(entries[i-1].name, entries[i].name) {
			return nil, ErrDamaged.Because(errors.New("tree: a name twice"))
		}
	}
	return entries, nil
}

// treeCacheSize is how many bytes of tree packs a treeReader keeps.
const treeCacheSize = 32 << 20

// A treeReader reads trees, or small blobs of files. What lies in one pack is
// mostly wanted soon after each other, so it fetches the whole pack when that is
// small, and else a stretch from the wanted one on. It is not safe for
// concurrent use.
type treeReader struct {
	from    getter
	key     *Key
	index   *index
	blobs   blobType   // that it reads
	parts   []packPart // most recently used last
	held    int64
	fetched int64 // bytes read
	scratch []byte
}

// A packPart is a stretch of a pack.
type packPart struct {
	pack   uint32
	offset int64
	b      []byte
}

// A pack of at most wholePack bytes is fetched whole, of a larger one a stretch.
const (
	wholePack = 12 << 20
	stretch   = 1 << 20
)

// read returns the entries of a tree. The fault is ErrDamaged.
func (r *treeReader) read(ctx context.Context, id ID) ([]entry, error) {
	plain, err := r.plain(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	return decodeTree(plain)
}

// plain appends the bytes of a blob to dst.
func (r *treeReader) plain(ctx context.Context, id ID, dst []byte) ([]byte, error) {
	at, ok := r.index.look(r.blobs, id)
	if !ok {
		return nil, ErrDamaged.Because(fmt.Errorf("%s blob %s is in no index", r.blobs, id))
	}
	var plain []byte
	err := twice(func() error {
		sealed, err := r.sealed(ctx, &at)
		if err != nil {
			return err
		}
		plain, r.scratch, err = openBlob(r.key, sealed, &at, dst, r.scratch)
		if err != nil {
			r.drop(at.pack)
		}
		return err
	})
	return plain, err
}

// sealed returns the bytes of a blob from a part, which it fetches at need.
func (r *treeReader) sealed(ctx context.Context, at *indexed) ([]byte, error) {
	from, to := int64(at.offset), int64(at.offset)+int64(at.length)
	for i, p := range r.parts {
		if p.pack == at.pack && p.offset <= from && to <= p.offset+int64(len(p.b)) {
			r.parts = append(slices.Delete(r.parts, i, i+1), p)
			return p.b[from-p.offset : to-p.offset], nil
		}
	}
	id, end := r.index.pack(at.pack)
	start := int64(0)
	if end > wholePack {
		start, end = from, min(end, max(to, from+stretch))
	}
	b, err := fetch(ctx, r.from, r.blobs.pack(), id, start, end-start, nil)
	if err != nil {
		return nil, err
	}
	r.fetched += int64(len(b))
	r.parts = append(r.parts, packPart{pack: at.pack, offset: start, b: b})
	r.held += int64(len(b))
	for r.held > treeCacheSize && len(r.parts) > 1 {
		r.held -= int64(len(r.parts[0].b))
		r.parts = slices.Delete(r.parts, 0, 1)
	}
	return b[from-start : to-start], nil
}

// drop forgets the parts of a pack.
func (r *treeReader) drop(pack uint32) {
	r.parts = slices.DeleteFunc(r.parts, func(p packPart) bool {
		if p.pack == pack {
			r.held -= int64(len(p.b))
		}
		return p.pack == pack
	})
}
