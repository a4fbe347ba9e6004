package verda_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

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
		if left := a.ScriptNames(); len(left) > 0 {
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
	if _, err := c.Launch(t.Context(), l); !errors.Is(err, provider.ErrRefused) || len(double.Machines(t)) > 0 || len(a.ScriptNames()) > 0 {
		t.Errorf("%v; it has %v and %v", err, double.Machines(t), a.ScriptNames())
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
		a := verdatest.NewAccount(t)
		d := verdatest.Dialect(a)
		d.Refusals["launch/row"] = verdatest.Problem(row.status, row.code, row.text)
		c, double := freshOf(t, a, d, nil)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s %s: %v", row.status, row.code, row.text, err)
		}
		if left := a.ScriptNames(); (len(left) == 0) != (row.want != nil) {
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
		{verdatest.Problem(404, "not_found", ""), true, false},
		{verdatest.Problem(400, "invalid_request", "Invalid instance id"), true, false},
		{verdatest.Problem(403, "forbidden_action", "Can't discontinue a discontinued instance"), true, false},
		{verdatest.Problem(403, "forbidden_action", provisioning), false, true},
		{verdatest.Problem(403, "forbidden_action", "not with this key"), false, false},
		{verdatest.Problem(500, "server_error", provisioning), false, false},
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
		a := verdatest.NewAccount(t)
		d := verdatest.Dialect(a)
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
		if kept := len(a.ScriptNames()) == 1; kept == row.ok {
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
	if err := c.Terminate(t.Context(), m.Ref); err != nil || len(double.Machines(t)) != 0 || len(a.ScriptNames()) != 0 {
		t.Errorf("%v; it has %v and %v", err, double.Machines(t), a.ScriptNames())
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
	a := verdatest.NewAccount(t)
	var list []map[string]any
	for status := range want {
		one := maps.Clone(a.Instance)
		one["hostname"], one["status"], one["ip"] = "hp-test-"+status, status, "192.0.2.7"
		list = append(list, one)
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	d := verdatest.Dialect(a)
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
		a := verdatest.NewAccount(t)
		d := verdatest.Dialect(a)
		d.Refusals["find/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: odd}
		c, double := freshOf(t, a, d, nil)
		double.Inject(t, "find", "odd", 1)
		if list, err := c.Find(t.Context(), "hp-"); err == nil {
			t.Errorf("%q: found %v and no error", odd, list)
		}
	}
}
