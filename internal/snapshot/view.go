package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A View reads one snapshot on the server's side, without a pod: its folders,
// its files, and a folder as an archive. Paths are relative to the folder
// itself, which is ""; their names are those on disk, perhaps not UTF-8. It is
// safe for concurrent use.
type View struct {
	src     Reader
	key     *Key
	index   *index
	top     entry // the folder itself
	folders *FolderCache
}

// OpenView opens the snapshot whose root tree is root. The indexes of its
// volume and the folders that were read are kept in the caches; both may be
// nil. The faults are ErrKey and ErrDamaged.
func OpenView(ctx context.Context, src Reader, key Key, root ID, indexes *MeasureCache, folders *FolderCache) (*View, error) {
	if !key.usable() {
		return nil, ErrKey.Because(errors.New("the key is empty"))
	}
	ids, err := src.Indexes(ctx)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	v := &View{src: src, key: &key, folders: folders}
	if v.index, _, err = indexes.index(ctx, src, v.key, ids); err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	entries, err := v.folder(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	if len(entries) != 1 || !entries[0].isDir() {
		return nil, ErrDamaged.Because(fmt.Errorf("the root tree has %d entries", len(entries)))
	}
	v.top = entries[0]
	return v, nil
}

// folder returns the entries of a tree by name. Nobody may change them.
func (v *View) folder(ctx context.Context, id ID) ([]entry, error) {
	key := treeKey{volume: v.key.macK, tree: id}
	if entries := v.folders.find(key); entries != nil {
		return entries, nil
	}
	at, ok := v.index.look(treeBlob, id)
	if !ok {
		return nil, ErrDamaged.Because(fmt.Errorf("tree %s is in no index", id))
	}
	pack, _ := v.index.pack(at.pack)
	var entries []entry
	err := twice(func() error {
		sealed, err := fetch(ctx, v.src, KindTree, pack, int64(at.offset), int64(at.length), nil)
		if err != nil {
			return err
		}
		plain, _, err := openBlob(v.key, sealed, &at, nil, nil)
		if err != nil {
			return err
		}
		entries, err = decodeTree(plain)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.folders.add(key, entries)
	return entries, nil
}

// find returns the entry at a path. The fault is ErrNoEntry.
func (v *View) find(ctx context.Context, path string) (entry, error) {
	at := v.top
	for name := range strings.SplitSeq(path, "/") {
		if name == "" { // "", a leading or a trailing slash
			continue
		}
		if !at.isDir() {
			return entry{}, ErrNoEntry
		}
		entries, err := v.folder(ctx, at.blob(0))
		if err != nil {
			return entry{}, err
		}
		i, ok := slices.BinarySearchFunc(entries, []byte(name), func(e entry, name []byte) int { return bytes.Compare(e.name, name) })
		if !ok {
			return entry{}, ErrNoEntry
		}
		at = entries[i]
	}
	return at, nil
}

// List returns up to limit entries of a folder from offset on, folders first,
// each by name, and how many there are in all. The faults are ErrNoEntry,
// ErrNotFolder and ErrDamaged.
func (v *View) List(ctx context.Context, path string, offset, limit int) (nodes []Node, total int, err error) {
	at, err := v.find(ctx, path)
	if err != nil {
		return nil, 0, fmt.Errorf("list folder: %w", err)
	}
	if !at.isDir() {
		return nil, 0, ErrNotFolder
	}
	entries, err := v.folder(ctx, at.blob(0))
	if err != nil {
		return nil, 0, fmt.Errorf("list folder: %w", err)
	}
	n := 0
	for _, dirs := range []bool{true, false} {
		for i := range entries {
			if entries[i].isDir() != dirs {
				continue
			}
			if n >= offset && len(nodes) < limit {
				nodes = append(nodes, nodeOf(&entries[i]))
			}
			n++
		}
	}
	return nodes, len(entries), nil
}
