package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/dns/dnstest"
	"homeport.dev/homeport/internal/provider/docker/dockertest"
	"homeport.dev/homeport/internal/provider/hyperstack/hyperstacktest"
	"homeport.dev/homeport/internal/provider/lambda/lambdatest"
	"homeport.dev/homeport/internal/provider/prime/primetest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/runpod/runpodtest"
	"homeport.dev/homeport/internal/provider/shadeform/shadeformtest"
	"homeport.dev/homeport/internal/provider/vast/vasttest"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

// A cloud is the double of one, with what is rented there.
type cloud struct {
	*cloudtest.Cloud
	name, base, key string // of the adapter, of the API's paths, of the account
	seller, offer   string // who sells it, as users see it, and the cloud's own name of it
	gpu             string // of it
	starts          start
}

// A start says how a cloud's machines come to run what they were sent.
type start struct {
	script func(t *testing.T, sent string) string   // the script in it
	run    func(t *testing.T, sent string) []string // the command by which it is run, once the machine is up
	args   func(sent string) []string               // or as its first program
	mapped bool                                     // its SSH port is one that the cloud chooses
}

// clouds makes doubles of all.
func clouds(t *testing.T) []cloud {
	decoded := func(t *testing.T, sent string) string {
		t.Helper()
		text, err := base64.StdEncoding.DecodeString(sent)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	as := func(_ *testing.T, sent string) string { return sent }
	inner := regexp.MustCompile(`echo (\S+) \| base64 -d`)
	within := func(t *testing.T, sent string) string { return decoded(t, inner.FindStringSubmatch(sent)[1]) }
	content := regexp.MustCompile(`content: (\S+)`)
	cloudInit := start{
		script: func(t *testing.T, sent string) string { return decoded(t, content.FindStringSubmatch(sent)[1]) },
		run:    func(t *testing.T, sent string) []string { return boottest.CloudInit(t, sent) },
	}
	script := func(t *testing.T, sent string) []string { return boottest.Script(sent) }
	list := []cloud{
		{
			cloudtest.New(t, shadeformtest.Dialect(t)), "shadeform", "", shadeformtest.Key, "northwind", "A6000", "A6000_48GB",
			start{script: decoded, run: func(t *testing.T, sent string) []string { return script(t, decoded(t, sent)) }},
		},
		{
			cloudtest.New(t, runpodtest.Dialect(t, runpodtest.GPUs(t))), "runpod", runpodtest.Base, runpodtest.Key, "runpod", "NVIDIA H100 80GB HBM3", "H100_80GB",
			start{script: within, args: func(sent string) []string {
				words := strings.SplitN(sent, " ", 3)
				return append(words[:2], strings.Trim(words[2], "'"))
			}, mapped: true},
		},
		{cloudtest.New(t, lambdatest.Dialect(t)), "lambda", lambdatest.Base, lambdatest.Key, "lambda", "t_1x_a10", "A10_24GB", cloudInit},
		{
			cloudtest.New(t, vasttest.Dialect(t, vasttest.Asks(t))), "vast", vasttest.Base, vasttest.Key, "vast", "31001", "RTX4090_24GB",
			start{script: within, args: func(sent string) []string { return strings.Split(sent, "\x00") }, mapped: true},
		},
		{
			cloudtest.New(t, verdatest.Dialect(verdatest.NewAccount(t))), "verda", "", verdatest.ClientID + ":" + verdatest.ClientSecret, "verda", "1A6000.9X", "A6000_48GB",
			start{script: as, run: script},
		},
		{cloudtest.New(t, hyperstacktest.Dialect(hyperstacktest.NewAccount(t))), "hyperstack", "", hyperstacktest.Key, "hyperstack", "t3-H100x1", "H100_80GB", cloudInit},
		{
			cloudtest.New(t, primetest.Dialect(t, primetest.GPUs(t))), "prime", primetest.Base, primetest.Key, "dc_kudu", "kudu.h100.1", "H100_80GB",
			start{mapped: true}, // it is pushed
		},
	}
	return list
}

// abroad are the settings of a server that rents at clouds, whose pods have names
// at a name server.
func abroad(t *testing.T, s *server, all []cloud, names netip.Addr) []string {
	t.Helper()
	at := netip.AddrPortFrom(names, 53)
	s.resolver = dnstest.Start(t, at)
	known, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	resolve := filepath.Join(s.state, "resolv.conf") // where the server looks names up, as everybody on the internet
	if err := os.WriteFile(resolve, append([]byte("nameserver "+names.String()+"\n"), known...), 0o644); err != nil {
		t.Fatal(err)
	}
	s.under = []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, resolve}
	env := []string{
		"HOMEPORT_POD_HOST=" + dnstest.Zone, "HOMEPORT_DNS_SERVER=" + at.String(), "HOMEPORT_DNS_KEY=" + dnstest.Key,
		"HOMEPORT_PREFLIGHT=0/0", agents(t, s), // a busy machine may be slow
	}
	for _, c := range all {
		name := "HOMEPORT_" + strings.ToUpper(c.name)
		env = append(env, name+"_API_KEY="+c.key, name+"_BASE_URL="+c.URL+c.base)
	}
	return env
}

// TestVolumeVisitsEveryCloud is the journey of a volume through the doubles of
// all clouds. Each machine that a double is asked for is a container, which
// starts by exactly what the double was sent: with it comes the real agent, whose
// pod the user logs in to by its public name. The bytes that were left at the
// cloud before are there, and what is written goes to the next one. In the end
// the money is exact, and no cloud has a machine.
func TestVolumeVisitsEveryCloud(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	l := newLandlord(t, e)
	all := clouds(t)
	for _, c := range all {
		c.RunOn(house{l, c})
	}
	s := newServer(t)
	_, port, _ := strings.Cut(s.url, "//localhost")
	l.node = "127.0.0.1" + port
	s.env = append(s.env, abroad(t, s, all, l.gateway)...)
	s.start()
	secrets := []string{strings.TrimSpace(readKeys(t, s)), s.database(), strings.Split(dnstest.Key, ":")[2], verdatest.ClientSecret}
	for _, c := range all {
		secrets = append(secrets, c.key)
	}
	u := s.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(bin, "homeport-agent"))
	if err != nil {
		t.Fatal(err)
	}
	agent := fmt.Sprintf("%x", sha256.Sum256(program))
	var pods []apitype.Pod
	want := ""
	for i, c := range all {
		p := u.rent(u.soldBy(c), v.ID)
		names := c.Machines(t)
		if len(names) != 1 || !strings.Contains(names[0], p.ID[:8]) {
			t.Fatalf("%s has the machines %v", c.name, names)
		}
		if got := u.run(p, "sha256sum </opt/homeport/homeport-agent"); got != agent+"  -\n" {
			t.Errorf("at %s the agent is %s, the server has %s", c.name, got, agent)
		}
		if got := u.run(p, sums); i > 0 && got != want {
			t.Errorf("at %s there is\n%s\nthe cloud before held\n%s", c.name, got, want)
		}
		u.checkSecrets(p, l.token(names[0]), secrets...)
		if i == 0 {
			u.run(p, odd)
		}
		u.run(p, "cd /workspace && echo "+c.name+" >>visited && head -c 300000 /dev/urandom >"+c.name+" && rm -f a/b/d && echo "+c.name+" >/root/stays && sync")
		want = u.run(p, sums)
		pods = append(pods, u.end(p.ID))
		until(t, "the end of the machine at "+c.name, func() bool { return len(c.Machines(t)) == 0 && len(containers(t, e)) == 0 })
	}
	if started, most := l.count(); started != len(all) || most != 1 {
		t.Errorf("%d machines were started, %d ran at once", started, most)
	}
	u.checkMoney("25", pods, v.ID)
	checkNothingLeft(t, s)
}

// soldBy waits for the offer that is rented at a cloud.
func (u *user) soldBy(c cloud) apitype.Offer {
	u.t.Helper()
	var found apitype.Offer
	until(u.t, c.offer+" of "+c.seller, func() bool {
		for _, list := range steady(u.t, func() (map[string][]apitype.Offer, error) { return u.Resources(u.t.Context()) }) {
			i := slices.IndexFunc(list, func(o apitype.Offer) bool { return o.Provider == c.seller && o.CloudID == c.offer && o.GPUCount == 1 })
			if i >= 0 {
				found = list[i]
				return true
			}
		}
		return false
	})
	return found
}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{16,}={0,2}`)

// checkSecrets looks at a pod as its user can: the token of its agent is in a
// file of root's, and in no environment and no argument, also not encoded. What
// opens clouds, stores and the server is nowhere.
func (u *user) checkSecrets(p apitype.Pod, token string, secrets ...string) {
	u.t.Helper()
	if token == "" {
		u.t.Error("no token is known")
	}
	if got := u.run(p, "cat /opt/homeport/token; stat -c '%u %a' /opt/homeport/token"); got != token+"\n0 600\n" {
		u.t.Errorf("the agent's token is kept as %q", got)
	}
	programs := u.run(p, `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'`)
	for _, word := range encoded.FindAllString(programs, -1) {
		text, _ := base64.StdEncoding.DecodeString(word) // most are no such text
		programs += string(text)
	}
	if !strings.Contains(programs, "homeport-agent") || strings.Contains(programs, token) {
		u.t.Errorf("the programs of the pod %s show its token, or are not seen", p.ID)
	}
	files := u.run(p, `find /etc /opt /root /run /tmp /var -xdev -type f -size -1000k -exec cat {} + 2>/dev/null || true`)
	if !strings.Contains(files, token) {
		u.t.Error("the files were not read")
	}
	for _, secret := range secrets {
		if secret == "" || strings.Contains(programs+files, secret) {
			u.t.Errorf("a secret of the server is in the pod %s", p.ID)
		}
	}
}
