package verda_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda"
)

const foreign = "1f0c0a52-1111-4222-8333-444455556666"

func TestVerdaKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double, _ := fresh(t)
		return c, double
	})
}

// TestJourneyLeavesNothingBehind makes every call. The double refuses a request
// with a member that is not known of Verda, which publishes no description.
func TestJourneyLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c, double, a := fresh(t)
	providertest.Journey(t, c)
	if left := a.scriptNames(); len(left) > 0 {
		t.Errorf("scripts are left: %v", left)
	}
	for _, r := range double.Requests() {
		if strings.Contains(r.Path, "key") {
			t.Errorf("%s %s: keys need not be left at Verda", r.Method, r.Path)
		}
	}
}

// TestRecordedAnswersAreAsTheDoubles: what the double answers has the members
// that Verda's answers had, and no others.
func TestRecordedAnswersAreAsTheDoubles(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	members := func(v map[string]any) []string { return slices.Sorted(maps.Keys(v)) }
	for name, ours := range map[string]map[string]any{
		"instance-types.sample.json": a.Types[0], "instances.shape.json": a.instance, "locations.sample.json": a.Locations[0],
		"instance-availability-spot.sample.json": a.Stock[0],
	} {
		var recorded []map[string]any
		cloudtest.Read(t, cloudtest.Shared(t, "verda/"+name), &recorded)
		if diff := cmp.Diff(members(recorded[0]), members(ours)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func row(id, token string, n, memory, ram, vcpu int, socket, country, dc, image string, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: "verda", CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
		Country: country, DataCenterID: dc, Security: "secure_cloud", Image: image, DiskGB: 100, DiskPrice: 274, UpstreamPrice: price,
	}
}

// TestOffersAreWhatVerdaSells: see the catalogue for what is dropped, and why.
func TestOffersAreWhatVerdaSells(t *testing.T) {
	t.Parallel()
	c, _, _ := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Offer{
		row("1A6000.9X", "A6000_48GB", 1, 48, 55, 9, "PCIe", "FI", "OUL-01", "ubuntu-24.04", 491_235), // part of a micro-dollar is one
		row("4A100.99X", "A100_80GB", 4, 320, 480, 96, "SXM4", "FI", "OUL-01", "ubuntu-24.04", 5_160_000),
		row("1V100.5X", "V100_16GB", 1, 16, 22, 5, "PCIe", "FI", "OUL-01", "ubuntu-22.04", 140_000),
		row("1L40S.19X", "L40S_48GB", 1, 48, 58, 19, "PCIe", "FI", "OUL-01", "ubuntu-24.04", 950_000), // the dearer of two of a name
		row("4A100.99X", "A100_80GB", 4, 320, 480, 96, "SXM4", "IS", "AKU-02", "ubuntu-24.04", 5_160_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedCatalogueIsUnderstood reads what Verda once answered. What it had
// of spot machines stands for what it has on demand.
func TestRecordedCatalogueIsUnderstood(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.Types, a.Stock, a.Locations = nil, nil, nil
	cloudtest.Read(t, cloudtest.Shared(t, "verda/instance-types.sample.json"), &a.Types)
	cloudtest.Read(t, cloudtest.Shared(t, "verda/instance-availability-spot.sample.json"), &a.Stock)
	cloudtest.Read(t, cloudtest.Shared(t, "verda/locations.sample.json"), &a.Locations)
	c, _ := freshOf(t, a, dialect(a), nil)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Offer{
		row("2A6000.20V", "A6000_48GB", 2, 96, 120, 20, "PCIe", "FI", "FIN-01", "ubuntu-24.04", 1_980_000),
		row("1V100.6V", "V100_16GB", 1, 16, 23, 6, "PCIe", "FI", "FIN-01", "ubuntu-24.04", 890_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestOffersAreNotGuessed: a list that is missing is an error, not an empty one.
func TestOffersAreNotGuessed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(a *account){
		"no price of a disk": func(a *account) { a.VolumeTypes = a.VolumeTypes[:2] },
		"no stock":           func(a *account) { a.Stock = nil },
		"no places":          func(a *account) { a.Locations = nil },
	} {
		c, _, a := fresh(t)
		spoil(a)
		if list, err := c.Offers(t.Context()); err == nil {
			t.Errorf("%s: %v and no error", name, list)
		}
	}
}

// body is that of the last request of a method to a path.
func body(t *testing.T, double *cloudtest.Cloud, method, path string) map[string]any {
	t.Helper()
	for _, r := range slices.Backward(double.Requests()) {
		if r.Method == method && r.Path == base+path {
			var got map[string]any
			if err := json.Unmarshal(r.Body, &got); err != nil {
				t.Fatal(err)
			}
			return got
		}
	}
	t.Fatalf("no %s %s", method, path)
	return nil
}

func TestMachineIsAskedForInVerdasWords(t *testing.T) {
	t.Parallel()
	c, double, a := fresh(t)
	for i, want := range map[int]struct{ kind, place, image string }{
		0: {"1A6000.9X", "OUL-01", "ubuntu-24.04-cuda-12.8-open"}, // the default of those with CUDA
		2: {"1V100.5X", "OUL-01", "ubuntu-22.04-cuda-12.4"},       // the only one that it takes
		4: {"4A100.99X", "AKU-02", "ubuntu-24.04-cuda-12.8-open"},
	} {
		m, err := c.Launch(t.Context(), providertest.Request(t, c, i))
		if err != nil {
			t.Fatal(err)
		}
		var seen cloudtest.Machine
		if !double.Change(m.Ref, func(m *cloudtest.Machine) { seen = *m }) {
			t.Fatal("the machine is not there")
		}
		if diff := cmp.Diff(map[string]any{
			"instance_type": want.kind, "image": want.image, "hostname": "hp-test-00000001-1", "description": "hp-test-00000001-1",
			"location_code": want.place, "ssh_key_ids": []any{}, "startup_script_id": seen.Words["script"], "is_spot": false,
			"contract": "PAY_AS_YOU_GO", "pricing": "FIXED_PRICE", "os_volume": map[string]any{"name": "hp-test-00000001-1", "size": 100.0},
		}, body(t, double, http.MethodPost, "/instances")); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(seen.Start, "https://homeport.example/agent/install") || !strings.Contains(seen.Start, "token-of-the-instance") {
			t.Errorf("the machine starts with %q", seen.Start)
		}
		if err := c.Terminate(t.Context(), m.Ref); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{
			"action": "delete", "id": []any{m.Ref}, "volume_ids": []any{seen.Words["volume"]}, "delete_permanently": true,
		}, body(t, double, http.MethodPut, "/instances")); diff != "" {
			t.Error(diff)
		}
		if left := a.scriptNames(); len(left) > 0 {
			t.Errorf("scripts are left: %v", left)
		}
	}
}

// TestATypeWithoutACUDAImageIsRefused: a machine without a driver is no use.
func TestATypeWithoutACUDAImageIsRefused(t *testing.T) {
	t.Parallel()
	c, double, a := fresh(t)
	l := providertest.Request(t, c, 0)
	a.Images = a.Images[:1]
	if _, err := c.Launch(t.Context(), l); !errors.Is(err, provider.ErrRefused) || len(double.Machines(t)) > 0 || len(a.scriptNames()) > 0 {
		t.Errorf("%v; it has %v and %v", err, double.Machines(t), a.scriptNames())
	}
}

func TestMachineStartsTheAgent(t *testing.T) {
	t.Parallel()
	c, double, _ := fresh(t)
	boottest.Launch(t, c, double, boottest.Script)
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Verda's own table: what is not
// certain is ambiguous, and keeps the script that a machine may start with.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status     int
		code, text string
		want       error // nil = ambiguous
	}{
		{503, "service_unavailable", "No capacity available", provider.ErrNoCapacity}, // the one 5xx that says what it means
		{503, "service_unavailable", "Please try again later", nil},
		{503, "", "No capacity available", nil},
		{400, "invalid_request", "There are not enough resources in FIN-01", provider.ErrNoCapacity},
		{403, "forbidden_action", "The instance type is not available", provider.ErrNoCapacity},
		{402, "insufficient_funds", "", provider.ErrFunds},
		{403, "insufficient_funds", "", provider.ErrFunds},
		{400, "invalid_request", "hostname", provider.ErrRefused},
		{401, "unauthorized_request", "", provider.ErrRefused},
		{409, "conflict", "", nil},
		{408, "", "", nil},
		{500, "server_error", "not enough resources", nil},
		{502, "", "<html>bad gateway</html>", nil},
		{202, "", "accepted", nil},
	} {
		a := newAccount(t)
		d := dialect(a)
		d.Refusals["launch/row"] = problem(row.status, row.code, row.text)
		c, double := freshOf(t, a, d, nil)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s %s: %v", row.status, row.code, row.text, err)
		}
		if left := a.scriptNames(); (len(left) == 0) != (row.want != nil) {
			t.Errorf("%d %s %s: it left the scripts %v", row.status, row.code, row.text, left)
		}
	}
}

func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	const provisioning = "Can't discontinue a provisioning instance"
	part := func(status int, rest string) cloudtest.Answer {
		return cloudtest.Answer{Status: status, Body: `[{"action":"delete","instanceId":"@ref",` + rest + `}]`}
	}
	for _, row := range []struct {
		answer cloudtest.Answer
		ok     bool
		notYet bool
	}{
		{problem(404, "not_found", ""), true, false},
		{problem(400, "invalid_request", "Invalid instance id"), true, false},
		{problem(403, "forbidden_action", "Can't discontinue a discontinued instance"), true, false},
		{problem(403, "forbidden_action", provisioning), false, true},
		{problem(403, "forbidden_action", "not with this key"), false, false},
		{problem(500, "server_error", provisioning), false, false},
		{cloudtest.Answer{Status: 204}, true, false},
		{cloudtest.Answer{Status: 202}, true, false},
		{part(202, `"status":"success"`), true, false},
		{part(207, `"status":"error","statusCode":403,"error":"`+provisioning+`"`), false, true},
		{part(207, `"status":"error","error":{"code":"forbidden_action","message":"`+provisioning+`"}`), false, true},
		{part(202, `"status":"error","statusCode":403,"error":"`+provisioning+`"`), false, true}, // whatever the status says
		{part(207, `"status":"error","statusCode":404,"error":"Invalid instance id"`), true, false},
		{part(207, `"status":"error","statusCode":500,"error":"oh"`), false, false},
		{part(207, `"status":"error"`), false, false},
		{cloudtest.Answer{Status: 207, Body: `[]`}, false, false},
		{cloudtest.Answer{Status: 207, Body: `<html>`}, false, false},
	} {
		a := newAccount(t)
		d := dialect(a)
		c, double := freshOf(t, a, d, nil)
		m, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if err != nil {
			t.Fatal(err)
		}
		row.answer.Body = strings.ReplaceAll(row.answer.Body, "@ref", m.Ref)
		d.Refusals["terminate/row"] = row.answer
		double.Inject(t, "terminate", "row", 1)
		err = c.Terminate(t.Context(), m.Ref)
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.answer.Status, row.answer.Body, err)
		}
		// A machine that is not on its way out keeps its script, and is tried again.
		if kept := len(a.scriptNames()) == 1; kept == row.ok {
			t.Errorf("%d %s: the script is kept: %t", row.answer.Status, row.answer.Body, kept)
		}
	}
}

// TestPartOfAnEndIsTriedAgain: a 207 whose own words refuse is no end.
func TestPartOfAnEndIsTriedAgain(t *testing.T) {
	t.Parallel()
	c, double, a := fresh(t)
	m, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
	if err != nil {
		t.Fatal(err)
	}
	double.Inject(t, "terminate", "partial", 1)
	if err := c.Terminate(t.Context(), m.Ref); !errors.Is(err, provider.ErrNotYet) || len(double.Machines(t)) != 1 {
		t.Errorf("%v; it has %v", err, double.Machines(t))
	}
	if err := c.Terminate(t.Context(), m.Ref); err != nil || len(double.Machines(t)) != 0 || len(a.scriptNames()) != 0 {
		t.Errorf("%v; it has %v and %v", err, double.Machines(t), a.scriptNames())
	}
	if err := c.Terminate(t.Context(), foreign); err != nil {
		t.Errorf("a machine that is not there: %v", err)
	}
}

// TestEveryStateIsMapped: only a machine with an address runs, and one that
// Verda found no room for after it took the order has failed.
func TestEveryStateIsMapped(t *testing.T) {
	t.Parallel()
	want := map[string]provider.State{
		"new": provider.Building, "ordered": provider.Building, "provisioning": provider.Building, "validating": provider.Building,
		"pending": provider.Building, "unknown": provider.Building, "a new word": provider.Building, "running": provider.Running,
		"offline": provider.Failed, "error": provider.Failed, "no_capacity": provider.Failed, "installation_failed": provider.Failed,
		"deleting": provider.Terminating, "discontinued": provider.Gone, "notfound": provider.Gone,
	}
	a := newAccount(t)
	var list []map[string]any
	for status := range want {
		one := maps.Clone(a.instance)
		one["hostname"], one["status"], one["ip"] = "hp-test-"+status, status, "192.0.2.7"
		list = append(list, one)
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	d := dialect(a)
	d.Refusals["find/states"] = cloudtest.Answer{Status: http.StatusOK, Body: string(b)}
	c, double := freshOf(t, a, d, nil)
	double.Inject(t, "find", "states", 1)
	found, err := c.Find(t.Context(), "hp-test-")
	if err != nil || len(found) != len(want) {
		t.Fatalf("%d found, %v", len(found), err)
	}
	for _, m := range found {
		status := strings.TrimPrefix(m.Name, "hp-test-")
		if m.State != want[status] || (m.State == provider.Failed) != (m.Reason != "") || (m.State == provider.Running) != (m.SSHPort == 22) {
			t.Errorf("%s is %+v", status, m)
		}
	}
}

func TestAnAnswerWithoutAListIsNotAnEmptyAccount(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"null", `{"message":"maintenance"}`, ""} {
		a := newAccount(t)
		d := dialect(a)
		d.Refusals["find/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: odd}
		c, double := freshOf(t, a, d, nil)
		double.Inject(t, "find", "odd", 1)
		if list, err := c.Find(t.Context(), "hp-"); err == nil {
			t.Errorf("%q: found %v and no error", odd, list)
		}
	}
}

// later is a clock that is moved by hand.
func later() (*clock.Clock, func(d time.Duration)) {
	var ahead atomic.Int64
	return clock.From(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }), func(d time.Duration) { ahead.Add(int64(d)) }
}

// TestScriptsOfBrokenLaunchesAreSwept: after a lost answer nobody else knows of
// the script. Those of machines that are there, of other installations and of
// the account's owner stay.
func TestScriptsOfBrokenLaunchesAreSwept(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	own, wait := later()
	c, double := freshOf(t, a, dialect(a), own)
	old := strconv.FormatInt(time.Now().Add(-240*time.Hour).Unix(), 10)
	for _, name := range []string{"setup.sh", "hp-test-notes", "hp-test-" + old + ".sh", "hp-othr-00000009-1." + old} {
		a.scripts[name] = map[string]any{"id": name, "name": name, "script": "#!/bin/sh"}
	}
	kept := a.scriptNames()

	if _, err := c.Launch(t.Context(), providertest.Request(t, c, 0)); err != nil {
		t.Fatal(err)
	}
	living := a.scriptNames()
	double.Inject(t, "launch", "error_before", 1)
	broken := providertest.Request(t, c, 0)
	broken.Name = "hp-test-00000002-1"
	if _, err := c.Launch(t.Context(), broken); err == nil || provider.NoMachine(err) {
		t.Fatalf("the answer was not lost: %v", err)
	}
	look := func(prefix string, want int) {
		t.Helper()
		if _, err := c.Find(t.Context(), prefix); err != nil {
			t.Fatal(err)
		}
		if left := a.scriptNames(); len(left) != want {
			t.Errorf("after a look at %s there are %v", prefix, left)
		}
	}
	look("hp-test-", len(living)+1) // a machine may still appear
	wait(2 * time.Hour)
	look("hp-test-00000002-1", len(living)+1) // who looks for one machine does not sweep
	look("hp-test-", len(living))
	if diff := cmp.Diff(living, a.scriptNames()); diff != "" {
		t.Error(diff)
	}
	double.Inject(t, "find", "empty", 1)
	look("hp-test-", len(kept))
	if diff := cmp.Diff(kept, a.scriptNames()); diff != "" {
		t.Error(diff)
	}
}

// patience notes how long each call could have waited for its turn.
type patience struct {
	cloudapi.Limiter
	mu   sync.Mutex
	list []time.Duration
}

// Wait implements cloudapi.Limiter.
func (p *patience) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	deadline, _ := ctx.Deadline()
	p.mu.Lock()
	p.list = append(p.list, time.Until(deadline))
	p.mu.Unlock()
	return p.Limiter.Wait(ctx, b, r)
}

// TestSweepTakesLittleOfTheTime: whoever looks through an installation ends
// machines afterwards.
func TestSweepTakesLittleOfTheTime(t *testing.T) {
	t.Parallel()
	double := cloudtest.New(t, dialect(newAccount(t)))
	p := &patience{Limiter: cloudapi.NewLocal(double.Clock)}
	c, err := verda.New(verda.Config{Key: clientID + ":" + clientSecret, BaseURL: double.URL, Limiter: p, Clock: double.Clock, Logger: cloudtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Find(ctx, "hp-test-"); err != nil {
		t.Fatal(err)
	}
	if n := len(p.list); n < 2 || p.list[0] < 20*time.Second || p.list[n-1] > 10*time.Second {
		t.Errorf("of a minute the calls could take %v", p.list)
	}
}

// TestTokensAreGotInTime: one is asked for once, renewed before it ends, and got
// anew where that is refused or it was withdrawn.
func TestTokensAreGotInTime(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	own, wait := later()
	c, _ := freshOf(t, a, dialect(a), own)
	look := func(want ...string) {
		t.Helper()
		if _, err := c.Find(t.Context(), "hp-test-1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, a.granted()); diff != "" {
			t.Error(diff)
		}
	}
	const anew, again = "client_credentials", "refresh_token"
	look(anew)
	wait(58 * time.Minute)
	look(anew)
	wait(90 * time.Second) // before it ends
	look(anew, again)
	a.noRenew, a.life = true, 0
	wait(2 * time.Hour)
	look(anew, again, again, anew)
	wait(10 * time.Minute) // it was not said how long that one is good
	look(anew, again, again, anew, again, anew)

	a.withdraw()
	if _, err := c.Find(t.Context(), "hp-test-1"); err == nil {
		t.Error("a withdrawn token is good")
	}
	look(anew, again, again, anew, again, anew, anew)
	l := providertest.Request(t, c, 0)
	a.withdraw()
	if _, err := c.Launch(t.Context(), l); err != nil { // the look before it noticed
		t.Errorf("launch after the tokens were withdrawn: %v", err)
	}
}

// TestWithoutATokenNothingIsAskedFor, and the error tells no secret.
func TestWithoutATokenNothingIsAskedFor(t *testing.T) {
	t.Parallel()
	good, double, _ := fresh(t)
	l := providertest.Request(t, good, 0)
	before := len(double.Requests())
	c, err := verda.New(verda.Config{
		Key: "other:" + clientSecret + "x", BaseURL: double.URL, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, clientSecret),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Launch(t.Context(), l)
	if !provider.NoMachine(err) || strings.Contains(err.Error(), clientSecret) {
		t.Errorf("without a token: %v", err)
	}
	for _, r := range double.Requests()[before:] {
		if r.Path != base+"/oauth2/token" {
			t.Errorf("%s %s without a token", r.Method, r.Path)
		}
	}
}

func TestKeyHasTwoParts(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{"id:secret": true, "id:se:cret": true, "": false, "id": false, ":secret": false, "id:": false} {
		if _, err := verda.New(verda.Config{Key: key}); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
	}
}
