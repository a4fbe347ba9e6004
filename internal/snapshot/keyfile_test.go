package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/snapshot"
)

// A key file gives its key to the password it was made with, and to no other.
func TestAKeyFileOpensWithItsPasswordAlone(t *testing.T) {
	t.Parallel()
	key := snapshot.NewKey()
	file, err := snapshot.MakeKeyFile(key, password)
	must(t, err)
	back, err := snapshot.OpenKeyFile(file, password)
	must(t, err)
	want, err := json.Marshal(key)
	must(t, err)
	got, err := json.Marshal(back)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Error("the key that comes out is another one")
	}
	other, err := snapshot.MakeKeyFile(key, password)
	must(t, err)
	if bytes.Equal(file, other) {
		t.Error("two files are equal: the salt is not drawn")
	}
	for name, tt := range map[string]struct{ file, password string }{
		"another password": {string(file), password + "x"},
		"no password":      {string(file), ""},
		"no file":          {"", password},
		"another cost":     {strings.Replace(string(file), `"N":32768`, `"N":1073741824`, 1), password},
		"another salt":     {strings.Replace(string(file), `"salt":"`, `"salt":"AAAA`, 1), password},
		"a changed file":   {strings.Replace(string(file), `"data":"`, `"data":"AAAA`, 1), password},
		"no data":          {`{"kdf":"scrypt","N":32768,"r":8,"p":1}`, password},
	} {
		if _, err := snapshot.OpenKeyFile([]byte(tt.file), tt.password); !errors.Is(err, snapshot.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is derived from a key is always the same, and tells nothing of it.
func TestTheChunkerKeyIsDerived(t *testing.T) {
	t.Parallel()
	key := snapshot.NewKey()
	first, err := key.ChunkerKey()
	must(t, err)
	again, err := key.ChunkerKey()
	must(t, err)
	other, err := snapshot.NewKey().ChunkerKey()
	must(t, err)
	if len(first) != 32 || !bytes.Equal(first, again) || bytes.Equal(first, other) {
		t.Error("a chunker key is not one of its repository's key")
	}
	if _, err := (snapshot.Key{}).ChunkerKey(); !errors.Is(err, snapshot.ErrKey) {
		t.Errorf("of no key: %v", err)
	}
}
