package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// A Usage is how much of a pack is still needed.
type Usage struct {
	Pack  ID
	Kind  Kind
	Live  int64 // bytes of blobs that a snapshot needs
	Total int64 // bytes of all blobs
}

// Usages walks the trees of all snapshots that are kept, whose root trees are
// roots, and tells for each pack of the indexes how much of it they need. The
// faults are ErrDamaged, when something needed is in no index, and ErrTooLarge.
func Usages(ctx context.Context, src Reader, key Key, roots []ID) ([]Usage, error) {
	v, err := openVolume(ctx, src, key)
	if err != nil {
		return nil, err
	}
	live, err := v.mark(ctx, roots)
	if err != nil {
		return nil, fmt.Errorf("find what is used: %w", err)
	}
	usages := make([]Usage, len(v.index.packs))
	for i, id := range v.index.packs {
		usages[i] = Usage{Pack: id, Kind: KindData}
	}
	for t := range v.index.table {
		table := &v.index.table[t]
		for pos := range uint32(table.n) {
			b := table.at(pos)
			if b.pack >= packMax {
				continue
			}
			u := &usages[b.pack]
			if blobType(t) == treeBlob {
				u.Kind = KindTree
			}
			u.Total += int64(b.length)
			if live[t][pos] {
				u.Live += int64(b.length)
			}
		}
	}
	return usages, nil
}

// Fitting says how many of the snapshots, from the first root on, need no more
// than so many bytes together, as stored; the first always fits. The faults are
// those of Usages.
func Fitting(ctx context.Context, src Reader, key Key, roots []ID, most int64) (int, error) {
	v, err := openVolume(ctx, src, key)
	if err != nil {
		return 0, err
	}
	all := int64(0)
	for t := range v.index.table {
		table := &v.index.table[t]
		for pos := range uint32(table.n) {
			all += int64(table.at(pos).length)
		}
	}
	if all <= most { // without a look at the trees
		return len(roots), nil
	}
	live, needed := v.unmarked(), int64(0)
	for i := range roots {
		n, err := v.markMore(ctx, live, roots[i:i+1])
		if err != nil {
			return 0, fmt.Errorf("weigh snapshots: %w", err)
		}
		if needed += n; needed > most {
			return max(i, 1), nil
		}
	}
	return len(roots), nil
}

// unmarked is what mark begins with.
func (v *volumeReader) unmarked() (live [2][]bool) {
	for t := range live {
		live[t] = make([]bool, v.index.table[t].n)
	}
	return live
}

// mark finds the blobs that the trees need, by type and position.
func (v *volumeReader) mark(ctx context.Context, roots []ID) (live [2][]bool, err error) {
	live = v.unmarked()
	_, err = v.markMore(ctx, live, roots)
	return live, err
}

// markMore marks the blobs that further trees need, and returns the bytes of
// those that were not marked before.
func (v *volumeReader) markMore(ctx context.Context, live [2][]bool, roots []ID) (fresh int64, err error) {
	todo := slices.Clone(roots)
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		pos, ok := v.index.table[treeBlob].find(id)
		if !ok {
			return fresh, ErrDamaged.Because(fmt.Errorf("tree %s is in no index", id))
		}
		if live[treeBlob][pos] {
			continue
		}
		live[treeBlob][pos] = true
		fresh += int64(v.index.table[treeBlob].at(pos).length)
		entries, err := v.trees.read(ctx, id)
		if err != nil {
			return fresh, err
		}
		for i := range entries {
			e := &entries[i]
			if e.isDir() {
				todo = append(todo, e.blob(0))
				continue
			}
			for n := range e.blobs() {
				pos, ok := v.index.table[dataBlob].find(e.blob(n))
				if !ok {
					return fresh, ErrDamaged.Because(fmt.Errorf("blob %s is in no index", e.blob(n)))
				}
				if !live[dataBlob][pos] {
					live[dataBlob][pos] = true
					fresh += int64(v.index.table[dataBlob].at(pos).length)
				}
			}
		}
		if len(todo) > maxEntries {
			return fresh, ErrTooLarge
		}
	}
	return fresh, nil
}

// A Repacked is a smaller form of a volume, stored beside the old one: when
// Indexes have taken the place of all indexes before, the packs of drop are
// needed by nothing.
type Repacked struct {
	Packs   []Object // new
	Indexes []Object // new; they list the new packs and those that stay
}

// Repack copies what the kept snapshots need of the packs in drop into new
// packs, and writes indexes without drop. Blobs are copied as they are, after
// their proof; put stores an object and may be called with one that exists.
// The fault is ErrDamaged.
func Repack(ctx context.Context, src Reader, key Key, roots, drop []ID, put func(ctx context.Context, o Object, body []byte) error) (Repacked, error) {
	v, err := openVolume(ctx, src, key)
	if err != nil {
		return Repacked{}, err
	}
	live, err := v.mark(ctx, roots)
	if err != nil {
		return Repacked{}, fmt.Errorf("repack: %w", err)
	}
	p := &repacking{volumeReader: v, put: put, drop: map[ID]bool{}}
	for _, id := range drop {
		p.drop[id] = true
	}
	if err := p.copyAll(ctx, live); err != nil {
		return Repacked{}, fmt.Errorf("repack: %w", err)
	}
	if err := p.writeIndexes(ctx); err != nil {
		return Repacked{}, fmt.Errorf("repack: %w", err)
	}
	return p.result, nil
}

// A repacking is one Repack on its way.
type repacking struct {
	*volumeReader
	put    func(ctx context.Context, o Object, body []byte) error
	drop   map[ID]bool
	result Repacked
	packs  []packed // that the new indexes list
	buf    []byte
	blobs  []packedBlob
}

// copyAll sorts the blobs by pack: those of packs that stay are listed, the
// live ones of the others copied.
func (p *repacking) copyAll(ctx context.Context, live [2][]bool) error {
	byPack := make([][]packedBlob, len(p.index.packs))
	for t := range p.index.table {
		table := &p.index.table[t]
		for pos := range uint32(table.n) {
			b := table.at(pos)
			if b.pack >= packMax || p.drop[p.index.packs[b.pack]] && !live[t][pos] {
				continue
			}
			byPack[b.pack] = append(byPack[b.pack], packedBlob{id: b.id, kind: blobType(t), offset: b.offset, length: b.length, plain: b.plain})
		}
	}
	for _, t := range []blobType{dataBlob, treeBlob} { // packs hold one type only
		for n, blobs := range byPack {
			slices.SortFunc(blobs, func(a, b packedBlob) int { return int(int64(a.offset) - int64(b.offset)) })
			if len(blobs) == 0 || blobs[0].kind != t {
				continue
			}
			if id := p.index.packs[n]; !p.drop[id] {
				p.packs = append(p.packs, packed{id: id, blobs: blobs})
				continue
			}
			if err := p.copyPack(ctx, p.index.packs[n], blobs); err != nil {
				return err
			}
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// copyPack copies blobs of one pack, sorted by offset.
func (p *repacking) copyPack(ctx context.Context, id ID, blobs []packedBlob) error {
	from, last := int64(blobs[0].offset), blobs[len(blobs)-1]
	length := int64(last.offset) + int64(last.length) - from
	kind := KindData
	if last.kind == treeBlob {
		kind = KindTree
	}
	body, err := fetch(ctx, p.src, kind, id, from, length, nil)
	if err != nil {
		return err
	}
	for _, b := range blobs {
		at := int64(b.offset) - from
		if at+int64(b.length) > int64(len(body)) {
			return ErrDamaged.Because(errors.New("blobs overlap the end of their pack"))
		}
		sealed := body[at : at+int64(b.length)]
		proof := indexed{id: b.id, length: b.length, plain: b.plain}
		if _, _, err := openBlob(p.key, sealed, &proof, nil, nil); err != nil {
			return fmt.Errorf("pack %s: %w", id, err)
		}
		b.offset = uint32(len(p.buf))
		p.buf, p.blobs = append(p.buf, sealed...), append(p.blobs, b)
		if len(p.buf) >= 16<<20 {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush stores the open pack.
func (p *repacking) flush(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	body := appendHeader(p.key, p.buf, p.blobs)
	pack := packed{id: sha256.Sum256(body), size: int64(len(body)), blobs: p.blobs}
	o := Object{ID: pack.id, Kind: pack.kind(), Size: pack.size}
	if err := p.put(ctx, o, body); err != nil {
		return fmt.Errorf("store pack %s: %w", o.ID, err)
	}
	p.packs = append(p.packs, pack)
	p.result.Packs = append(p.result.Packs, o)
	p.buf, p.blobs = body[:0], nil
	return nil
}

// writeIndexes stores indexes of all packs that are listed.
func (p *repacking) writeIndexes(ctx context.Context) error {
	for len(p.packs) > 0 {
		n, blobs := 0, 0
		for n < len(p.packs) && (n == 0 || blobs+len(p.packs[n].blobs) <= maxIndexBlobs) {
			blobs += len(p.packs[n].blobs)
			n++
		}
		body, id := encodeIndex(p.key, p.packs[:n])
		p.packs = p.packs[n:]
		o := Object{ID: id, Kind: KindIndex, Size: int64(len(body))}
		if err := p.put(ctx, o, body); err != nil {
			return fmt.Errorf("store index %s: %w", id, err)
		}
		p.result.Indexes = append(p.result.Indexes, o)
	}
	return nil
}

// Uses reports whether a snapshot with this root tree needs one of the packs,
// or cannot be read to the end. The error is never ErrDamaged.
func Uses(ctx context.Context, src Reader, key Key, root ID, packs []ID) (bool, error) {
	v, err := openVolume(ctx, src, key)
	if errors.Is(err, ErrDamaged) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	live, err := v.mark(ctx, []ID{root})
	if errors.Is(err, ErrDamaged) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find what is used: %w", err)
	}
	for t := range v.index.table {
		table := &v.index.table[t]
		for pos := range uint32(table.n) {
			if b := table.at(pos); b.pack < packMax && live[t][pos] && slices.Contains(packs, v.index.packs[b.pack]) {
				return true, nil
			}
		}
	}
	return false, nil
}
