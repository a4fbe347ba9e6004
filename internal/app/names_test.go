package app

import (
	"strings"
	"testing"

	"homeport.dev/homeport/internal/clock"
)

// Half a name server would leave pods that nobody can reach.
func TestANameServerIsWholeOrNone(t *testing.T) {
	t.Parallel()
	const host, server, key = "HOMEPORT_POD_HOST=pods.example.com", "HOMEPORT_DNS_SERVER=ns1.example.com", "HOMEPORT_DNS_KEY=homeport:c2VjcmV0"
	for name, one := range map[string]struct {
		env  []string
		want string // of the mistake
		has  bool
	}{
		"none":                     {[]string{host}, "", false},
		"whole":                    {[]string{host, server, key}, "", true},
		"a zone above":             {[]string{host, server, key, "HOMEPORT_DNS_ZONE=example.com."}, "", true},
		"a zone beside":            {[]string{host, server, key, "HOMEPORT_DNS_ZONE=ods.example.com"}, "does not lie in the zone", false},
		"no key":                   {[]string{host, server}, "HOMEPORT_DNS_SERVER", false},
		"a key for nothing":        {[]string{host, key}, "HOMEPORT_DNS_KEY is set", false},
		"a key that is not base64": {[]string{host, server, "HOMEPORT_DNS_KEY=homeport:sesame!"}, "not base64", false},
	} {
		c, err := Load(one.env, nil)
		if one.want != "" {
			if err == nil || !strings.Contains(err.Error(), one.want) || strings.Contains(err.Error(), "sesame!") {
				t.Errorf("%s: the mistake is %v, want %q", name, err, one.want)
			}
			continue
		}
		if s, names := c.nameServer(clock.New()); err != nil || names != nil || (s != nil) != one.has {
			t.Errorf("%s: %v, %v, a server: %t", name, err, names, s != nil)
		}
	}
}
