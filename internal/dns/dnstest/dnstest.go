// Package dnstest runs a name server of a test's own: Debian's BIND with one
// zone, in which the holder of a key makes names. It ends with the test.
package dnstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Zone is the one that a server has.
const Zone = "pods.example.test"

// The keys that it knows: only the first may update the zone.
const (
	Key      = "hmac-sha256:homeport:c2hhcmVkIGJ5IHRoZSB0ZXN0cw=="
	OtherKey = "hmac-sha512:reader:bWF5IG9ubHkgcmVhZCB0aGUgem9uZQ=="
)

const namedConf = `
options { directory "%[1]s"; listen-on port %[2]d { %[3]s; }; listen-on-v6 { none; }; pid-file none; session-keyfile none;
  recursion no; dnssec-validation no; allow-new-zones no; notify no; };
controls { };
key "homeport" { algorithm hmac-sha256; secret "c2hhcmVkIGJ5IHRoZSB0ZXN0cw=="; };
key "reader" { algorithm hmac-sha512; secret "bWF5IG9ubHkgcmVhZCB0aGUgem9uZQ=="; };
zone "pods.example.test" { type primary; file "%[1]s/zone"; allow-update { key "homeport"; }; };
`

const zoneText = `$TTL 60
@ IN SOA ns hostmaster 1 60 60 600 60
@ IN NS ns
ns IN A 127.0.0.1
`

// Start runs a server at an address of this host. It returns a way to look names
// up in it.
func Start(t testing.TB, at netip.AddrPort) *net.Resolver {
	t.Helper()
	program := "/usr/sbin/named"
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the tests need the name server of Debian: apt-get install bind9")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"named.conf": fmt.Sprintf(namedConf, dir, at.Port(), at.Addr()), "zone": zoneText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	server := exec.Command(program, "-g", "-n", "1", "-c", filepath.Join(dir, "named.conf"))
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at.String())
	}}
	for range 100 {
		if _, err := resolver.LookupHost(t.Context(), "ns."+Zone+"."); err == nil {
			return resolver
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the name server does not answer")
	return nil
}
