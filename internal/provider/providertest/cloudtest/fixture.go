package cloudtest

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

// Read decodes a file of JSON, or fails the test.
func Read(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
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
