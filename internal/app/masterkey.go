package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/seal"
)

// masterKey is the configured one, or the one drawn into the state folder. It
// has seal.KeySize bytes.
func (a *App) masterKey() ([]byte, error) {
	text, source := a.config.MasterKey, "HOMEPORT_MASTER_KEY"
	if text == "" {
		source = filepath.Join(a.config.StateDir, "master.key")
		if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
			if err := drawMasterKey(source); err != nil {
				return nil, fmt.Errorf("draw a master key: %w", err)
			}
		}
		read, err := os.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("master key: %w", err)
		}
		text = strings.TrimSpace(string(read))
	}
	key, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the master key in %s is not hex", source)
	}
	if len(key) != seal.KeySize {
		return nil, fmt.Errorf("the master key in %s has %d bytes, want %d: only the key that sealed this installation's secrets opens them",
			source, len(key), seal.KeySize)
	}
	return key, nil
}

// drawMasterKey draws a key into a file that is there as a whole or not at all: what
// a key sealed is lost with it. Where another process was faster its key counts.
func drawMasterKey(path string) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "master.key.new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(id.Bytes(seal.KeySize)) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// derived makes a key for one purpose from the master key.
func derived(master []byte, purpose string) []byte {
	m := hmac.New(sha256.New, master)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}
