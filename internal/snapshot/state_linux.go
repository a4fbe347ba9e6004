package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// writeFolder writes a folder and those below it. buf is for what it makes.
func writeFolder(w *bufio.Writer, f *folder, buf []byte) error {
	buf = binary.AppendUvarint(buf[:0], uint64(len(f.records)))
	if _, err := w.Write(buf); err != nil {
		return err
	}
	if _, err := w.Write(f.records); err != nil {
		return err
	}
	buf = binary.AppendVarint(buf[:0], f.bytes)
	if _, err := w.Write(binary.AppendVarint(buf, f.entries)); err != nil {
		return err
	}
	for _, kid := range f.kids {
		if err := writeFolder(w, kid, buf); err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads what writeFolder wrote. depth bounds the recursion.
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

// writeState replaces the state file in one step.
func writeState(dir string, key *Key, top *folder, tree ID) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	f, err := os.CreateTemp(dir, ".state-*")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	defer os.Remove(f.Name())
	err = errors.Join(writeStateTo(f, key, top, tree), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, stateFile))
	}
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// writeStateTo writes a state and its checksum.
func writeStateTo(f io.Writer, key *Key, top *folder, tree ID) error {
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 256<<10)
	tag := stateTag(key)
	for _, b := range [][]byte{[]byte(stateMagic), tag[:], tree[:]} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := writeFolder(w, top, make([]byte, 0, 64)); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := f.Write(sum.Sum(nil))
	return err
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
