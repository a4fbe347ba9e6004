//go:build linux

package snapshot_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestResticChecksAndRestoresWhatIsSynced(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	root := t.TempDir()
	fill(t, root, 500, 1)
	random(t, filepath.Join(root, "large"), 9<<20, 1)
	s := v.syncer(root, t.TempDir(), nil)
	c := v.sync(s)
	if c == nil || c.Entries < 500 {
		t.Fatalf("change %+v", c)
	}
	if out := v.restic("check", "--read-data"); !strings.Contains(out, "no errors were found") {
		t.Fatalf("restic check: %s", out)
	}
	out := t.TempDir()
	v.restic("restore", "latest", "--target", out)
	t.Log(filepath.Glob(out + "/*"))
}
