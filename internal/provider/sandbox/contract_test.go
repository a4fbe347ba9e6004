//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// control steers one sandbox cloud.
type control struct {
	s     *sandbox.Sandbox
	dir   string
	cloud string
}

func (c control) Inject(t *testing.T, op, kind string, times int) bool {
	t.Helper()
	if !sandbox.Plays(sandbox.Op(op), kind) {
		return false
	}
	err := c.s.SetScript(t.Context(), sandbox.Script{Provider: c.cloud, Faults: []sandbox.Fault{{Op: sandbox.Op(op), Kind: kind, Times: times, Seconds: seconds(kind)}}})
	if err != nil {
		t.Fatalf("inject %s of %s: %v", kind, op, err)
	}
	return true
}

// seconds keeps the tests of slow clouds short.
func seconds(kind string) int {
	if kind == "late" || kind == "slow" {
		return 1
	}
	return 0
}

func (c control) Clear(t *testing.T) {
	t.Helper()
	if err := c.s.ClearScript(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Machines looks at folders, not at what the adapter makes of them.
func (c control) Machines(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, c.cloud))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".new-") {
			list = append(list, e.Name())
		}
	}
	return list
}

func TestSandboxCloudsKeepTheContract(t *testing.T) {
	t.Parallel()
	const cloud = "gullhaven" // the one that chooses its ports; the other tests have the other kind
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		s, dir := fresh(t)
		s.Start(t.Context())
		return s.Clouds()[cloud], control{s, dir, cloud}
	})
}
