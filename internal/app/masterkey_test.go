package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/seal"
)

// Nodes that start at once on one folder draw one key, and none reads half of
// it: what a key sealed is lost with it.
func TestMasterKeyIsDrawnOnceAndWhole(t *testing.T) {
	t.Parallel()
	for range 50 {
		a := &App{config: Config{StateDir: t.TempDir()}}
		// Left by a process that was killed while it drew.
		if err := os.WriteFile(filepath.Join(a.config.StateDir, "master.key.new-1"), []byte("0123"), 0o600); err != nil {
			t.Fatal(err)
		}
		var keys [8][]byte
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() {
				var err error
				if keys[i], err = a.masterKey(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, key := range keys {
			if len(key) != seal.KeySize || !bytes.Equal(key, keys[0]) {
				t.Fatalf("one node has a key of %d bytes, another one of %d", len(key), len(keys[0]))
			}
		}
		if info, err := os.Stat(filepath.Join(a.config.StateDir, "master.key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's file: %v, %v", info, err)
		}
	}
}

// A key that is cut off seals nothing, and nothing is drawn in its place.
func TestMasterKeyOfAnotherLengthIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "has 0 bytes", "\n": "has 0 bytes", "0123abcd\n": "has 4 bytes", "no key": "not hex"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "master.key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := (&App{config: Config{StateDir: dir}}).bootstrapKey("prime")
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if kept, _ := os.ReadFile(path); string(kept) != text {
			t.Errorf("%q became %q", text, kept)
		}
	}
	a := &App{config: Config{MasterKey: "0123abcd"}}
	if _, err := a.masterKey(); err == nil || !strings.Contains(err.Error(), "HOMEPORT_MASTER_KEY has 4 bytes") {
		t.Errorf("a configured key that is too short: %v", err)
	}
}
