package snapshot

import (
	"container/list"
	"context"
	"slices"
	"sync"
)

// A MeasureCache remembers what trees hold, so that measuring a new snapshot
// reads only the trees that changed. It serves all volumes and is safe for
// concurrent use.
type MeasureCache struct {
	mu    sync.Mutex
	limit int
	trees map[treeKey]*list.Element
	order *list.List // of *measuredTree, most recently used first

	ages    uint64 // counts the indexes that were begun
	volumes map[[16]byte]*volumeIndex
	recent  [][16]byte // of volumes, most recently used last
	blobs   int        // in all of volumes
}

// maxCachedBlobs bounds the indexes in a MeasureCache: about 60 bytes each.
const maxCachedBlobs = 4_000_000

// A volumeIndex is what was read of one volume's index objects.
type volumeIndex struct {
	mu     sync.Mutex // held while it is read
	index  *index
	age    uint64 // of index; what was measured by an older one does not count
	loaded map[ID]bool
	blobs  int
}

// A treeKey names a tree of one volume: volumes prove nothing to each other.
type treeKey struct {
	volume [16]byte
	age    uint64 // of the volume's index: its blobs were in that
	tree   ID
}

// A measuredTree is what a tree and those below it hold.
type measuredTree struct {
	key   treeKey
	total Measured
	links []measuredLink // files of several names in this very tree
	kids  []ID           // subtrees that have links somewhere below
}

type measuredLink struct {
	file  ID
	bytes int64
}

// NewMeasureCache returns a cache of at most so many trees, a few hundred
// bytes each.
func NewMeasureCache(trees int) *MeasureCache {
	return &MeasureCache{
		limit: max(trees, 1), trees: map[treeKey]*list.Element{}, order: list.New(),
		volumes: map[[16]byte]*volumeIndex{},
	}
}

func (c *MeasureCache) find(key treeKey) *measuredTree {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.trees[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*measuredTree)
}

func (c *MeasureCache) add(t *measuredTree) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trees[t.key] != nil {
		return
	}
	c.trees[t.key] = c.order.PushFront(t)
	for c.order.Len() > c.limit {
		last := c.order.Remove(c.order.Back()).(*measuredTree)
		delete(c.trees, last.key)
	}
}

// index reads the index objects of a volume, but not those that were read
// before. It also returns the age of what it returns: a new one when index
// objects vanished, since what they alone listed is not stored any more.
func (c *MeasureCache) index(ctx context.Context, src Reader, key *Key, ids []ID) (*index, uint64, error) {
	if c == nil {
		x, err := loadIndex(ctx, src, key, ids)
		return x, 0, err
	}
	v := c.volume(key.macK)
	v.mu.Lock()
	defer v.mu.Unlock()
	missing, found := []ID(nil), 0
	for _, id := range ids {
		if v.loaded[id] {
			found++
			continue
		}
		missing = append(missing, id)
	}
	if found < len(v.loaded) { // some do not count any more
		v.index, v.age, v.loaded, missing = newIndex(), c.age(), map[ID]bool{}, ids
	}
	read, err := v.index.load(ctx, src, key, missing)
	for _, id := range read { // also of a read that was called off: their packs are in the index
		v.loaded[id] = true
	}
	c.weigh(key.macK, v)
	if err != nil {
		return nil, 0, err
	}
	return v.index, v.age, nil
}

// age is that of a new index.
func (c *MeasureCache) age() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ages++
	return c.ages
}

// volume returns the entry of a volume, which it makes.
func (c *MeasureCache) volume(name [16]byte) *volumeIndex {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.volumes[name]
	if v == nil {
		c.ages++
		v = &volumeIndex{index: newIndex(), age: c.ages, loaded: map[ID]bool{}}
		c.volumes[name] = v
	}
	c.recent = append(slices.DeleteFunc(c.recent, func(n [16]byte) bool { return n == name }), name)
	return v
}

// Forget drops what is known of the volume that a key opens.
func (c *MeasureCache) Forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.trees {
		if k.volume == key.macK {
			c.order.Remove(e)
			delete(c.trees, k)
		}
	}
	if v := c.volumes[key.macK]; v != nil {
		c.blobs -= v.blobs
		delete(c.volumes, key.macK)
		c.recent = slices.DeleteFunc(c.recent, func(n [16]byte) bool { return n == key.macK })
	}
}

// weigh drops the indexes that were not used for longest, until the others fit.
func (c *MeasureCache) weigh(name [16]byte, v *volumeIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.volumes[name] != v { // it was dropped while it was read
		return
	}
	n := v.index.size()
	c.blobs += n - v.blobs
	v.blobs = n
	for c.blobs > maxCachedBlobs && len(c.recent) > 1 {
		old := c.volumes[c.recent[0]]
		c.blobs -= old.blobs
		delete(c.volumes, c.recent[0])
		c.recent = slices.Delete(c.recent, 0, 1)
	}
}
