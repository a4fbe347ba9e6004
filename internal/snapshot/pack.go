package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A packed is a pack as an index describes it.
type packed struct {
	id    ID
	size  int64 // 0: not known
	blobs []packedBlob
}

// A packedBlob is one blob in a pack.
type packedBlob struct {
	id     ID
	kind   blobType
	offset uint32
	length uint32 // sealed
	plain  uint32 // 0: not compressed
}

// kind is that of the pack's object: packs hold blobs of one type only.
func (p *packed) kind() Kind {
	if len(p.blobs) > 0 && p.blobs[0].kind == treeBlob {
		return KindTree
	}
	return KindData
}

// Sizes of header entries, in bytes: type, length, [plain length], id.
const (
	headerEntry           = 1 + 4 + 32
	headerEntryCompressed = headerEntry + 4
)

// appendHeader appends the sealed header and its length: the end of a pack.
func appendHeader(key *Key, pack []byte, blobs []packedBlob) []byte {
	plain := make([]byte, 0, len(blobs)*headerEntryCompressed)
	for _, b := range blobs {
		t := byte(b.kind)
		if b.plain > 0 {
			t += 2
		}
		plain = append(plain, t)
		plain = binary.LittleEndian.AppendUint32(plain, b.length)
		if b.plain > 0 {
			plain = binary.LittleEndian.AppendUint32(plain, b.plain)
		}
		plain = append(plain, b.id[:]...)
	}
	n := len(pack)
	pack = key.seal(pack, plain)
	return binary.LittleEndian.AppendUint32(pack, uint32(len(pack)-n))
}

// parseHeader reads the sealed header of a pack. The fault is ErrDamaged.
func parseHeader(key *Key, sealed []byte) ([]packedBlob, error) {
	b, err := key.open(nil, sealed)
	if err != nil {
		return nil, ErrDamaged.Because(err)
	}
	var blobs []packedBlob
	offset := uint32(0)
	for len(b) > 0 {
		p := packedBlob{kind: blobType(b[0] & 1), offset: offset}
		need := headerEntry
		if b[0]&2 != 0 {
			need = headerEntryCompressed
		}
		if b[0] > 3 || len(b) < need {
			return nil, ErrDamaged.Because(errors.New("bad pack header"))
		}
		p.length = binary.LittleEndian.Uint32(b[1:])
		if b[0]&2 != 0 {
			p.plain = binary.LittleEndian.Uint32(b[5:])
		}
		copy(p.id[:], b[need-32:need])
		b = b[need:]
		offset += p.length
		blobs = append(blobs, p)
	}
	return blobs, nil
}

// readPack reads the header of a stored pack. The fault is ErrDamaged.
func readPack(ctx context.Context, from getter, key *Key, o Object) (packed, error) {
	const guess = 32 << 10
	tail, err := fetch(ctx, from, o.Kind, o.ID, max(0, o.Size-guess), min(guess, o.Size), nil)
	if err != nil {
		return packed{}, err
	}
	if len(tail) < 4+overhead {
		return packed{}, ErrDamaged.Because(errors.New("short pack"))
	}
	n := int64(binary.LittleEndian.Uint32(tail[len(tail)-4:]))
	if n+4 > o.Size {
		return packed{}, ErrDamaged.Because(errors.New("bad pack header length"))
	}
	if n+4 > int64(len(tail)) {
		if tail, err = fetch(ctx, from, o.Kind, o.ID, o.Size-n-4, n+4, nil); err != nil {
			return packed{}, err
		}
	}
	if int64(len(tail)) < n+4 {
		return packed{}, ErrDamaged.Because(errors.New("short pack"))
	}
	blobs, err := parseHeader(key, tail[int64(len(tail))-n-4:len(tail)-4])
	return packed{id: o.ID, size: o.Size, blobs: blobs}, err
}

// openBlob appends the plain bytes of a sealed blob to dst, after checking MAC,
// length and SHA-256. scratch is used for the compressed form, and returned to
// be used again. The fault is ErrDamaged.
func openBlob(key *Key, sealed []byte, e *indexed, dst, scratch []byte) (plain, reuse []byte, err error) {
	start := len(dst)
	dst, scratch, err = unsealBlob(key, sealed, e, dst, scratch)
	if err == nil && ID(sha256.Sum256(dst[start:])) != e.id {
		err = ErrDamaged.Because(fmt.Errorf("blob %s: checksum differs", e.id))
	}
	if err != nil {
		return nil, scratch, err
	}
	return dst, scratch, nil
}

// unsealBlob is openBlob without the SHA-256.
func unsealBlob(key *Key, sealed []byte, e *indexed, dst, scratch []byte) (plain, reuse []byte, err error) {
	if len(sealed) != int(e.length) {
		return nil, scratch, ErrDamaged.Because(fmt.Errorf("blob %s has %d bytes of %d", e.id, len(sealed), e.length))
	}
	start := len(dst)
	if e.plain == 0 {
		dst, err = key.open(dst, sealed)
	} else {
		scratch, err = key.open(scratch[:0], sealed)
		if err == nil && e.plain > maxPlain {
			err = errors.New("too large")
		}
		if err == nil {
			dst, err = decoder.DecodeAll(scratch, dst)
		}
	}
	if err == nil && int64(len(dst)-start) != e.size() {
		err = fmt.Errorf("%d bytes of %d", len(dst)-start, e.size())
	}
	if err != nil {
		return nil, scratch, ErrDamaged.Because(fmt.Errorf("blob %s: %w", e.id, err))
	}
	return dst, scratch, nil
}
