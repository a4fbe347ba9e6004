package snapshot

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// leastHoles is how many bytes of holes make a file sparse in an archive.
const leastHoles = 1 << 20

// An extent is a stretch of a file that is not a hole.
type extent struct{ offset, length int64 }

// extents are what of a file is not holes. As in GNU's own archives the last
// one ends where the file does.
func (f *File) extents() []extent {
	var all []extent
	from := int64(0)
	for i, end := range f.ends {
		switch n := len(all); {
		case isZero(f.entry.blob(i)):
		case n > 0 && all[n-1].offset+all[n-1].length == from:
			all[n-1].length += end - from
		default:
			all = append(all, extent{from, end - from})
		}
		from = end
	}
	if n := len(all); n == 0 || all[n-1].offset+all[n-1].length < f.Size {
		all = append(all, extent{f.Size, 0})
	}
	return all
}

// block is the unit of a tar archive in bytes.
const block = 512

// sparse writes a file with holes in GNU's format 1.0, which archive/tar reads
// and does not write: the content begins with the map of what follows.
func (z *archiver) sparse(h *tar.Header, f *File) error {
	all := f.extents()
	plan := fmt.Appendf(nil, "%d\n", len(all))
	size := int64(0)
	for _, x := range all {
		plan = fmt.Appendf(plan, "%d\n%d\n", x.offset, x.length)
		size += x.length
	}
	plan = padded(plan)
	size += int64(len(plan))
	if err := z.tar.Flush(); err != nil { // from here to the end the blocks are our own
		return err
	}
	if err := z.sparseHeader(h, size); err != nil {
		return err
	}
	if _, err := z.w.Write(plan); err != nil {
		return err
	}
	for _, x := range all {
		if _, err := f.Seek(x.offset, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(z.w, f, x.length); err != nil {
			return err
		}
	}
	_, err := z.w.Write(make([]byte, (block-size%block)%block))
	return err
}

// sparseHeader writes the header of a sparse file that has size bytes in the
// archive.
func (z *archiver) sparseHeader(h *tar.Header, size int64) error {
	records := maps.Clone(h.PAXRecords)
	if records == nil {
		records = map[string]string{}
	}
	records["GNU.sparse.major"], records["GNU.sparse.minor"] = "1", "0"
	records["GNU.sparse.name"], records["GNU.sparse.realsize"] = h.Name, strconv.FormatInt(h.Size, 10)
	records["size"] = strconv.FormatInt(size, 10)
	records["uid"], records["gid"] = strconv.Itoa(h.Uid), strconv.Itoa(h.Gid)
	records["mtime"] = paxTime(h.ModTime.Unix(), int64(h.ModTime.Nanosecond()))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(records)) {
		b.WriteString(paxRecord(name, records[name]))
	}
	for _, part := range [][]byte{
		ustar("PaxHeaders.0/sparse", tar.TypeXHeader, 0o644, int64(b.Len())), padded([]byte(b.String())),
		ustar("GNUSparseFile.0/sparse", tar.TypeReg, h.Mode, size),
	} {
		if _, err := z.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// paxRecord writes "length name=value\n", whose length counts itself.
func paxRecord(name, value string) string {
	n := len(name) + len(value) + 3
	length := n + len(strconv.Itoa(n))
	length = n + len(strconv.Itoa(length))
	return strconv.Itoa(length) + " " + name + "=" + value + "\n"
}

// paxTime writes seconds since the epoch with nine decimals.
func paxTime(sec, ns int64) string {
	if sec < 0 && ns > 0 { // -1.25 is the second -2 and 750,000,000 ns
		sec, ns = sec+1, 1e9-ns
		if sec == 0 {
			return fmt.Sprintf("-0.%09d", ns)
		}
	}
	return fmt.Sprintf("%d.%09d", sec, ns)
}

// ustar makes a header block. What does not fit is in the records before it.
func ustar(name string, kind byte, mode, size int64) []byte {
	b := make([]byte, block)
	copy(b, name)
	for _, field := range []struct {
		at, digits int
		value      int64
	}{{100, 7, mode}, {108, 7, 0}, {116, 7, 0}, {124, 11, min(size, 1<<33-1)}, {136, 11, 0}, {329, 7, 0}, {337, 7, 0}} {
		copy(b[field.at:], fmt.Sprintf("%0*o", field.digits, field.value))
	}
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// padded fills the last block with zeros.
func padded(b []byte) []byte { return append(b, make([]byte, (block-len(b)%block)%block)...) }
