package snapshot

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"
	"unicode/utf8"
)

// nodeJSON is an entry as a tree blob holds it.
type nodeJSON struct {
	Name      string      `json:"name"`
	Type      string      `json:"type"`
	Mode      uint32      `json:"mode"`
	MTime     time.Time   `json:"mtime"`
	UID       uint32      `json:"uid"`
	GID       uint32      `json:"gid"`
	Inode     uint64      `json:"inode"`
	Size      uint64      `json:"size"`
	Links     uint64      `json:"links"`
	Target    string      `json:"linktarget"`
	TargetRaw []byte      `json:"linktarget_raw"`
	Xattrs    []xattrJSON `json:"extended_attributes"`
	Device    uint64      `json:"device"`
	Content   []ID        `json:"content"`
	Subtree   *ID         `json:"subtree"`
}

type xattrJSON struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// types are restic's names of the file formats.
var types = map[uint32]string{
	modeFile: "file", modeDir: "dir", modeLink: "symlink",
	modeFifo: "fifo", modeChar: "chardev", modeBlock: "dev",
}

var formats = map[string]uint32{
	"file": modeFile, "dir": modeDir, "symlink": modeLink,
	"fifo": modeFifo, "chardev": modeChar, "dev": modeBlock,
}

// goMode turns a mode of the system into the one that trees hold.
func goMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & modeFormat {
	case modeDir:
		mode |= fs.ModeDir
	case modeLink:
		mode |= fs.ModeSymlink
	case modeFifo:
		mode |= fs.ModeNamedPipe
	case modeChar:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case modeBlock:
		mode |= fs.ModeDevice
	}
	if m&modeSetuid != 0 {
		mode |= fs.ModeSetuid
	}
	if m&modeSetgid != 0 {
		mode |= fs.ModeSetgid
	}
	if m&modeSticky != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// sysMode is the reverse of goMode, without the format.
func sysMode(mode fs.FileMode) uint32 {
	m := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		m |= modeSetuid
	}
	if mode&fs.ModeSetgid != 0 {
		m |= modeSetgid
	}
	if mode&fs.ModeSticky != 0 {
		m |= modeSticky
	}
	return m
}

// appendNode appends the JSON of e. Equal entries make equal bytes on every
// machine: there is no inode, no access time and no device in them.
func appendNode(b []byte, e *entry) []byte {
	b = append(b, `{"name":"`...)
	b = appendName(b, e.name)
	b = append(b, `","type":"`...)
	b = append(b, types[e.format()]...)
	b = append(b, `","mode":`...)
	b = strconv.AppendUint(b, uint64(goMode(e.mode)), 10)
	b = append(b, `,"mtime":`...)
	start := len(b)
	b = appendTime(b, e.mtime)
	end := len(b)
	b = append(b, `,"atime":`...)
	b = append(b, b[start:end]...)
	b = append(b, `,"ctime":`...)
	b = append(b, b[start:end]...)
	b = append(b, `,"uid":`...)
	b = strconv.AppendUint(b, uint64(e.uid), 10)
	b = append(b, `,"gid":`...)
	b = strconv.AppendUint(b, uint64(e.gid), 10)
	b = appendFormat(b, e)
	if len(e.xattrs) > 0 {
		b = append(b, `,"extended_attributes":[`...)
		eachXattr(e.xattrs, func(name, value []byte) {
			b = append(b, `{"name":`...)
			b = appendString(b, string(name))
			b = append(b, `,"value":"`...)
			b = base64.StdEncoding.AppendEncode(b, value)
			b = append(b, `"},`...)
		})
		b[len(b)-1] = ']'
	}
	return append(b, '}')
}

// appendFormat appends the members that only one format has.
func appendFormat(b []byte, e *entry) []byte {
	switch e.format() {
	case modeFile:
		b = append(b, `,"size":`...)
		b = strconv.AppendInt(b, e.size, 10)
		if e.nlink > 1 {
			b = append(b, `,"inode":`...)
			b = strconv.AppendUint(b, e.link, 10)
			b = append(b, `,"device_id":1,"links":`...)
			b = strconv.AppendUint(b, uint64(e.nlink), 10)
		}
		b = append(b, `,"content":[`...)
		for i := range e.blobs() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendID(b, e.content[i*len(ID{}):])
		}
		b = append(b, ']')
	case modeDir:
		b = append(b, `,"subtree":`...)
		b = appendID(b, e.content)
	case modeLink:
		b = append(b, `,"linktarget":`...)
		b = appendString(b, string(e.target))
		if !utf8.Valid(e.target) {
			b = append(b, `,"linktarget_raw":"`...)
			b = base64.StdEncoding.AppendEncode(b, e.target)
			b = append(b, '"')
		}
	case modeChar, modeBlock:
		b = append(b, `,"device":`...)
		b = strconv.AppendUint(b, e.rdev, 10)
	}
	return b
}

const hexDigits = "0123456789abcdef"

func appendID(b, id []byte) []byte {
	b = append(b, '"')
	for _, c := range id[:len(ID{})] {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '"')
}

// appendName appends the quoted form of a name, itself quoted for JSON.
func appendName(b, name []byte) []byte {
	for _, c := range name {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted := strconv.Quote(string(name))
			s := appendString(nil, quoted[1:len(quoted)-1])
			return append(b, s[1:len(s)-1]...)
		}
	}
	return append(b, name...)
}

func appendString(b []byte, s string) []byte {
	v, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, v...)
}

// Years that a JSON time can hold, as seconds.
var (
	minSec = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	maxSec = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

func appendTime(b []byte, s stamp) []byte {
	t := time.Unix(min(max(s.sec, minSec), maxSec), s.ns).UTC()
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// entry checks a node and turns it into an entry that holds no part of it.
func (n *nodeJSON) entry() (entry, error) {
	name := n.Name
	if s, err := strconv.Unquote(`"` + n.Name + `"`); err == nil {
		name = s
	}
	if err := checkName(name); err != nil {
		return entry{}, err
	}
	format, ok := formats[n.Type]
	if !ok {
		return entry{}, fmt.Errorf("unknown type %q", n.Type)
	}
	e := entry{
		name: []byte(name), mode: format | sysMode(fs.FileMode(n.Mode)), uid: n.UID, gid: n.GID,
		mtime: stamp{sec: n.MTime.Unix(), ns: int64(n.MTime.Nanosecond())}, nlink: 1,
	}
	for _, x := range n.Xattrs {
		e.xattrs = appendXattr(e.xattrs, x.Name, x.Value)
	}
	switch format {
	case modeFile:
		e.size = int64(n.Size)
		if e.size < 0 {
			return entry{}, errors.New("negative size")
		}
		if n.Links > 1 && n.Inode != 0 {
			e.nlink, e.link = uint32(min(n.Links, 1<<31)), n.Inode
		}
		e.content = make([]byte, 0, len(n.Content)*len(ID{}))
		for i := range n.Content {
			e.content = append(e.content, n.Content[i][:]...)
		}
	case modeDir:
		if n.Subtree == nil {
			return entry{}, errors.New("folder without subtree")
		}
		e.content = n.Subtree[:]
	case modeLink:
		e.target = []byte(n.Target)
		if len(n.TargetRaw) > 0 {
			e.target = n.TargetRaw
		}
	case modeChar, modeBlock:
		e.rdev = n.Device
	}
	return e, nil
}

// checkName refuses what is not one name in a folder: trees come from users.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 {
		return fmt.Errorf("bad name %q", name)
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return fmt.Errorf("bad name %q", name)
		}
	}
	return nil
}
