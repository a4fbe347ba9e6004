package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A store through a shared mapping moves a file's times only when its page was
// clean. A file that is mapped for writing could thus be read, changed again
// and look the same. So it is flushed before it is read: from then on the
// first store to each page moves its times.

// mappedFiles returns the inodes that some process has mapped shared and
// writable. Numbers of several file systems may meet: that costs a flush.
func mappedFiles() map[uint64]bool {
	mapped := map[uint64]bool{}
	paths, err := filepath.Glob("/proc/[0-9]*/maps")
	if err != nil {
		return mapped
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it ended, or belongs to somebody whose files are not ours
		}
		for line := range bytes.Lines(b) {
			// address perms offset dev inode path
			fields := bytes.Fields(line)
			if len(fields) < 5 || string(fields[1][1:]) != "w-s" && string(fields[1][1:]) != "wxs" {
				continue
			}
			if ino, err := strconv.ParseUint(string(fields[4]), 10, 64); err == nil && ino != 0 {
				mapped[ino] = true
			}
		}
	}
	return mapped
}

// coarseNow is the time that file systems stamp with.
func coarseNow() stamp {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // cannot fail with this clock
	return stamp{sec: now.Sec, ns: now.Nsec}
}

// flush cleans the pages of a file that is mapped for writing, and looks at it
// again. A file that changed after limit may change once more unseen.
func (r *run) flush(fd int, st *fileStat) (limit stamp, err error) {
	r.scan.Do(func() {
		r.scanned = coarseNow()
		r.mapped = mappedFiles()
	})
	if !r.mapped[st.Ino] {
		return r.scanned, nil // it was not mapped then
	}
	limit = coarseNow()
	if err := unix.Fdatasync(fd); err != nil {
		return limit, err
	}
	return limit, unix.Fstat(fd, st)
}

// since reports whether a file changed after t, or so shortly before that its
// times prove nothing.
func since(st *fileStat, t stamp) bool {
	return (st.Ctim.Sec-t.sec)*1e9+st.Ctim.Nsec-t.ns > -settle
}
