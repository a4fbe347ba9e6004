package snapshot

import (
	"context"
	"io"
	"time"
)

// Objects is all that the engine needs of the world outside on the agent's
// side. Its methods are called from several goroutines at once, and retry what
// is worth retrying until the context ends.
type Objects interface {
	// Get reads length bytes of an object from offset; a length below 0 means
	// to the end.
	Get(ctx context.Context, kind Kind, id ID, offset, length int64) (io.ReadCloser, error)
	// Put stores an object. Storing the same object again is no error. The
	// body must not be kept after the call.
	Put(ctx context.Context, o Object, body []byte) error
}

// A Head is the committed state of a volume.
type Head struct {
	Snapshot ID
	Tree     ID
	Time     time.Time // the snapshot's own time
}

// Progress of a restore or of a sync.
type Progress struct {
	BytesDone  int64
	BytesTotal int64
	FilesDone  int64
	FilesTotal int64
	ETA        time.Duration // 0 = not known
}
