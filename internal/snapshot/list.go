package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// A Node is one entry of a folder in a snapshot, for browsing.
type Node struct {
	Name    string // as on disk, perhaps not UTF-8
	Mode    fs.FileMode
	Size    int64 // bytes; files only
	MTime   time.Time
	Target  string // symbolic links only
	Subtree ID     // folders only
}

// ListTree returns the entries of one tree, sorted by name. The fault is
// ErrDamaged.
func ListTree(ctx context.Context, src Reader, key Key, tree ID) ([]Node, error) {
	v, err := openVolume(ctx, src, key)
	if err != nil {
		return nil, err
	}
	entries, err := v.trees.read(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("list tree: %w", err)
	}
	nodes := make([]Node, len(entries))
	for i := range entries {
		nodes[i] = nodeOf(&entries[i])
	}
	return nodes, nil
}

func nodeOf(e *entry) Node {
	n := Node{
		Name: string(e.name), Mode: goMode(e.mode), Size: e.size,
		MTime: time.Unix(e.mtime.sec, e.mtime.ns).UTC(), Target: string(e.target),
	}
	if e.isDir() {
		n.Subtree = e.blob(0)
	}
	return n
}

// A volumeReader reads trees of a volume on the server's side.
type volumeReader struct {
	src   Reader
	key   *Key
	index *index
	trees *treeReader
}

func openVolume(ctx context.Context, src Reader, key Key) (*volumeReader, error) {
	if !key.usable() {
		return nil, ErrKey.Because(errors.New("the key is empty"))
	}
	ids, err := src.Indexes(ctx)
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	v := &volumeReader{src: src, key: &key}
	if v.index, err = loadIndex(ctx, src, v.key, ids); err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	v.trees = &treeReader{from: src, key: v.key, index: v.index, blobs: treeBlob}
	return v, nil
}
