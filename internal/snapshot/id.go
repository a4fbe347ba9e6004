package snapshot

import (
	"encoding/hex"
	"errors"
)

// An ID is the SHA-256 of what it names: of the stored bytes for an object, of
// the plain bytes for a blob. The zero ID stands for none.
type ID [32]byte

var errID = errors.New("snapshot: not an id of 64 lower-case hex digits")

// ParseID reads an ID from its 64 lower-case hex digits.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, errID
	}
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'F' {
			return ID{}, errID
		}
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, errID
	}
	return id, nil
}

// String returns the 64 hex digits of id.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id stands for none.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText returns the hex digits of id.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// Kind says what an object holds. The values are those of the agent API.
type Kind string

// The kinds of objects that an agent reads and writes.
const (
	KindData  Kind = "data"  // pack of file blobs
	KindTree  Kind = "tree"  // pack of tree blobs
	KindIndex Kind = "index" // index object
)

// MaxObject is the size in bytes that no object of a repository exceeds.
const MaxObject = 64 << 20

// An Object is one stored object of a repository.
type Object struct {
	ID   ID
	Kind Kind
	Size int64 // bytes
}

// ObjectKey is the store's key of an object, in restic's default layout below
// prefix: data/<2 hex>/<id> for packs, index/<id> for indexes.
func ObjectKey(prefix string, kind Kind, id ID) string {
	hex := id.String()
	if kind == KindIndex {
		return join(prefix, "index/"+hex)
	}
	return join(prefix, "data/"+hex[:2]+"/"+hex)
}

// KeyOf is the store's key of a snapshot object.
func KeyOf(prefix string, id ID) string { return join(prefix, "snapshots/"+id.String()) }

func join(prefix, rest string) string {
	if prefix == "" || prefix[len(prefix)-1] == '/' {
		return prefix + rest
	}
	return prefix + "/" + rest
}
