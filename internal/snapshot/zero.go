package snapshot

import (
	"crypto/sha256"
	"math/bits"
	"sync"
)

// maxChunk is the size in bytes of the largest blob of a file, save for files
// that fit into one.
const maxChunk = 4 << 20

// Holes are cut into blobs of zeros whose lengths are powers of two, so that
// only these few ids exist: the server tells holes by them.
const zeroSizes = 23 // 1 byte to maxChunk

// zeroIDs are the ids of the blobs of 1<<i zeros.
var zeroIDs = sync.OnceValue(func() [zeroSizes]ID {
	var ids [zeroSizes]ID
	zeros := make([]byte, maxChunk)
	for i := range ids {
		ids[i] = sha256.Sum256(zeros[:1<<i])
	}
	return ids
})

// zeroLengths is zeroIDs turned round.
var zeroLengths = sync.OnceValue(func() map[ID]int64 {
	lengths := make(map[ID]int64, zeroSizes)
	for i, id := range zeroIDs() {
		lengths[id] = 1 << i
	}
	return lengths
})

// isZero reports whether a blob is one of those that holes are made of.
func isZero(id ID) bool {
	_, ok := zeroLengths()[id]
	return ok
}

// holeBytes is how many of the bytes of these ids are holes.
func holeBytes(content []byte) int64 {
	var n int64
	lengths := zeroLengths()
	for len(content) > 0 {
		n += lengths[ID(content[:len(ID{})])]
		content = content[len(ID{}):]
	}
	return n
}

// nextZero is the exponent of the first blob of a hole of n bytes, n > 0.
func nextZero(n int64) int { return min(bits.Len64(uint64(n))-1, zeroSizes-1) }
