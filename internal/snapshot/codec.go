package snapshot

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// encoder and decoder serve all goroutines.
var (
	encoder = newEncoder()
	decoder = newDecoder()
)

// maxPlain is the size in bytes of the largest plain piece that is decoded:
// users make the pieces, and the server must live through them.
const maxPlain = 256 << 20

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPlain))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}

// sealFile makes the stored form of an index or a snapshot, and its name.
func sealFile(key *Key, v any) ([]byte, ID, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, ID{}, fmt.Errorf("encode: %w", err)
	}
	stored := key.seal(nil, encoder.EncodeAll(plain, []byte{2}))
	return stored, ID(sha256.Sum256(stored)), nil
}

// openFile gives the JSON of an index or a snapshot back. The fault is
// ErrDamaged.
func openFile(key *Key, stored []byte) ([]byte, error) {
	plain, err := key.open(nil, stored)
	if err != nil {
		return nil, ErrDamaged.Because(err)
	}
	switch {
	case len(plain) > 0 && plain[0] == 2:
		plain, err = decoder.DecodeAll(plain[1:], nil)
		if err != nil {
			return nil, ErrDamaged.Because(err)
		}
		return plain, nil
	case len(plain) > 0 && (plain[0] == '{' || plain[0] == '['):
		return plain, nil
	}
	return nil, ErrDamaged.Because(errors.New("unknown encoding"))
}
