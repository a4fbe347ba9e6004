package blobtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A witness notes how a test ended.
type witness struct {
	testing.TB
	end string
}

func (w *witness) Helper() {}

func (w *witness) Skipf(f string, args ...any) {
	w.end += "skipped: " + fmt.Sprintf(f, args...)
	panic(w)
}

func (w *witness) Fatalf(f string, args ...any) {
	w.end += "failed: " + fmt.Sprintf(f, args...)
	panic(w)
}

// Without the service tests fail, unless somebody asked to leave them out.
func TestWithoutTheServiceTestsDoNotVanish(t *testing.T) {
	for asked, want := range map[string]string{"": "failed: ", "0": "failed: ", "1": "skipped: "} {
		t.Setenv("HOMEPORT_TEST_SKIP_S3", asked)
		w := &witness{TB: t}
		func() {
			defer func() { _ = recover() }()
			giveUp(w, errors.New("no network"))
		}()
		if !strings.HasPrefix(w.end, want) || !strings.Contains(w.end, "no network") {
			t.Errorf("with %q: %s, want %s", asked, w.end, want)
		}
	}
}
