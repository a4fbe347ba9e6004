package sha256x16

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
)

// check compares every way there is with crypto/sha256.
func check(t *testing.T, messages [][]byte) {
	t.Helper()
	ways := map[string]func([][sha256.Size]byte, [][]byte){"Sums": Sums, "one": one}
	if lanesUsable {
		ways["many"] = many
	}
	for name, way := range ways {
		sums := make([][sha256.Size]byte, len(messages))
		way(sums, messages)
		for i, m := range messages {
			if want := sha256.Sum256(m); sums[i] != want {
				t.Fatalf("%s: message %d of %d, %d bytes: %x, want %x", name, i, len(messages), len(m), sums[i], want)
			}
		}
	}
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestSumsOfEveryLength: each length around the block's edges, in every lane,
// beside messages of other lengths.
func TestSumsOfEveryLength(t *testing.T) {
	if !lanesUsable {
		t.Log("this CPU has no AVX-512: the lanes did not run")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 3*64 + 2 {
		messages := make([][]byte, 33)
		for i := range messages {
			messages[i] = random(rng, n+i%3*i)
		}
		check(t, messages)
	}
}

// TestSumsOfAnyCount: from none to more than two rounds of all lanes, of equal
// and of wildly different lengths, empty ones among them.
func TestSumsOfAnyCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for count := range 40 {
		equal, mixed := make([][]byte, count), make([][]byte, count)
		for i := range count {
			equal[i] = random(rng, 1000)
			mixed[i] = random(rng, rng.IntN(1<<rng.IntN(17)))
		}
		check(t, equal)
		check(t, mixed)
	}
}

// TestSumsLeaveMessagesAndOtherSumsAlone: messages may share memory, and sums
// beyond the messages stay.
func TestSumsLeaveMessagesAndOtherSumsAlone(t *testing.T) {
	arena := random(rand.New(rand.NewPCG(5, 6)), 1<<16)
	before := sha256.Sum256(arena)
	var messages [][]byte
	for i := range 20 {
		messages = append(messages, arena[i*7:i*7+3000])
	}
	sums := make([][sha256.Size]byte, len(messages)+1)
	sums[len(messages)] = [sha256.Size]byte{1, 2, 3}
	Sums(sums, messages)
	if sums[len(messages)] != [sha256.Size]byte{1, 2, 3} {
		t.Error("a sum was written that no message has")
	}
	if sha256.Sum256(arena) != before {
		t.Error("the messages were changed")
	}
	check(t, messages)
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("abc"), uint64(7))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var messages [][]byte
		for range rng.IntN(40) {
			from := rng.IntN(len(b) + 1)
			messages = append(messages, b[from:from+rng.IntN(len(b)-from+1)])
		}
		check(t, messages)
	})
}

func BenchmarkSums(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ count, size int }{{16, 1 << 10}, {16, 7 << 10}, {16, 64 << 10}, {8, 1 << 20}, {4, 1 << 20}, {3, 7 << 10}} {
		messages := make([][]byte, c.count)
		for i := range messages {
			messages[i] = random(rng, c.size)
		}
		sums := make([][sha256.Size]byte, c.count)
		for name, way := range map[string]func([][sha256.Size]byte, [][]byte){"lanes": Sums, "crypto": one} {
			b.Run(fmt.Sprintf("%dx%d/%s", c.count, c.size, name), func(b *testing.B) {
				b.SetBytes(int64(c.count * c.size))
				for b.Loop() {
					way(sums, messages)
				}
			})
		}
	}
}
