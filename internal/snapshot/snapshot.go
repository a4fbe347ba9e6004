package snapshot

import (
	"encoding/json"
	"time"
)

// A Snapshot is one committed or proposed state of a volume.
type Snapshot struct {
	Time     time.Time
	Parent   ID // zero: none
	Tree     ID // a tree of one node, the folder itself
	Paths    []string
	Hostname string
	Username string
}

// snapshotJSON is an object "snapshots/<id>".
type snapshotJSON struct {
	Time     time.Time `json:"time"`
	Parent   *ID       `json:"parent,omitempty"`
	Tree     *ID       `json:"tree"`
	Paths    []string  `json:"paths"`
	Hostname string    `json:"hostname,omitempty"`
	Username string    `json:"username,omitempty"`
}

// DecodeSnapshot reads a snapshot object. The fault is ErrDamaged.
func DecodeSnapshot(key Key, stored []byte) (Snapshot, error) {
	if !key.usable() {
		return Snapshot{}, ErrKey
	}
	plain, err := openFile(&key, stored)
	if err != nil {
		return Snapshot{}, err
	}
	var j snapshotJSON
	if err := json.Unmarshal(plain, &j); err != nil {
		return Snapshot{}, ErrDamaged.Because(err)
	}
	s := Snapshot{Time: j.Time.UTC(), Paths: j.Paths, Hostname: j.Hostname, Username: j.Username}
	if j.Parent != nil {
		s.Parent = *j.Parent
	}
	if j.Tree != nil {
		s.Tree = *j.Tree
	}
	return s, nil
}

// EncodeSnapshot makes the stored bytes of a snapshot object, and its id.
func EncodeSnapshot(key Key, s Snapshot) ([]byte, ID, error) {
	if !key.usable() {
		return nil, ID{}, ErrKey
	}
	j := snapshotJSON{Time: s.Time.UTC(), Tree: &s.Tree, Paths: s.Paths, Hostname: s.Hostname, Username: s.Username}
	if !s.Parent.IsZero() {
		j.Parent = &s.Parent
	}
	return sealFile(&key, j)
}
