package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// journalFile lists the packs that a restore has written out. It counts only
// for the same tree, in the same folder, since the machine last started: what
// was written before that may not have reached the disk. So it is never synced
// to the disk itself: a killed process leaves all that it wrote to the kernel,
// and each sync would wait for the new files of the whole file system.
const journalFile = "restore"

type journal struct {
	resumed bool // an earlier restore of the same began
	file    *os.File

	mu   sync.Mutex
	done map[ID]bool
}

// openJournal goes on with the journal of a restore that was cut off, or
// begins a new one.
func openJournal(state, root string, tree ID) (*journal, error) {
	tag, err := journalTag(root, tree)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	path := filepath.Join(state, journalFile)
	j := &journal{done: map[ID]bool{}}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if bytes.HasPrefix(b, tag[:]) {
		j.resumed = true
		for b = b[len(tag):]; len(b) >= len(ID{}); b = b[len(ID{}):] {
			j.done[ID(b[:len(ID{})])] = true
		}
		// What is left of b is a torn entry.
		if j.file, err = os.OpenFile(path, os.O_WRONLY, 0o600); err == nil {
			_, err = j.file.Seek(-int64(len(b)), 2)
		}
	} else if j.file, err = os.Create(path); err == nil {
		_, err = j.file.Write(tag[:])
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// journalTag names one restore.
func journalTag(root string, tree ID) ([32]byte, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [32]byte{}, fmt.Errorf("open journal: %w", err)
	}
	var st fileStat
	if err := unix.Stat(root, &st); err != nil {
		return [32]byte{}, fmt.Errorf("open journal: %w", err)
	}
	return sha256.Sum256(fmt.Appendf(nil, "homeport restore %s %d %d %s", tree, st.Dev, st.Ino, boot)), nil
}

func (j *journal) has(pack ID) bool { return j.done[pack] }

// add enters a pack whose bytes are all written.
func (j *journal) add(pack ID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(pack[:]); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func (j *journal) close() {
	if j != nil {
		_ = j.file.Close()
	}
}

// remove ends the journal of a restore that is done.
func (j *journal) remove() error { return os.Remove(j.file.Name()) }
