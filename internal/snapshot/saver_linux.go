package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	treePackSize = 8 << 20
	sampleFrom   = 128 << 10 // blobs from this size on are compressed only if a sample shrinks
	sampleSize   = 32 << 10
)

// errTooBig says that a blob would not fit into any object.
var errTooBig = errors.New("snapshot: blob does not fit into an object")

// A pending list is what is stored and not committed yet.
type pending struct {
	mu      sync.Mutex
	packs   []packed // in no index object yet
	blobs   int      // in packs
	objects []Object
}

func (p *pending) add(pack packed, o Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packs = append(p.packs, pack)
	p.blobs += len(pack.blobs)
	p.objects = append(p.objects, o)
}

// take returns packs for one index object, at most so many blobs unless one
// pack has more. It takes nothing when there are fewer and all is false.
func (p *pending) take(all bool) []packed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.packs) == 0 || !all && p.blobs < maxIndexBlobs {
		return nil
	}
	n, blobs := 0, 0
	for n < len(p.packs) && (n == 0 || blobs+len(p.packs[n].blobs) <= maxIndexBlobs) {
		blobs += len(p.packs[n].blobs)
		n++
	}
	packs := slices.Clone(p.packs[:n])
	p.packs = slices.Delete(p.packs, 0, n)
	p.blobs -= blobs
	return packs
}

// giveBack undoes take.
func (p *pending) giveBack(packs []packed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pack := range packs {
		p.blobs += len(pack.blobs)
	}
	p.packs = append(p.packs, packs...)
}

func (p *pending) addIndex(o Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects = append(p.objects, o)
}

func (p *pending) list() []Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.objects)
}

func (p *pending) remove(committed []Object) {
	gone := make(map[ID]bool, len(committed))
	for _, o := range committed {
		gone[o.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects = slices.DeleteFunc(p.objects, func(o Object) bool { return gone[o.ID] })
}

// A saver stores blobs: it drops those that are there, compresses, seals and
// packs the others, and uploads full packs while it goes on. It serves one
// sync.
type saver struct {
	ctx      context.Context //nolint:containedctx // that of the one sync it serves
	fail     context.CancelCauseFunc
	objects  Objects
	key      *Key
	index    *index
	pending  *pending
	packers  [2]packer // by blobType
	free     chan []byte
	full     chan *openPack
	wg       sync.WaitGroup
	uploaded atomic.Int64 // bytes
	scratch  sync.Pool
}

// A packer fills one pack after the other.
type packer struct {
	mu    sync.Mutex
	limit int
	open  *openPack
}

// An openPack is being filled. Its buffer never moves while blobs are sealed
// into it.
type openPack struct {
	buf     []byte
	blobs   []packedBlob
	sealing sync.WaitGroup
}

func newSaver(ctx context.Context, fail context.CancelCauseFunc, s *Syncer, background bool) *saver {
	v := &saver{
		ctx: ctx, fail: fail, objects: s.o.Objects, key: &s.o.Key, index: s.index, pending: &s.pending,
		free: make(chan []byte, s.o.Limits.Uploads+2), full: make(chan *openPack),
	}
	v.packers[dataBlob].limit = s.o.Limits.PackSize
	v.packers[treeBlob].limit = min(treePackSize, s.o.Limits.PackSize)
	v.scratch.New = func() any { b := make([]byte, 0, 64<<10); return &b }
	for range cap(v.free) {
		v.free <- nil
	}
	for range s.o.Limits.Uploads {
		v.wg.Go(func() {
			giveWay(background)
			for p := range v.full {
				if err := v.upload(p); err != nil {
					v.fail(err)
				}
			}
		})
	}
	return v
}

// save stores a blob unless it is there, and returns its id.
func (v *saver) save(t blobType, plain []byte) (ID, error) {
	id := ID(sha256.Sum256(plain))
	if !v.index.claim(t, id) {
		return id, nil
	}
	return id, v.pack(t, id, plain)
}

var zeros = sync.OnceValue(func() []byte { return make([]byte, maxChunk) })

// saveZeros stores the blob of 1<<exponent zeros.
func (v *saver) saveZeros(exponent int) (ID, error) {
	id := zeroIDs()[exponent]
	if !v.index.claim(dataBlob, id) {
		return id, nil
	}
	return id, v.pack(dataBlob, id, zeros()[:1<<exponent])
}

// pack adds a blob to the open pack of its type.
func (v *saver) pack(t blobType, id ID, plain []byte) error {
	pool := v.scratch.Get().(*[]byte)
	defer v.scratch.Put(pool)
	b := packedBlob{id: id, kind: t}
	text := plain
	if worthCompressing(t, plain, *pool) {
		*pool = encoder.EncodeAll(plain, (*pool)[:0])
		if len(*pool) < len(plain)-len(plain)/50 {
			text, b.plain = *pool, uint32(len(plain))
		}
	}
	if len(text)+overhead+1<<20 > MaxObject {
		v.index.release(t, id)
		return errTooBig
	}
	b.length = uint32(len(text) + overhead)
	return v.add(&v.packers[t], b, text)
}

// worthCompressing looks at a sample from the middle of a large blob.
func worthCompressing(t blobType, plain, scratch []byte) bool {
	if t == treeBlob || len(plain) < sampleFrom {
		return len(plain) > 0
	}
	middle := plain[len(plain)/2:][:sampleSize]
	return len(encoder.EncodeAll(middle, scratch[:0])) < sampleSize-sampleSize/32
}

// add seals a blob into a place that it reserves in the open pack.
func (v *saver) add(p *packer, b packedBlob, text []byte) error {
	p.mu.Lock()
	var full [2]*openPack
	if p.open != nil && len(p.open.buf)+int(b.length) > cap(p.open.buf) {
		full[0], p.open = p.open, nil
	}
	if p.open == nil {
		buf, err := v.buffer(p, int(b.length))
		if err != nil {
			p.mu.Unlock()
			return err
		}
		p.open = &openPack{buf: buf}
	}
	mine, start := p.open, len(p.open.buf)
	b.offset = uint32(start)
	mine.buf = mine.buf[:start+int(b.length)]
	place := mine.buf[start:start:len(mine.buf)]
	mine.blobs = append(mine.blobs, b)
	mine.sealing.Add(1)
	if len(mine.buf) >= p.limit {
		full[1], p.open = mine, nil
	}
	p.mu.Unlock()
	v.key.seal(place, text)
	mine.sealing.Done()
	for _, f := range full {
		if err := v.send(f); err != nil {
			return err
		}
	}
	return nil
}

// buffer waits for an empty pack buffer that has room for a blob.
func (v *saver) buffer(p *packer, blob int) ([]byte, error) {
	select {
	case buf := <-v.free:
		if need := max(p.limit+p.limit/4, blob); cap(buf) < need {
			buf = make([]byte, 0, need+64<<10)
		}
		return buf[:0], nil
	case <-v.ctx.Done():
		return nil, context.Cause(v.ctx)
	}
}

func (v *saver) send(p *openPack) error {
	if p == nil {
		return nil
	}
	p.sealing.Wait()
	select {
	case v.full <- p:
		return nil
	case <-v.ctx.Done():
		return context.Cause(v.ctx)
	}
}

func (v *saver) upload(p *openPack) error {
	body := appendHeader(v.key, p.buf, p.blobs)
	pack := packed{id: sha256.Sum256(body), size: int64(len(body)), blobs: p.blobs}
	o := Object{ID: pack.id, Kind: pack.kind(), Size: pack.size}
	if err := v.objects.Put(v.ctx, o, body); err != nil {
		return fmt.Errorf("upload pack %s: %w", o.ID, err)
	}
	v.index.addPack(pack)
	v.pending.add(pack, o)
	v.uploaded.Add(pack.size)
	if cap(body) > MaxObject/2 {
		body = nil // an outsized one is not kept
	}
	v.free <- body // has room for every buffer there is
	return v.saveIndex(false)
}

// saveIndex writes index objects of the packs that are in none; of few packs
// only when all is said.
func (v *saver) saveIndex(all bool) error {
	for {
		packs := v.pending.take(all)
		if packs == nil {
			return nil
		}
		body, id := encodeIndex(v.key, packs)
		o := Object{ID: id, Kind: KindIndex, Size: int64(len(body))}
		if err := v.objects.Put(v.ctx, o, body); err != nil {
			v.pending.giveBack(packs)
			return fmt.Errorf("upload index %s: %w", id, err)
		}
		v.pending.addIndex(o)
		v.uploaded.Add(o.Size)
	}
}

// finish uploads what is left. With an error before, it only ends the uploads
// and forgets the blobs that did not make it.
func (v *saver) finish(err error) error {
	for t := range v.packers {
		if err == nil {
			err = v.send(v.packers[t].open)
		}
	}
	close(v.full)
	v.wg.Wait()
	if err == nil {
		err = context.Cause(v.ctx)
	}
	if err == nil {
		err = v.saveIndex(true)
	}
	if err != nil {
		v.index.abandon()
	}
	return err
}
