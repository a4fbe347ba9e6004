// Package sha256x16 is the SHA-256 of many messages at once: sixteen run side
// by side in the lanes of AVX-512 (S. Gueron, V. Krasnov: Simultaneous Hashing
// of Multiple Messages, 2012).
//
// It is code of our own because much of the CPU time of a restore is proof of
// small blobs, Intel's hosts before Ice Lake have AVX-512 and no instructions
// for SHA-256, and the one library for it is no longer kept and half as fast
// (docs/adr/0028-many-small-files-are-hashed-in-lanes.md). Elsewhere crypto/sha256 does the work.
package sha256x16

import "crypto/sha256"

// Sums sets sums[i] to the SHA-256 of messages[i], for all of messages. It is
// the faster the more messages of like length there are; from sixteen on, all
// lanes are used.
func Sums(sums [][sha256.Size]byte, messages [][]byte) {
	sums = sums[:len(messages)]
	if !lanesHere || len(messages) < fewest {
		one(sums, messages)
		return
	}
	many(sums, messages)
}

func one(sums [][sha256.Size]byte, messages [][]byte) {
	for i, m := range messages {
		sums[i] = sha256.Sum256(m)
	}
}
