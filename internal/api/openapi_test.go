package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/clock"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestOpenAPI holds the published description equal to what is served: a
// changed call shows in review, and the page's types are made from it.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	_, doc := api.New(api.Deps{Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
	got, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("openapi.json is not what the API serves; run make gen:\n%s", cmp.Diff(string(want), string(got)))
	}
}
