package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/masterkey"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// A real cloud's key switches it on, and nothing else; where it could be
// spent wrongly or shown, the server does not start.
func TestCloudsAreSwitchedOnByTheirKeys(t *testing.T) {
	t.Parallel()
	const local, public = "HOMEPORT_PUBLIC_URL=http://localhost:8080", "HOMEPORT_PUBLIC_URL=https://homeport.example"
	const smtp, key = "HOMEPORT_SMTP_URL=smtp://mail.example:25", "HOMEPORT_SHADEFORM_API_KEY=k"
	for name, one := range map[string]struct {
		env     []string
		want    string // of the mistake; empty: it starts
		on      []string
		sandbox bool
	}{
		"nothing":                {[]string{local}, "", nil, true},
		"a key in public":        {[]string{public, smtp, key}, "", []string{"shadeform"}, false},
		"a key and the sandbox":  {[]string{public, smtp, key, "HOMEPORT_SANDBOX=on"}, "", []string{"shadeform"}, true},
		"keys of several":        {[]string{public, smtp, key, "HOMEPORT_PRIME_API_KEY=k", "HOMEPORT_RUNPOD_API_KEY=k", "HOMEPORT_LAMBDA_API_KEY=k", "HOMEPORT_VAST_API_KEY=k", "HOMEPORT_HYPERSTACK_API_KEY=k"}, "", []string{"hyperstack", "lambda", "prime", "runpod", "shadeform", "vast"}, false},
		"a key of two parts":     {[]string{public, smtp, "HOMEPORT_VERDA_API_KEY=id:secret"}, "", []string{"verda"}, false},
		"half a key":             {[]string{public, smtp, "HOMEPORT_VERDA_API_KEY=secret"}, "HOMEPORT_VERDA_API_KEY: it is not of the form client_id:client_secret", nil, false},
		"a key here":             {[]string{local, key}, "machines at shadeform cannot reach http://localhost:8080", nil, false},
		"a key for a double":     {[]string{local, key, "HOMEPORT_SHADEFORM_BASE_URL=http://127.0.0.1:9/v1"}, "", []string{"shadeform"}, false},
		"a key in the clear":     {[]string{public, smtp, key, "HOMEPORT_SHADEFORM_BASE_URL=http://api.example/v1"}, "sent in clear", nil, false},
		"a base that is none":    {[]string{public, smtp, key, "HOMEPORT_SHADEFORM_BASE_URL=shadeform"}, "not the address of an API", nil, false},
		"a base without a key":   {[]string{public, smtp, "HOMEPORT_SHADEFORM_BASE_URL=https://api.example"}, "HOMEPORT_SHADEFORM_API_KEY is not set", nil, false},
		"no cloud at all":        {[]string{local, "HOMEPORT_SANDBOX=off"}, "nothing to rent", nil, false},
		"a sandbox of two minds": {[]string{local, "HOMEPORT_SANDBOX=maybe"}, "HOMEPORT_SANDBOX", nil, false},
	} {
		c, err := Load(one.env, nil)
		if one.want != "" {
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("%s: the mistake is %v, want %q", name, err, one.want)
			}
			continue
		}
		if err != nil || !slices.Equal(c.clouds(), one.on) || c.sandboxSells() != one.sandbox {
			t.Errorf("%s: clouds %v, sandbox for rent %t, %v", name, c.clouds(), c.sandboxSells(), err)
		}
	}
}

// Own machines are switched on by their description, and GPUs that are not
// there are never for sale where money is real.
func TestOwnMachinesAreSwitchedOnByTheirDescription(t *testing.T) {
	t.Parallel()
	const local, public = "HOMEPORT_PUBLIC_URL=http://localhost:8080", "HOMEPORT_PUBLIC_URL=https://homeport.example"
	const plain, reaches = `"country": "DE"`, `"country": "DE", "agent_url": "http://10.0.0.1:8080"`
	const invented = reaches + `, "simulate": [{"type": "L4_24GB", "count": 1}]`
	const testKey, liveKey = "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_SECRET_KEY=sk_live_1"
	const signed = "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"
	for name, one := range map[string]struct {
		url, members, want string
		more               []string
	}{
		"for a test key's money":         {public, plain, "a test key's money must not pay for it", []string{testKey}},
		"for test money on purpose":      {public, plain, "", []string{testKey, signed, "HOMEPORT_STRIPE_TEST_RENTS=yes"}},
		"for real money":                 {public, plain, "", []string{liveKey, signed}},
		"in public":                      {public, plain, "", nil},
		"here, reached otherwise":        {local, reaches, "", nil},
		"here, not reached":              {local, plain, "its pods cannot reach http://localhost:8080", nil},
		"simulated here":                 {local, invented, "", nil},
		"simulated in public":            {public, invented, "simulated GPUs must not be paid for", nil},
		"in public with another mistake": {public, `"country": "Atlantis"`, "Atlantis", nil},
	} {
		path := filepath.Join(t.TempDir(), "hosts.json")
		text := `{"hosts": [{"name": "attic", "engine": "unix:///run/docker.sock", "image": "pods/base", "prices": {"L4_24GB": "0.2"}, ` + one.members + `}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(append([]string{one.url, "HOMEPORT_SMTP_URL=smtp://mail.example:25", "HOMEPORT_DOCKER_HOSTS=" + path}, one.more...), nil)
		if one.want != "" {
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("%s: the mistake is %v, want %q", name, err, one.want)
			}
			continue
		}
		if err != nil || !slices.Equal(c.clouds(), []string{"docker"}) || c.sandboxSells() {
			t.Errorf("%s: clouds %v, sandbox for rent %t, %v", name, c.clouds(), c.sandboxSells(), err)
		}
	}
}

// The key by which agents are brought to machines is the same on every node and
// after every start, or nobody could enter a machine that another node rented.
func TestBootstrapKeyIsTheSameOnAllNodes(t *testing.T) {
	t.Parallel()
	keyOf := func(master, cloud string) []byte {
		c, err := Load([]string{"HOMEPORT_PUBLIC_URL=http://localhost:8080", "HOMEPORT_MASTER_KEY=" + master}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &App{config: c, pool: pgtest.New(t), clock: clock.New(), logger: slog.New(slog.DiscardHandler)}
		if a.ring, err = masterkey.Open(t.Context(), a.masterKeys()); err != nil {
			t.Fatal(err)
		}
		return a.pusher(cloud).Keys()[0].PublicKey().Marshal()
	}
	one, two := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	if !bytes.Equal(keyOf(one, "prime"), keyOf(one, "prime")) {
		t.Error("two nodes have different keys")
	}
	if bytes.Equal(keyOf(one, "prime"), keyOf(two, "prime")) || bytes.Equal(keyOf(one, "prime"), keyOf(one, "other")) {
		t.Error("two installations, or two clouds, have the same key")
	}
}
