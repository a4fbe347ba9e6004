package dns_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/dns"
)

const original = "127.0.0.1 localhost\n::1 localhost # no newline at the end"

func hosts(t *testing.T) (*dns.HostsFile, func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte(original), 0o600); err != nil {
		t.Fatal(err)
	}
	return &dns.HostsFile{Path: path}, func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestHostsFileKeepsForeignLines(t *testing.T) {
	t.Parallel()
	h, read := hosts(t)
	for range 2 { // adding twice is adding once
		if err := h.Add(t.Context(), "abcd1234.localhost", ""); err != nil {
			t.Fatal(err)
		}
	}
	want := original + "\n# homeport pods: begin\n127.0.0.1 abcd1234.localhost\n# homeport pods: end\n"
	if got := read(); got != want {
		t.Fatalf("hosts file is %q, want %q", got, want)
	}
	if err := h.Remove(t.Context(), "abcd1234.localhost"); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != original+"\n" {
		t.Fatalf("after the last name left, the hosts file is %q", got)
	}
}

func TestHostsFileLosesNoNameToARace(t *testing.T) {
	t.Parallel()
	h, _ := hosts(t)
	other := &dns.HostsFile{Path: h.Path} // as another node would
	var wg sync.WaitGroup
	names := []string{"a.localhost", "b.localhost", "c.localhost", "d.localhost", "e.localhost", "f.localhost"}
	for i, name := range names {
		wg.Go(func() {
			if err := []*dns.HostsFile{h, other}[i%2].Add(t.Context(), name, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		if err := h.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(h.Path)
	if err != nil || string(b) != original+"\n" {
		t.Fatalf("a name was lost: %q, %v", b, err)
	}
}
