package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// blobType is what a blob holds. Blobs of the two types never meet: the same
// bytes may exist once as each.
type blobType uint8

const (
	dataBlob blobType = iota
	treeBlob
)

func (t blobType) String() string {
	if t == treeBlob {
		return "tree"
	}
	return "data"
}

// pack is the kind of the packs that hold such blobs.
func (t blobType) pack() Kind {
	if t == treeBlob {
		return KindTree
	}
	return KindData
}

// Values of indexed.pack that are no pack.
const (
	packOpen = ^uint32(0) - iota // being packed: will be there if the sync succeeds
	packNone                     // known once, not there
	packMax                      // below this: a pack
)

// indexed is where a blob lies.
type indexed struct {
	id     ID
	pack   uint32 // number in index.packs
	offset uint32
	length uint32 // sealed
	plain  uint32 // 0: not compressed
}

// size is the length of the blob's plain bytes.
func (e *indexed) size() int64 {
	if e.plain > 0 {
		return int64(e.plain)
	}
	return int64(e.length) - overhead
}

const slabSize = 4096

// maxIndexBlobs is how many blobs one index object lists at most.
const maxIndexBlobs = 40000

// blobTable finds blobs by id: an open-addressed table over slabs without
// pointers, 48 bytes a blob and 8 for the table.
type blobTable struct {
	slots []uint32 // 1 + position
	slabs [][]indexed
	n     int
}

func (t *blobTable) at(pos uint32) *indexed { return &t.slabs[pos/slabSize][pos%slabSize] }

// find returns the position of id.
func (t *blobTable) find(id ID) (uint32, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := binary.LittleEndian.Uint64(id[:]) & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if t.at(v-1).id == id {
			return v - 1, true
		}
	}
}

// add returns the position of id, which it makes when it is new.
func (t *blobTable) add(id ID) uint32 {
	if pos, ok := t.find(id); ok {
		return pos
	}
	if 2*(t.n+1) > len(t.slots) {
		t.grow()
	}
	if t.n%slabSize == 0 {
		t.slabs = append(t.slabs, make([]indexed, slabSize))
	}
	pos := uint32(t.n)
	t.n++
	*t.at(pos) = indexed{id: id, pack: packNone}
	t.place(id, pos)
	return pos
}

func (t *blobTable) place(id ID, pos uint32) {
	mask := uint64(len(t.slots) - 1)
	i := binary.LittleEndian.Uint64(id[:]) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = pos + 1
}

func (t *blobTable) grow() {
	t.slots = make([]uint32, max(1024, 2*len(t.slots)))
	for pos := range uint32(t.n) {
		t.place(t.at(pos).id, pos)
	}
}

// An index knows all blobs of one repository. It is safe for concurrent use.
type index struct {
	mu    sync.RWMutex
	packs []ID
	ends  []int64       // of the last blob in each pack
	known map[ID]uint32 // number of a pack
	table [2]blobTable  // by blobType
}

func newIndex() *index { return &index{known: map[ID]uint32{}} }

// look returns where a blob lies; ok is false when no pack holds it.
func (x *index) look(t blobType, id ID) (e indexed, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	pos, ok := x.table[t].find(id)
	if !ok {
		return indexed{}, false
	}
	e = *x.table[t].at(pos)
	return e, e.pack < packMax
}

// has reports whether a blob lies in a pack.
func (x *index) has(t blobType, id ID) bool {
	_, ok := x.look(t, id)
	return ok
}

// claim reports whether the caller is to store this blob: it is neither in a
// pack nor on its way into one.
func (x *index) claim(t blobType, id ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.table[t].at(x.table[t].add(id))
	if e.pack != packNone {
		return false
	}
	e.pack = packOpen
	return true
}

// release undoes claim.
func (x *index) release(t blobType, id ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table[t].at(x.table[t].add(id)).pack = packNone
}

// abandon forgets all blobs that are on their way into a pack.
func (x *index) abandon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for t := range x.table {
		for pos := range uint32(x.table[t].n) {
			if e := x.table[t].at(pos); e.pack == packOpen {
				e.pack = packNone
			}
		}
	}
}

// addPack enters a pack with its blobs and returns its number.
func (x *index) addPack(p packed) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.known[p.id]
	if !ok {
		n = uint32(len(x.packs))
		x.packs = append(x.packs, p.id)
		x.ends = append(x.ends, 0)
		x.known[p.id] = n
	}
	for _, b := range p.blobs {
		x.ends[n] = max(x.ends[n], int64(b.offset)+int64(b.length))
		e := x.table[b.kind].at(x.table[b.kind].add(b.id))
		if e.pack < packMax && e.pack != n {
			continue // one copy is enough
		}
		e.pack, e.offset, e.length, e.plain = n, b.offset, b.length, b.plain
	}
	return n
}

// hasPack reports whether a pack was entered.
func (x *index) hasPack(id ID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.known[id]
	return ok
}

// pack is the id of the pack of that number, and where its last blob ends.
func (x *index) pack(n uint32) (id ID, end int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.packs[n], x.ends[n]
}

// indexJSON is an object "index/<id>".
type indexJSON struct {
	Packs []struct {
		ID    ID `json:"id"`
		Blobs []struct {
			ID     ID     `json:"id"`
			Type   string `json:"type"`
			Offset uint32 `json:"offset"`
			Length uint32 `json:"length"`
			Plain  uint32 `json:"uncompressed_length"`
		} `json:"blobs"`
	} `json:"packs"`
}

// decodeIndex reads an index object. The fault is ErrDamaged.
func decodeIndex(key *Key, stored []byte) ([]packed, error) {
	plain, err := openFile(key, stored)
	if err != nil {
		return nil, err
	}
	var j indexJSON
	if err := json.Unmarshal(plain, &j); err != nil {
		return nil, ErrDamaged.Because(err)
	}
	packs := make([]packed, len(j.Packs))
	for i, p := range j.Packs {
		packs[i] = packed{id: p.ID, blobs: make([]packedBlob, len(p.Blobs))}
		for n, b := range p.Blobs {
			kind := dataBlob
			if b.Type == "tree" {
				kind = treeBlob
			}
			if b.Length < overhead {
				return nil, ErrDamaged.Because(fmt.Errorf("blob %s of %d bytes", b.ID, b.Length))
			}
			packs[i].blobs[n] = packedBlob{id: b.ID, kind: kind, offset: b.Offset, length: b.Length, plain: b.Plain}
		}
	}
	return packs, nil
}

// encodeIndex makes an index object of these packs.
func encodeIndex(key *Key, packs []packed) ([]byte, ID) {
	b := []byte(`{"packs":[`)
	for i, p := range packs {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"id":"%s","blobs":[`, p.id)
		for n, blob := range p.blobs {
			if n > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"id":"%s","type":"%s","offset":%d,"length":%d`, blob.id, blob.kind, blob.offset, blob.length)
			if blob.plain > 0 {
				b = fmt.Appendf(b, `,"uncompressed_length":%d`, blob.plain)
			}
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	b = append(b, "]}"...)
	stored := key.seal(nil, encoder.EncodeAll(b, []byte{2}))
	return stored, ID(sha256.Sum256(stored))
}

// getter reads objects: Objects on the agent's side, Reader on the server's.
type getter interface {
	Get(ctx context.Context, kind Kind, id ID, offset, length int64) (io.ReadCloser, error)
}

// loadIndex reads index objects into a new index. The fault is ErrDamaged.
func loadIndex(ctx context.Context, from getter, key *Key, ids []ID) (*index, error) {
	x := newIndex()
	if _, err := x.load(ctx, from, key, ids); err != nil {
		return nil, err
	}
	return x, nil
}

// load reads index objects, several at a time. It returns those whose packs are
// in the index now, also with an error. The fault is ErrDamaged.
func (x *index) load(ctx context.Context, from getter, key *Key, ids []ID) (read []ID, err error) {
	var mu sync.Mutex
	err = parallel(ctx, 4, len(ids), func(ctx context.Context, i int) error {
		packs, err := fetchIndex(ctx, from, key, ids[i])
		if err != nil {
			return fmt.Errorf("read index %s: %w", ids[i], err)
		}
		for _, p := range packs {
			x.addPack(p)
		}
		mu.Lock()
		defer mu.Unlock()
		read = append(read, ids[i])
		return nil
	})
	return read, err
}

// size is the number of blobs.
func (x *index) size() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.table[dataBlob].n + x.table[treeBlob].n
}

func fetchIndex(ctx context.Context, from getter, key *Key, id ID) ([]packed, error) {
	var packs []packed
	err := twice(func() error {
		stored, err := fetch(ctx, from, KindIndex, id, 0, -1, nil)
		if err != nil {
			return err
		}
		if ID(sha256.Sum256(stored)) != id {
			return ErrDamaged.Because(errors.New("checksum differs"))
		}
		packs, err = decodeIndex(key, stored)
		return err
	})
	return packs, err
}
