package snapshot

import "fmt"

// CheckIndex reads an index object that an agent stored and holds it against
// the packs: size tells the stored size in bytes of those it may list, and
// what it says of a pack's blobs must add up to that to the byte. Measure
// believes the indexes, so one that was not checked could hide what is stored.
// The fault is ErrDamaged.
func CheckIndex(key Key, stored []byte, size func(pack ID) (bytes int64, ok bool)) error {
	if !key.usable() {
		return ErrKey
	}
	packs, err := decodeIndex(&key, stored)
	if err != nil {
		return err
	}
	for i := range packs {
		p := &packs[i]
		want, ok := size(p.id)
		if !ok {
			return ErrDamaged.Because(fmt.Errorf("pack %s is not stored", p.id))
		}
		if got, whole := p.extent(); !whole || got != want {
			return ErrDamaged.Because(fmt.Errorf("pack %s of %d bytes is told to have %d", p.id, want, got))
		}
	}
	return nil
}

// extent is the size of a pack as its blobs and its header make it. It is not
// whole when there are gaps, blobs of both types, or a blob
// that is told to be shorter than it can be.
func (p *packed) extent() (size int64, whole bool) {
	header := int64(overhead + 4)
	for _, b := range p.blobs {
		if int64(b.offset) != size || b.kind != p.blobs[0].kind {
			return size, false
		}
		size += int64(b.length)
		header += headerEntry
		if b.plain > 0 {
			header += headerEntryCompressed - headerEntry
			// What zstd makes of n bytes is at most this long: less cannot be in there.
			if plain := int64(b.plain); int64(b.length)-overhead > plain+plain>>8+64 {
				return size, false
			}
		}
	}
	return size + header, true
}

// PacksOf lists the packs that an index object names. The fault is ErrDamaged.
func PacksOf(key Key, stored []byte) ([]ID, error) {
	if !key.usable() {
		return nil, ErrKey
	}
	packs, err := decodeIndex(&key, stored)
	if err != nil {
		return nil, err
	}
	ids := make([]ID, len(packs))
	for i := range packs {
		ids[i] = packs[i].id
	}
	return ids, nil
}
