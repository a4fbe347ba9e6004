package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// finish adds the further names of files, gives folders their owners, modes
// and times, the deepest first, and learns what the syncer is to remember.
func (r *restorer) finish() error {
	for _, o := range r.others {
		if err := r.link(o); err != nil {
			return fmt.Errorf("link %q: %w", o.name, err)
		}
	}
	root, err := r.dirs.open(r.root)
	if err != nil {
		return err
	}
	defer root.release()
	if err := r.finishDir(r.root, root.fd); err != nil {
		return err
	}
	if err := r.stampDir(r.root, root.fd); err != nil {
		return err
	}
	var st fileStat
	if err := unix.Fstat(root.fd, &st); err != nil {
		return err
	}
	e := r.root.meta
	e.setStat(&st)
	f := r.root.folder
	r.top = &folder{records: appendEntry(nil, &e), kids: []*folder{f}, bytes: f.bytes, entries: f.entries + 1}
	return nil
}

func (r *restorer) link(o otherName) error {
	f := &r.files[o.file]
	e := f.entry()
	from, err := r.dirs.open(f.dir)
	if err != nil {
		return err
	}
	defer from.release()
	to, err := r.dirs.open(o.dir)
	if err != nil {
		return err
	}
	defer to.release()
	return unix.Linkat(from.fd, string(e.name), to.fd, string(o.name), 0)
}

// finishDir completes the folders below an open one, and its records.
func (r *restorer) finishDir(d *rdir, fd int) error {
	for _, kid := range d.kids {
		if err := r.finishKid(kid, fd); err != nil {
			return fmt.Errorf("%q: %w", kid.meta.name, err)
		}
		d.folder.kids = append(d.folder.kids, kid.folder)
		d.folder.bytes += kid.folder.bytes
		d.folder.entries += kid.folder.entries
	}
	return r.learn(d, fd)
}

func (r *restorer) finishKid(kid *rdir, at int) error {
	fd, err := openDirAt(at, string(kid.meta.name))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := r.finishDir(kid, fd); err != nil {
		return err
	}
	return r.stampDir(kid, fd)
}

// learn fills the inodes and times of what is on disk now into the records.
func (r *restorer) learn(d *rdir, fd int) error {
	records := make([]byte, 0, len(d.folder.records)+len(d.folder.records)/4)
	var e entry
	for old := (recordReader{b: d.folder.records}); old.next(&e) != nil; {
		var st fileStat
		if err := statAt(fd, string(e.name), &st); err != nil {
			return fmt.Errorf("%q: %w", e.name, err)
		}
		if e.isFile() && st.Size != e.size {
			return fmt.Errorf("%q has %d bytes, not %d", e.name, st.Size, e.size)
		}
		link := e.link
		nlink := e.nlink
		e.setStat(&st)
		if e.isFile() {
			e.link = link
			if link != 0 {
				e.nlink = nlink // as the tree says: names outside are no matter
			}
			d.folder.bytes += (e.size - holeBytes(e.content)) / int64(max(e.nlink, 1))
		}
		d.folder.entries++
		records = appendEntry(records, &e)
	}
	d.folder.records = records
	return nil
}

// stampDir gives an open folder its owner, mode, attributes and times.
func (r *restorer) stampDir(d *rdir, fd int) error {
	e := &d.meta
	if e.uid != r.uid || e.gid != r.gid || !d.fresh {
		if err := allow(unix.Fchown(fd, int(e.uid), int(e.gid))); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, e.mode&0o7777); err != nil {
		return err
	}
	if err := setXattrs(fd, e.xattrs, !d.fresh); err != nil {
		return err
	}
	return setTimes(fd, ".", e.mtime)
}

// setTimes sets the modification time of a name; the access time too, so that
// the restore itself leaves no trace.
func setTimes(dir int, name string, t stamp) error {
	ts := unix.Timespec{Sec: t.sec, Nsec: t.ns}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// setXattrs sets the encoded attributes of an open file; with exact it removes
// all others. What this system refuses is left out.
func setXattrs(fd int, list []byte, exact bool) error {
	wanted := map[string]bool{}
	var failed error
	eachXattr(list, func(name, value []byte) {
		n := string(name)
		wanted[n] = true
		if !keptXattr(n) {
			return
		}
		if err := unix.Fsetxattr(fd, n, value, 0); err != nil && !refusedByKernel(err) {
			failed = err
		}
	})
	if exact {
		eachXattr(readXattrs(fd, make([]byte, 4096)), func(name, _ []byte) {
			if !wanted[string(name)] {
				_ = unix.Fremovexattr(fd, string(name))
			}
		})
	}
	return failed
}

func refusedByKernel(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES)
}

// allow drops the refusal to change an owner: without that right all that is
// restored belongs to us.
func allow(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// punch makes a hole, or writes zeros where that cannot be done.
func punch(fd int, offset, size int64) error {
	err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, size)
	if err == nil {
		return nil
	}
	return writeAt(fd, zeros()[:size], offset)
}

func writeAt(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, offset)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

// umask is the process's mask of modes, 0777 when it is not known.
func umask() uint32 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0o777
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "Umask:"); ok {
			if m, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32); err == nil {
				return uint32(m)
			}
		}
	}
	return 0o777
}

// maxDirs is how many folders are open at once.
const maxDirs = 256

// A dirCache opens the folders of the restored tree, name by name from the
// root, and keeps the last ones open.
type dirCache struct {
	mu   sync.Mutex
	ring []*rdir
	next int
	root *rdir
}

func newDirCache() *dirCache { return &dirCache{ring: make([]*rdir, maxDirs)} }

// pin enters the root, which stays open.
func (c *dirCache) pin(d *rdir, fd *dirFD) { c.root, d.fd = d, fd }

// open returns an open folder, to be released.
func (c *dirCache) open(d *rdir) (*dirFD, error) {
	c.mu.Lock()
	if d.fd != nil {
		fd := d.fd.retain()
		c.mu.Unlock()
		return fd, nil
	}
	c.mu.Unlock()
	above, err := c.open(d.parent)
	if err != nil {
		return nil, err
	}
	defer above.release()
	n, err := openDirAt(above.fd, string(d.meta.name))
	if err != nil {
		return nil, fmt.Errorf("open folder %q: %w", d.meta.name, err)
	}
	fd := newDirFD(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.fd != nil { // another worker was faster
		fd.release()
		return d.fd.retain(), nil
	}
	if old := c.ring[c.next]; old != nil {
		old.fd.release()
		old.fd = nil
	}
	c.ring[c.next] = d
	c.next = (c.next + 1) % len(c.ring)
	d.fd = fd
	return fd.retain(), nil
}

func (c *dirCache) close() {
	for _, d := range append(c.ring, c.root) {
		if d != nil && d.fd != nil {
			d.fd.release()
			d.fd = nil
		}
	}
}

// A meter tells how far a restore is.
type meter struct {
	report func(Progress)
	now    func() time.Time

	mu    sync.Mutex
	p     Progress
	begun time.Time
	last  time.Time
}

// expect counts a file that is to be written.
func (m *meter) expect(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.BytesTotal += bytes
	m.p.FilesTotal++
}

func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.BytesDone += n
	m.tell(false)
}

func (m *meter) file() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.FilesDone++
}

// done reports that all is there.
func (m *meter) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.BytesTotal, m.p.FilesTotal = m.p.BytesDone, m.p.FilesDone
	m.tell(true)
}

// tell reports at most every half second. The caller holds m.mu.
func (m *meter) tell(last bool) {
	if m.report == nil {
		return
	}
	p := m.p
	p.FilesTotal, p.BytesTotal = max(p.FilesTotal, p.FilesDone), max(p.BytesTotal, p.BytesDone)
	if m.now != nil {
		now := m.now()
		if m.begun.IsZero() {
			m.begun = now
		}
		if !last && now.Sub(m.last) < time.Second/2 {
			return
		}
		m.last = now
		if spent := now.Sub(m.begun); p.BytesDone > 0 && spent > 0 {
			p.ETA = time.Duration(float64(spent) * float64(p.BytesTotal-p.BytesDone) / float64(p.BytesDone))
		}
	}
	m.report(p)
}
