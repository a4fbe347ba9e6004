// Package blob is the contract of the object store that holds every volume's
// data. Objects are immutable: written once, whole, under a name that mostly
// is the hash of their bytes. blob/dir keeps them in a folder that the node
// serves; other stores speak S3.
package blob

import (
	"context"
	"io"
	"net/http"
	"time"

	"homeport.dev/homeport/internal/fault"
)

// Faults of a store.
var (
	// ErrNotFound occurs when no object has that key.
	ErrNotFound = fault.New(fault.NotFound, "object_not_found", "There is no such object.")
	// ErrExists occurs when an object of that key is there already: objects are never overwritten.
	ErrExists = fault.New(fault.Conflict, "object_exists", "The object is there already.")
	// ErrChecksum occurs when the bytes do not have the promised SHA-256 or size.
	ErrChecksum = fault.New(fault.Malformed, "object_checksum", "The object's bytes do not match its checksum.")
	// ErrUnavailable occurs when the store cannot be reached or fails.
	ErrUnavailable = fault.New(fault.Unavailable, "store_unavailable", "The volume store is not available. Please try again.")
)

// Info describes one object.
type Info struct {
	Key  string
	Size int64 // bytes
}

// A Store keeps objects by key. Keys are slash-separated, without "." or ".."
// segments, at most 512 bytes. Every method is safe for concurrent use.
type Store interface {
	// Put writes an object whole and durably. The fault is ErrExists when the
	// key is taken, whatever its bytes are.
	Put(ctx context.Context, key string, body []byte) error
	// Get reads length bytes from offset; a length below 0 means to the end.
	// The faults are ErrNotFound and ErrUnavailable.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Stat returns the object's size. The fault is ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// List calls fn for each object whose key begins with prefix, in key order.
	List(ctx context.Context, prefix string, fn func(Info) error) error
	// Delete removes an object. A store with versions keeps it as an old one,
	// which an operator may bring back. A key that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Purge removes for good all objects whose key begins with prefix, their old
	// versions and whatever else the store keeps of them. It may be called again.
	Purge(ctx context.Context, prefix string) error
}

// A Grant is the right to move one object, to hand to somebody without any
// credential: the agent in a pod.
type Grant struct {
	Method string
	URL    string      // absolute, or a path on the control plane
	Header http.Header // to send exactly so
}

// An Access says what a Grant allows.
type Access struct {
	Key     string
	Put     bool   // write, bound to SHA256 and Size; else read
	SHA256  []byte // of the whole object; for Put only
	Size    int64  // bytes; for Put only
	Expires time.Time
}

// A Signer makes grants without asking the store.
type Signer interface {
	Sign(ctx context.Context, a Access) (Grant, error)
}
