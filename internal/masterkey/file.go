package masterkey

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/seal"
)

// setting is the name of the setting that holds the keys where no file does.
const setting = "HOMEPORT_MASTER_KEY"

// A key is one master key that this process holds.
type key struct {
	id     seal.Mark
	secret []byte
}

func find(keys []key, name []byte) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return bytes.Equal(k.id[:], name) })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// Parse reads keys in hex, separated by commas or white space. source names
// where they are from.
func Parse(text, source string) error {
	_, err := parse(text, source)
	return err
}

func parse(text, source string) ([]key, error) {
	words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(", \t\r\n", c) })
	if len(words) == 0 {
		words = []string{""}
	}
	var keys []key
	for _, word := range words {
		secret, err := hex.DecodeString(word)
		if err != nil {
			return nil, fmt.Errorf("the master key in %s is not hex", source)
		}
		if len(secret) != seal.KeySize {
			return nil, fmt.Errorf("the master key in %s has %d bytes, want %d: only the key that sealed this installation's secrets opens them",
				source, len(secret), seal.KeySize)
		}
		k := key{seal.MarkOf(secret), secret}
		if _, twice := find(keys, k.id[:]); !twice {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func (r *Ring) source() string {
	if r.Setting != "" {
		return setting
	}
	return r.Path
}

// read returns the keys that this process is given; fs.ErrNotExist where the
// file is not there.
func (r *Ring) read() ([]key, error) {
	if r.Setting != "" {
		return parse(r.Setting, setting)
	}
	text, err := os.ReadFile(r.Path)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	return parse(string(text), r.Path)
}

// keptPath is where the file of a retired key lies.
func (r *Ring) keptPath(name string) string { return r.Path + ".retired-" + name }

// drawFirst draws a key into a file that is there as a whole or not at all: what
// a key sealed is lost with it. Where another process was faster its key counts.
func drawFirst(path string) error {
	f, err := temporary(path, []key{drawn()})
	if err != nil {
		return err
	}
	defer os.Remove(f)
	if err := os.Link(f, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(path)
}

func drawn() key {
	secret := id.Bytes(seal.KeySize)
	return key{seal.MarkOf(secret), secret}
}

// write replaces a file of keys in one step. It belongs to whoever the key file
// belongs to: an operator's command may run as root, and the nodes do not.
func (r *Ring) write(path string, keys []key) error {
	owner, err := os.Stat(r.Path)
	if err != nil {
		return err
	}
	f, err := temporary(path, keys)
	if err != nil {
		return err
	}
	if st, ok := owner.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		err = os.Chown(f, int(st.Uid), int(st.Gid))
	}
	if err == nil {
		err = os.Rename(f, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f))
	}
	return syncFolder(path)
}

// temporary writes a file of keys beside path, for its owner alone, and returns
// its name once it is on the disk.
func temporary(path string, keys []key) (string, error) {
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(hex.EncodeToString(k.secret) + "\n")
	}
	f, err := os.CreateTemp(filepath.Dir(path), "master.key.new-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// derived makes a key for one purpose from a master key.
func derived(master []byte, purpose string) []byte {
	m := hmac.New(sha256.New, master)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}
