// Package dir keeps objects as files below one folder: the store of an
// installation without an S3 service, on one node. It signs grants for itself
// and serves them with S3's semantics (Handler).
//
// What always holds: a file that bears an object's name is whole, durable and
// never changes; a grant allows one method on one key until it expires, and a
// write only of the bytes whose SHA-256 and size it names.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// tmpDir holds files that are being written. No key reaches it, for no segment
// of a key begins with a dot.
const tmpDir = ".tmp"

// tmpAge is the age after which a file in tmpDir is surely abandoned.
const tmpAge = time.Hour

// A Store keeps objects below a folder. It is safe for concurrent use.
type Store struct {
	root    string
	secrets atomic.Pointer[[][]byte] // the first signs, any proves
	wall    func() time.Time
}

// New returns the store in the folder root, which it creates. secret keys the
// grants: with the same one, grants outlive a restart. wall is the wall clock.
func New(root string, secret []byte, wall func() time.Time) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if len(secret) < 16 {
		return nil, errors.New("open store: the signing secret is shorter than 16 bytes")
	}
	s := &Store{root: root, wall: wall}
	s.Use([][]byte{slices.Clone(secret)})
	if err := os.MkdirAll(filepath.Join(root, tmpDir), 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.sweep()
	return s, nil
}

// Use makes the store sign with the first of some secrets from now on and honour
// grants under any of them.
func (s *Store) Use(secrets [][]byte) { s.secrets.Store(&secrets) }

// sweep removes what interrupted writes left behind.
func (s *Store) sweep() {
	entries, err := os.ReadDir(filepath.Join(s.root, tmpDir))
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && s.wall().Sub(info.ModTime()) > tmpAge {
			_ = os.Remove(filepath.Join(s.root, tmpDir, e.Name()))
		}
	}
}

// Path returns the absolute folder of the objects whose keys begin with prefix
// and a slash: for reading them with restic when all else is gone.
func (s *Store) Path(prefix string) string {
	return filepath.Join(s.root, filepath.FromSlash(strings.Trim(prefix, "/")))
}

// checkKey refuses keys that are not names of files below the root.
func checkKey(key string) error {
	if key == "" || len(key) > 512 {
		return fmt.Errorf("store: bad key %q", key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment[0] == '.' || len(segment) > 255 || strings.ContainsAny(segment, "\x00\\") {
			return fmt.Errorf("store: bad key %q", key)
		}
	}
	return nil
}

func (s *Store) file(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

// Put writes an object whole and durably. The fault is ErrExists.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Lstat(s.file(key)); err == nil {
		return blob.ErrExists
	}
	tmp, err := s.create()
	if err != nil {
		return err
	}
	defer tmp.discard()
	if _, err := tmp.file.Write(body); err != nil {
		return unavailable("write", key, err)
	}
	return s.publish(tmp, key)
}

// A temp is a file on its way to become an object.
type temp struct{ file *os.File }

func (s *Store) create() (temp, error) {
	f, err := os.CreateTemp(filepath.Join(s.root, tmpDir), "put-*")
	if err != nil {
		return temp{}, unavailable("create", "a temporary file", err)
	}
	return temp{file: f}, nil
}

func (t temp) discard() {
	_ = t.file.Close()
	_ = os.Remove(t.file.Name())
}

// publish gives the file its key, in one step that fails if the key is taken,
// and returns when both the bytes and the name are durable.
func (s *Store) publish(t temp, key string) error {
	if err := t.file.Sync(); err != nil {
		return unavailable("flush", key, err)
	}
	path := s.file(key)
	for attempt := 0; ; attempt++ {
		if err := s.makeDir(filepath.Dir(path)); err != nil {
			return unavailable("create folder of", key, err)
		}
		err := os.Link(t.file.Name(), path)
		if errors.Is(err, fs.ErrExist) {
			return blob.ErrExists
		}
		if errors.Is(err, fs.ErrNotExist) && attempt < 10 {
			continue // a Delete took the empty folder away
		}
		if err != nil {
			return unavailable("publish", key, err)
		}
		break
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return unavailable("flush folder of", key, err)
	}
	return nil
}

// makeDir creates a folder and makes its name, and those above it, durable.
func (s *Store) makeDir(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if path != s.root {
		if err := s.makeDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Get reads an object. The faults are ErrNotFound and ErrUnavailable.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.open(key)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, unavailable("seek in", key, err)
	}
	if length < 0 {
		return f, nil
	}
	return limited{Reader: io.LimitReader(f, length), Closer: f}, nil
}

type limited struct {
	io.Reader
	io.Closer
}

func (s *Store) open(key string) (*os.File, error) {
	f, err := os.Open(s.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, unavailable("open", key, err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, blob.ErrNotFound
	}
	return f, nil
}

// Stat returns the object's size. The fault is ErrNotFound.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := checkKey(key); err != nil {
		return blob.Info{}, err
	}
	info, err := os.Lstat(s.file(key))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return blob.Info{}, blob.ErrNotFound
	}
	if err != nil {
		return blob.Info{}, unavailable("stat", key, err)
	}
	return blob.Info{Key: key, Size: info.Size()}, ctx.Err()
}

// List calls fn for each object whose key begins with prefix, in key order.
func (s *Store) List(ctx context.Context, prefix string, fn func(blob.Info) error) error {
	start := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = prefix[:i+1]
		if err := checkKey(prefix[:i]); err != nil {
			return err
		}
	}
	return s.list(ctx, start, prefix, fn)
}

// list visits the folder at, "" or ending in a slash.
func (s *Store) list(ctx context.Context, at, prefix string, fn func(blob.Info) error) error {
	entries, err := os.ReadDir(s.file(at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable("list", at, err)
	}
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		key := at + e.Name()
		if e.IsDir() {
			key += "/" // sorts as the keys below it do
		}
		if e.Name()[0] != '.' && (strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasSuffix(key, "/") {
			if err := s.list(ctx, key, prefix, fn); err != nil {
				return err
			}
			continue
		}
		info, err := s.Stat(ctx, key)
		if errors.Is(err, blob.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes an object, and the folders it leaves empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	path := s.file(key)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable("delete", key, err)
	}
	d := filepath.Dir(path)
	for d != s.root && os.Remove(d) == nil { // one that is not empty stays
		d = filepath.Dir(d)
	}
	return nil
}

// Purge removes all objects whose key begins with prefix.
func (s *Store) Purge(ctx context.Context, prefix string) error {
	var keys []string
	err := s.List(ctx, prefix, func(i blob.Info) error {
		keys = append(keys, i.Key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func unavailable(verb, key string, err error) error {
	return blob.ErrUnavailable.Because(fmt.Errorf("%s %s: %w", verb, key, err))
}
