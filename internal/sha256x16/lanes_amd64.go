package sha256x16

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/klauspost/cpuid/v2"
)

const (
	width     = 16
	blockSize = sha256.BlockSize
)

// A block of all lanes takes as long as fewest blocks of crypto/sha256.
const fewest = 2

// Lanes are usable where there is AVX-512, and the faster way where there are
// no instructions for SHA-256.
var (
	lanesUsable = cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW)
	lanesHere   = lanesUsable && !cpuid.CPU.Supports(cpuid.SHA)
)

// blocks adds n blocks of each lane to the lane's state: word w of lane i is
// state[w][i], its blocks lie at at[i].
//
//go:noescape
func blocks(state *[8][width]uint32, at *[width]*byte, n int)

// initial is FIPS 180-4, section 5.3.3.
var initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// A lane goes through one message after the other: its whole blocks where they
// lie, then the rest and the padding in end.
type lane struct {
	message int    // -1: none
	rest    []byte // of the message; whole blocks until it is in end
	ending  bool   // rest is end
	end     [2 * blockSize]byte
}

// many hashes in lanes. The longest messages come first, so that all lanes end
// at about the same time; one that would keep the others waiting goes alone.
func many(sums [][sha256.Size]byte, messages [][]byte) {
	order := make([]int, len(messages))
	total := 0
	for i, m := range messages {
		order[i] = i
		total += len(m)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(len(messages[b]), len(messages[a])) })
	for len(order) > 0 && fewest*len(messages[order[0]]) > total {
		i := order[0]
		sums[i] = sha256.Sum256(messages[i])
		order, total = order[1:], total-len(messages[i])
	}
	var lanes [width]lane
	var state [8][width]uint32
	var at [width]*byte
	for i := range lanes {
		lanes[i].message = -1
	}
	for {
		n, some := 0, (*byte)(nil)
		for i := range lanes {
			l := &lanes[i]
			if len(l.rest) == 0 {
				order = l.turn(i, &state, order, sums, messages)
			}
			if l.message < 0 {
				continue
			}
			if some == nil || len(l.rest)/blockSize < n {
				n = len(l.rest) / blockSize
			}
			at[i], some = &l.rest[0], &l.rest[0]
		}
		if some == nil {
			return
		}
		for i := range lanes {
			if lanes[i].message < 0 {
				at[i] = some // an idle lane reads what another reads
			}
		}
		blocks(&state, &at, n)
		for i := range lanes {
			if lanes[i].message >= 0 {
				lanes[i].rest = lanes[i].rest[n*blockSize:]
			}
		}
	}
}

// turn gives a lane that has no blocks left its next ones: the end of its
// message or, when that was hashed, the next message of order, whose rest it
// returns.
func (l *lane) turn(i int, state *[8][width]uint32, order []int, sums [][sha256.Size]byte, messages [][]byte) []int {
	if l.message >= 0 && l.ending {
		for w := range state {
			binary.BigEndian.PutUint32(sums[l.message][4*w:], state[w][i])
		}
		l.message = -1
	}
	if l.message < 0 {
		if len(order) == 0 {
			return nil
		}
		l.message, l.ending = order[0], false
		order = order[1:]
		for w, word := range initial {
			state[w][i] = word
		}
		m := messages[l.message]
		if l.rest = m[:len(m)/blockSize*blockSize]; len(l.rest) > 0 {
			return order
		}
	}
	m := messages[l.message]
	n := copy(l.end[:], m[len(m)/blockSize*blockSize:])
	clear(l.end[n:])
	l.end[n] = 0x80
	l.rest, l.ending = l.end[:blockSize], true
	if n+1+8 > blockSize {
		l.rest = l.end[:]
	}
	binary.BigEndian.PutUint64(l.rest[len(l.rest)-8:], uint64(len(m))*8)
	return order
}
