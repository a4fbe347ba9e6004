package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Changes are the files, links and devices in which two snapshots differ.
type Changes struct {
	Added   int64
	Changed int64 // other bytes, or of another kind; not only other times or rights
	Removed int64
}

// Compare counts what changed from one snapshot of a volume to a later one. It
// reads only folders that differ, and at most limit of them: beyond, the fault
// is ErrTooLarge. The other fault is ErrDamaged.
func Compare(ctx context.Context, from, to *View, limit int) (Changes, error) {
	c := &comparing{limit: limit, trees: &treeReader{from: to.src, key: to.key, index: to.index, blobs: treeBlob}}
	if err := c.folders(ctx, from.top.blob(0), to.top.blob(0), 0); err != nil {
		return Changes{}, fmt.Errorf("compare: %w", err)
	}
	return c.changes, nil
}

type comparing struct {
	trees   *treeReader
	limit   int
	changes Changes
}

func (c *comparing) read(ctx context.Context, id ID) ([]entry, error) {
	if c.limit--; c.limit < 0 {
		return nil, ErrTooLarge.Because(errors.New("too many folders differ"))
	}
	return c.trees.read(ctx, id)
}

// folders compares two folders whose trees may differ.
func (c *comparing) folders(ctx context.Context, from, to ID, depth int) error {
	if from == to {
		return nil
	}
	if depth > deepest {
		return ErrTooLarge.Because(errors.New("folders nest too deep"))
	}
	old, err := c.read(ctx, from)
	if err != nil {
		return err
	}
	now, err := c.read(ctx, to)
	if err != nil {
		return err
	}
	for len(old) > 0 || len(now) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = bytes.Compare(old[0].name, now[0].name)
		}
		var was, is *entry
		if order <= 0 {
			was, old = &old[0], old[1:]
		}
		if order >= 0 {
			is, now = &now[0], now[1:]
		}
		if err := c.entries(ctx, was, is, depth); err != nil {
			return err
		}
	}
	return nil
}

// entries compares what has one name; nil stands for nothing.
func (c *comparing) entries(ctx context.Context, was, is *entry, depth int) error {
	if was != nil && is != nil {
		switch {
		case was.isDir() && is.isDir():
			return c.folders(ctx, was.blob(0), is.blob(0), depth+1)
		case !was.isDir() && !is.isDir():
			if was.format() != is.format() || !bytes.Equal(was.content, is.content) || !bytes.Equal(was.target, is.target) || was.rdev != is.rdev {
				c.changes.Changed++
			}
			return nil
		}
	}
	if err := c.count(ctx, was, &c.changes.Removed, depth); err != nil {
		return err
	}
	return c.count(ctx, is, &c.changes.Added, depth)
}

// count adds all that is no folder, at and below an entry.
func (c *comparing) count(ctx context.Context, e *entry, n *int64, depth int) error {
	if e == nil {
		return nil
	}
	if !e.isDir() {
		*n++
		return nil
	}
	if depth > deepest {
		return ErrTooLarge.Because(errors.New("folders nest too deep"))
	}
	entries, err := c.read(ctx, e.blob(0))
	if err != nil {
		return err
	}
	for i := range entries {
		if err := c.count(ctx, &entries[i], n, depth+1); err != nil {
			return err
		}
	}
	return nil
}
