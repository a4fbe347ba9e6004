package snapshot

import (
	"container/list"
	"sync"
)

// A FolderCache remembers folders that were read, of all volumes: who looks
// into one mostly goes on in it. It is safe for concurrent use; nil remembers
// nothing.
type FolderCache struct {
	mu      sync.Mutex
	limit   int64 // bytes
	held    int64
	folders map[treeKey]*list.Element
	order   *list.List // of *cachedFolder, most recently used first
}

type cachedFolder struct {
	key     treeKey
	entries []entry
	weight  int64
}

// NewFolderCache returns a cache of about so many bytes.
func NewFolderCache(limit int64) *FolderCache {
	return &FolderCache{limit: limit, folders: map[treeKey]*list.Element{}, order: list.New()}
}

func (c *FolderCache) find(key treeKey) []entry {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.folders[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedFolder).entries
}

func (c *FolderCache) add(key treeKey, entries []entry) {
	if c == nil || entries == nil {
		return
	}
	f := &cachedFolder{key: key, entries: entries, weight: weightOf(entries)}
	if f.weight > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.folders[key] != nil {
		return
	}
	c.folders[key] = c.order.PushFront(f)
	for c.held += f.weight; c.held > c.limit; {
		last := c.order.Remove(c.order.Back()).(*cachedFolder)
		delete(c.folders, last.key)
		c.held -= last.weight
	}
}

// Forget drops the folders of the volume that a key opens.
func (c *FolderCache) Forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.folders {
		if k.volume == key.macK {
			c.held -= c.order.Remove(e).(*cachedFolder).weight
			delete(c.folders, k)
		}
	}
}

// weightOf is about what entries take in memory, in bytes.
func weightOf(entries []entry) int64 {
	const each = 256
	n := int64(each * (len(entries) + 1))
	for i := range entries {
		e := &entries[i]
		n += int64(len(e.name) + len(e.content) + len(e.target) + len(e.xattrs))
	}
	return n
}
