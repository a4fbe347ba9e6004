package cloudtest

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Read decodes a file of JSON, or fails the test.
func Read(t testing.TB, path string, v any) {
	t.Helper()
	ReadFS(t, os.DirFS(filepath.Dir(path)), filepath.Base(path), v)
}

// ReadFS decodes a file of JSON that a double brings along, or fails the test.
func ReadFS(t testing.TB, files fs.FS, name string, v any) {
	t.Helper()
	b, err := fs.ReadFile(files, name)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
}

// Reply answers with a value as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Bearer is the Authorized of a cloud whose key is a bearer token.
func Bearer(key string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+key }
}
