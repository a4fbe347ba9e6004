package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The state file remembers the folders of the last sync, so that a syncer that
// starts again reads only what changed since. Losing it costs time, not data;
// what it claims to be stored is looked up in the index.
const (
	stateFile  = "state"
	stateMagic = "homeport state 1\n"
)

// appendFolder appends a folder and those below it.
func appendFolder(b []byte, f *folder) []byte {
	b = appendBytes(b, f.records)
	b = binary.AppendVarint(b, f.bytes)
	b = binary.AppendVarint(b, f.entries)
	for _, kid := range f.kids {
		b = appendFolder(b, kid)
	}
	return b
}

// readFolder reads what appendFolder wrote. depth bounds the recursion.
func readFolder(r *recordReader, depth int) *folder {
	f := &folder{records: r.bytes(), bytes: r.int(), entries: r.int()}
	if r.broken || depth > maxDepth+2 {
		r.fail()
		return f
	}
	var e entry
	records := recordReader{b: f.records}
	for records.next(&e) != nil {
		if e.isDir() {
			f.kids = append(f.kids, readFolder(r, depth+1))
		}
	}
	if records.broken {
		r.fail()
	}
	return f
}

// stateTag ties a state to the volume it is of.
func stateTag(key *Key) [32]byte {
	return sha256.Sum256(append([]byte("homeport state of "), key.macK[:]...))
}

// writeState writes a state file whole or not at all.
func writeState(dir string, key *Key, top *folder, tree ID) error {
	tag := stateTag(key)
	b := append([]byte(stateMagic), tag[:]...)
	b = append(b, tree[:]...)
	b = appendFolder(b, top)
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	return writeWhole(filepath.Join(dir, stateFile), b)
}

// writeWhole replaces a file in one step.
func writeWhole(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readState reads a state file; nil when there is none of this volume that is
// whole.
func readState(dir string, key *Key) (*folder, ID, error) {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ID{}, nil
	}
	if err != nil {
		return nil, ID{}, fmt.Errorf("read state: %w", err)
	}
	tag := stateTag(key)
	head := append([]byte(stateMagic), tag[:]...)
	if len(b) < len(head)+2*len(ID{}) || !bytes.HasPrefix(b, head) {
		return nil, ID{}, nil
	}
	body, sum := b[:len(b)-32], b[len(b)-32:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, ID{}, nil
	}
	tree := ID(body[len(head):])
	r := recordReader{b: body[len(head)+len(tree):]}
	top := readFolder(&r, 0)
	if r.broken || len(r.b) > 0 {
		return nil, ID{}, nil
	}
	return top, tree, nil
}

// load reads the state the first time it is needed.
func (s *Syncer) load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil {
		return nil
	}
	top, tree, err := readState(s.o.State, &s.o.Key)
	if err != nil {
		return err
	}
	if top == nil || !s.known(top) {
		top, tree = &folder{}, ID{}
	}
	s.state, s.tree = top, tree
	return nil
}

// known reports whether all that a folder refers to is in a pack.
func (s *Syncer) known(f *folder) bool {
	var e entry
	for r := (recordReader{b: f.records}); r.next(&e) != nil; {
		t := dataBlob
		if e.isDir() {
			t = treeBlob
		}
		for i := range e.blobs() {
			if !s.index.has(t, e.blob(i)) {
				return false
			}
		}
	}
	for _, kid := range f.kids {
		if !s.known(kid) {
			return false
		}
	}
	return true
}

// saveNowAndThen writes the state, but spends no more than a twentieth of the
// time with it.
func (s *Syncer) saveNowAndThen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	if !s.unsaved || s.saveCost > 0 && now.Sub(s.lastSave) < 20*s.saveCost {
		return
	}
	s.save()
}

// save writes the state. A failure only costs time later. The caller holds
// s.mu.
func (s *Syncer) save() {
	start := s.o.Now()
	if err := writeState(s.o.State, &s.o.Key, s.state, s.tree); err != nil {
		return
	}
	s.unsaved = false
	s.lastSave = s.o.Now()
	s.saveCost = s.lastSave.Sub(start)
}

// Close writes the state down for a syncer that starts later.
func (s *Syncer) Close() {
	s.run.Lock()
	defer s.run.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil && s.unsaved {
		s.save()
	}
}
