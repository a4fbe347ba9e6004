package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawEntry draws an entry of any format, as a syncer could have made it.
func drawEntry(t *rapid.T) entry {
	bytes := func(label string, least, most int) []byte {
		return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, label)
	}
	e := entry{
		name:  []byte(strings.NewReplacer("/", "_", "\x00", "_").Replace(string(bytes("name", 3, 40)))),
		mode:  rapid.SampledFrom([]uint32{modeFile, modeDir, modeLink, modeFifo, modeChar, modeBlock}).Draw(t, "format"),
		uid:   rapid.Uint32().Draw(t, "uid"),
		gid:   rapid.Uint32().Draw(t, "gid"),
		mtime: stamp{sec: rapid.Int64Range(-6e10, 2e11).Draw(t, "sec"), ns: rapid.Int64Range(0, 999999999).Draw(t, "ns")},
		nlink: 1,
	}
	e.mode |= rapid.Uint32Range(0, 0o7777).Draw(t, "mode")
	switch e.format() {
	case modeFile:
		e.size = rapid.Int64Range(0, 1<<60).Draw(t, "size")
		for range rapid.IntRange(0, 3).Draw(t, "blobs") {
			e.content = append(e.content, bytes("blob", 32, 32)...)
		}
		if rapid.Bool().Draw(t, "linked") {
			e.nlink, e.link = rapid.Uint32Range(2, 1<<30).Draw(t, "links"), rapid.Uint64Range(1, 1<<63).Draw(t, "link")
		}
	case modeDir:
		e.content = bytes("subtree", 32, 32)
	case modeLink:
		e.target = bytes("target", 1, 50)
	case modeChar, modeBlock:
		e.rdev = rapid.Uint64().Draw(t, "device")
	}
	if rapid.Bool().Draw(t, "xattrs") {
		e.xattrs = appendXattr(appendXattr(nil, "user.a", bytes("value", 0, 9)), "user.b", nil)
	}
	return e
}

// same compares entries; an empty slice is as good as none.
func same(a, b entry) string {
	return fmt.Sprint(cmp.Diff(fmt.Sprintf("%+q", fields(a)), fmt.Sprintf("%+q", fields(b))))
}

func fields(e entry) []string {
	return []string{
		string(e.name), fmt.Sprint(e.flags, e.mode, e.uid, e.gid, e.ino, e.size, e.mtime, e.ctime, e.nlink, e.link, e.rdev),
		string(e.content), string(e.target), string(e.xattrs),
	}
}

func TestRecordsKeepEntries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var records []byte
		var want []entry
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			e := drawEntry(t)
			e.ino, e.ctime = rapid.Uint64().Draw(t, "ino"), e.mtime
			e.flags = rapid.Uint8Range(0, 1).Draw(t, "flags")
			want = append(want, e)
			records = appendEntry(records, &e)
		}
		r := recordReader{b: records}
		for i := range want {
			var got entry
			if r.next(&got) == nil {
				t.Fatalf("record %d is broken", i)
			}
			if diff := same(want[i], got); diff != "" {
				t.Fatal(diff)
			}
		}
		if len(r.b) != 0 || r.broken {
			t.Fatal("something is left")
		}
		// Whatever is cut off or changed must be noticed or read, never panic.
		if len(records) > 0 {
			records[rapid.IntRange(0, len(records)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "flip")
			r, e := recordReader{b: records[:rapid.IntRange(0, len(records)).Draw(t, "cut")]}, entry{}
			for r.next(&e) != nil {
			}
		}
	})
}

func TestTreesKeepEntries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawEntry(t)
		tree := append(appendNode([]byte(`{"nodes":[`), &want), "]}"...)
		if !json.Valid(tree) {
			t.Fatalf("not JSON: %s", tree)
		}
		got, err := decodeTree(tree)
		if err != nil {
			t.Fatalf("%v: %s", err, tree)
		}
		if diff := same(want, got[0]); diff != "" {
			t.Fatalf("%s\n%s", diff, tree)
		}
	})
}

func TestTreesOfAttackersAreRefused(t *testing.T) {
	t.Parallel()
	subtree := strings.Repeat("ab", 32)
	for _, nodes := range []string{
		`{"name":"..","type":"file","content":[]}`,
		`{"name":".","type":"file","content":[]}`,
		`{"name":"","type":"file","content":[]}`,
		`{"name":"a/b","type":"file","content":[]}`,
		`{"name":"a\\x2fb","type":"file","content":[]}`,
		`{"name":"a\u0000b","type":"file","content":[]}`,
		`{"name":"` + strings.Repeat("n", 256) + `","type":"file","content":[]}`,
		`{"name":"a","type":"symlink","linktarget":"/etc"},{"name":"a","type":"dir","subtree":"` + subtree + `"}`,
		`{"name":"a","type":"dir"}`,
		`{"name":"a","type":"door"}`,
		`{"name":"a","type":"file","size":18446744073709551615,"content":[]}`,
		`{"name":"a","type":"file","content":["short"]}`,
	} {
		if got, err := decodeTree([]byte(`{"nodes":[` + nodes + `]}`)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v, want ErrDamaged", nodes, got, err)
		}
	}
}

func TestKeysOpenOnlyWhatTheySealed(t *testing.T) {
	t.Parallel()
	key := NewKey()
	b, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	var again Key
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	other := NewKey()
	for _, plain := range []string{"", "x", strings.Repeat("long ", 1000)} {
		sealed := key.seal([]byte("before"), []byte(plain))
		got, err := again.open(nil, sealed[6:])
		if err != nil || string(got) != plain {
			t.Errorf("open = %q, %v, want %q", got, err, plain)
		}
		if _, err := other.open(nil, sealed[6:]); !errors.Is(err, errMAC) {
			t.Errorf("another key: %v, want errMAC", err)
		}
	}
	for _, bad := range []string{`{}`, `{"mac":{"k":"AA==","r":"AA=="},"encrypt":"AA=="}`, `{"encrypt":1}`} {
		if err := json.Unmarshal([]byte(bad), &again); !errors.Is(err, ErrKey) {
			t.Errorf("Unmarshal(%s) = %v, want ErrKey", bad, err)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v", key, key, key); strings.Contains(s, fmt.Sprint(key.encrypt[0], key.encrypt[1])) {
		t.Errorf("a key prints as %s", s)
	}
}

func TestPackHeadersAreReadBack(t *testing.T) {
	t.Parallel()
	key := NewKey()
	blobs := []packedBlob{
		{id: ID{1}, kind: dataBlob, offset: 0, length: 100},
		{id: ID{2}, kind: dataBlob, offset: 100, length: 50, plain: 400},
		{id: ID{3}, kind: treeBlob, offset: 150, length: 60, plain: 61},
	}
	pack := appendHeader(&key, make([]byte, 210), blobs)
	got, err := parseHeader(&key, pack[210:len(pack)-4])
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(blobs) {
		t.Errorf("read %v, want %v", got, blobs)
	}
}

func TestParseIDTakesOneFormOnly(t *testing.T) {
	t.Parallel()
	id := ID{0xab, 31: 1}
	if got, err := ParseID(id.String()); err != nil || got != id {
		t.Errorf("ParseID(%s) = %s, %v", id, got, err)
	}
	for _, bad := range []string{"", "ab", strings.ToUpper(id.String()), id.String() + "0", strings.Repeat("g", 64)} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) was accepted", bad)
		}
	}
}

func TestABlobCannotBeShorterThanItsCompressedForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		length, plain uint32
		whole         bool
	}{
		{overhead + 1000, 0, true},
		{overhead + 1000, 1_000_000, true},
		{overhead + 1064, 1000, true},
		{overhead + 1100, 1000, false},
		{overhead + 1_000_000, 1, false},
	} {
		p := packed{blobs: []packedBlob{{length: tt.length, plain: tt.plain}}}
		if _, whole := p.extent(); whole != tt.whole {
			t.Errorf("%d stored bytes of %d: whole %v", tt.length, tt.plain, whole)
		}
	}
}
