package auth

import "sync"

// A cache keeps about the last size to 2×size values that were used: two maps,
// of which the older is dropped when the newer is full.
type cache[K comparable, V any] struct {
	mu       sync.Mutex
	size     int
	now, old map[K]V
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, now: make(map[K]V)}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.now[key]; ok {
		return v, true
	}
	v, ok := c.old[key]
	if ok {
		c.store(key, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(key, v)
}

func (c *cache[K, V]) store(key K, v V) {
	if len(c.now) >= c.size {
		c.old, c.now = c.now, make(map[K]V, c.size)
	}
	c.now[key] = v
}

func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.now, key)
	delete(c.old, key)
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.old = make(map[K]V), nil
}
