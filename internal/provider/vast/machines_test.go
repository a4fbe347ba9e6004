package vast_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/vast/vasttest"
)

// half is the offer of half of a machine that lets its halves at three prices.
const half = 2

const token = "token-of-the-instance"

// creates are the requests for a machine that the double got.
func creates(double *cloudtest.Cloud) []cloudtest.Request {
	var list []cloudtest.Request
	for _, r := range double.Requests() {
		if r.Method == http.MethodPut {
			list = append(list, r)
		}
	}
	return list
}

// TestMachineIsAskedForInVastsWords: of the asks of that machine the cheapest,
// by the id that it has now.
func TestMachineIsAskedForInVastsWords(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	if _, err := c.Launch(t.Context(), providertest.Request(t, c, half)); err != nil {
		t.Fatal(err)
	}
	asked := creates(double)
	var body map[string]any
	if err := json.Unmarshal(asked[0].Body, &body); err != nil || len(asked) != 1 || asked[0].Path != "/api/v0/asks/2004/" {
		t.Fatalf("%d requests, %s, %v", len(asked), asked[0].Path, err)
	}
	delete(body, "args") // see below
	want := map[string]any{
		"image": image, "label": "hp-test-00000001-1", "disk": 64.0, "env": map[string]any{"-p 22:22": "1"}, "runtype": "args", "onstart": "/bin/sh",
		"target_state": "running", "cancel_unavail": true,
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

// TestContainerStartsTheAgent runs the container's command, which means the same
// however it is passed on.
func TestContainerStartsTheAgent(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	boottest.Launch(t, c, double, func(start string) []string {
		words := strings.Split(start, "\x00")
		if len(words) != 3 || strings.ContainsAny(words[2], "'\n") || strings.Contains(words[2], token) {
			t.Errorf("the command does not mean the same to all: %q", words)
		}
		return words
	})
}

// TestOfferIsLookedForAgain: what somebody else took, or what is dearer or not
// the same any more, is not asked for.
func TestOfferIsLookedForAgain(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		change func(a map[string]any)
		want   error
	}{
		"taken":         {func(a map[string]any) { a["rentable"] = false }, provider.ErrNoCapacity},
		"dearer":        {func(a map[string]any) { a["dph_total"] = 7.900001 }, provider.ErrPriceMoved},
		"another GPU":   {func(a map[string]any) { a["gpu_name"] = "H100 NVL"; a["gpu_ram"] = 95830.0 }, provider.ErrNoCapacity},
		"elsewhere":     {func(a map[string]any) { a["geolocation"] = "Ohio, US" }, provider.ErrNoCapacity},
		"at somebody's": {func(a map[string]any) { a["hosting_type"] = 0.0 }, provider.ErrNoCapacity},
		"not verified":  {func(a map[string]any) { a["verification"] = "deverified" }, provider.ErrNoCapacity},
	} {
		asks := vasttest.Asks(t)
		c, double, _ := freshOf(t, vasttest.Dialect(t, asks))
		l := providertest.Request(t, c, half)
		for _, a := range asks {
			if a["machine_id"] == 31002.0 {
				one.change(a)
			}
		}
		if _, err := c.Launch(t.Context(), l); !errors.Is(err, one.want) || !provider.NoMachine(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(creates(double)); n != 0 {
			t.Errorf("%s: a machine was asked for %d times", name, n)
		}
	}
}

// TestInstanceThatARefusalNamesIsEnded: it stands still and its disk costs.
func TestInstanceThatARefusalNamesIsEnded(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, half)
	double.Inject(t, "launch", "stopped", 1)
	if _, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
		t.Errorf("a refusal that names an instance: %v", err)
	}
	if held := double.Machines(t); len(held) != 0 {
		t.Errorf("the cloud still holds %v", held)
	}
	double.Inject(t, "launch", "stopped", 1)
	double.Inject(t, "terminate", "error", 1)
	if _, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
		t.Errorf("a refusal that names an instance which does not end: %v", err)
	}
	if list, err := c.Find(t.Context(), l.Name); err != nil || len(list) != 1 {
		t.Errorf("it is not found again: %v, %v", list, err)
	}
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Vast's own table: what is not
// certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) cloudtest.Answer {
		return cloudtest.Answer{Status: status, Body: body, Header: map[string]string{"Location": base + "/v0/instances/"}}
	}
	for _, row := range []struct {
		cloudtest.Answer
		want error // nil = ambiguous
	}{
		{vasttest.Refusal(404, "invalid_args", "error 404/3603: no_such_ask Instance type by id 1234567 is not available."), provider.ErrNoCapacity},
		{vasttest.Refusal(410, "no_such_ask", "error 410/3907: no_such_ask Instance type 1234567 is no longer available."), provider.ErrNoCapacity},
		{answer(410, ""), provider.ErrNoCapacity},
		{vasttest.Refusal(400, "lacks_credit", "Your account lacks credit; see the billing page."), provider.ErrFunds},
		{vasttest.Refusal(402, "", ""), provider.ErrFunds},
		{vasttest.Refusal(400, "invalid_args", "error 400/3467: Invalid args"), provider.ErrRefused},
		{vasttest.Refusal(400, "invalid_price", ""), provider.ErrRefused},
		{vasttest.Refusal(401, "auth_error", "Invalid user key"), provider.ErrRefused},
		{vasttest.Refusal(404, "auth_error", "Invalid user key"), provider.ErrRefused},
		{vasttest.Refusal(403, "invalid_args", "error 403/3586: Offer 1234567 is not your own."), provider.ErrRefused},
		{vasttest.Refusal(409, "conflict", ""), nil},
		{vasttest.Refusal(500, "no_such_ask", "is no longer available"), nil}, // a 5xx is never believed
		{answer(408, ""), nil},
		{answer(502, "<html>bad gateway</html>"), nil},
		{answer(301, ""), nil},
		{answer(200, `{}`), nil},
		{answer(200, `{"success":false,"error":"no_such_ask"}`), nil},
		{answer(200, `{"success":true,"new_contract":0}`), nil},
		{answer(200, `{"success":true,"new_contract":-7}`), nil},
		{answer(200, `{"success":true,"new_contract":"../asks"}`), nil},
	} {
		d := vasttest.Dialect(t, vasttest.Asks(t))
		d.Refusals["launch/row"] = row.Answer
		c, double, _ := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, half))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
		if n := len(creates(double)); n != 1 {
			t.Errorf("%d %s: a machine was asked for %d times", row.Status, row.Body, n)
		}
	}
}

// TestErrorsDoNotShowTheToken: a cloud may repeat what it was sent.
func TestErrorsDoNotShowTheToken(t *testing.T) {
	t.Parallel()
	first, double := fresh(t)
	if _, err := first.Launch(t.Context(), providertest.Request(t, first, half)); err != nil {
		t.Fatal(err)
	}
	d := vasttest.Dialect(t, vasttest.Asks(t))
	d.Refusals["launch/echo"] = cloudtest.Answer{Status: 400, Body: string(creates(double)[0].Body) + token}
	c, double, _ := freshOf(t, d)
	double.Inject(t, "launch", "echo", 1)
	_, err := c.Launch(t.Context(), providertest.Request(t, c, half))
	if err == nil || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "IyEvYmluL3No") {
		t.Errorf("the error is %v", err)
	}
}

// TestInstancesAreReadInOurWords: what Vast's words mean of a machine.
func TestInstancesAreReadInOurWords(t *testing.T) {
	t.Parallel()
	const at = `"public_ipaddr":" 192.0.2.7\n","ports":{"22/tcp":[{"HostIp":"0.0.0.0","HostPort":"40022"},{"HostIp":"::","HostPort":"40023"}]}`
	building := provider.Machine{State: provider.Building}
	failed := func(why string) provider.Machine { return provider.Machine{State: provider.Failed, Reason: why} }
	for body, want := range map[string]provider.Machine{
		`"actual_status":null,"public_ipaddr":"","ports":null`:                                                   building,
		`"actual_status":"loading",` + at:                                                                        building,
		`"actual_status":"created","status_msg":null`:                                                            building,
		`"actual_status":"rebooting",` + at:                                                                      building,
		`"actual_status":"scheduling",` + at:                                                                     building,
		`"actual_status":"running",` + at:                                                                        {State: provider.Running, Host: "192.0.2.7", SSHPort: 40022},
		`"actual_status":"running","public_ipaddr":"192.0.2.7","ports":{}`:                                       building,
		`"actual_status":"running","public_ipaddr":"192.0.2.7","ports":{"8080/tcp":[{"HostPort":"40022"}]}`:      building,
		`"actual_status":"running","public_ipaddr":"192.0.2.7","ports":{"22/tcp":[{"HostPort":"400220"}]}`:       building,
		`"actual_status":"running","public_ipaddr":"  ","ports":{"22/tcp":[{"HostPort":"40022"}]}`:               building,
		`"actual_status":"exited",` + at:                                                                         failed("The container ended."),
		`"actual_status":"stopped",` + at:                                                                        failed("The host stopped the container."),
		`"actual_status":"frozen",` + at:                                                                         failed("The host stopped the container."),
		`"actual_status":"offline",` + at:                                                                        failed("The host is offline."),
		`"actual_status":"unknown",` + at:                                                                        failed("The host is offline."),
		`"actual_status":"created","status_msg":"Error: OCI runtime create failed: exec: token-of-the-instance"`: failed("The host could not start the container."),
		`"actual_status":null,"cur_state":"stopped","next_state":"stopped","intended_status":"stopped"`:          failed("The host never started the container."),
		`"actual_status":"loading","cur_state":"stopped","next_state":"running","intended_status":"running"`:     building,
	} {
		d := vasttest.Dialect(t, nil)
		d.Refusals["find/row"] = cloudtest.Answer{
			Status: 200, Body: `{"next_token":null,"instances":[{"id":31,"label":"hp-test-1","start_date":1767323045.25,` + body + `},{"id":32,"label":null},{"id":33,"label":"other"}]}`,
		}
		c, double, _ := freshOf(t, d)
		double.Inject(t, "find", "row", 1)
		list, err := c.Find(t.Context(), "hp-test-")
		want.Ref, want.Name, want.CreatedAt = "31", "hp-test-1", time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
		if diff := cmp.Diff([]provider.Machine{want}, list); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", body, err, diff)
		}
	}
}

func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cloudtest.Answer
		ok     bool
		notYet bool
	}{
		{vasttest.Refusal(404, "no_such_instance", "Instance 31 not found"), true, false},
		{vasttest.Refusal(404, "not_found", "Instance not found"), true, false},
		{vasttest.Refusal(400, "no_such_instance", ""), true, false},
		{cloudtest.Answer{Status: 200, Body: `{"success":false,"error":"no_such_instance"}`}, true, false},
		{cloudtest.Answer{Status: 200, Body: `{"success":false,"error":"busy"}`}, false, false},
		{cloudtest.Answer{Status: 200, Body: `{}`}, false, false},
		{vasttest.Refusal(404, "auth_error", "Invalid user key"), false, false}, // whoever is not let in knows nothing
		{vasttest.Refusal(401, "auth_error", "Unauthorized"), false, false},
		{vasttest.Refusal(400, "invalid_args", "The instance is still being created."), false, true},
		{vasttest.Refusal(429, "rate_limit_exceeded", "API requests too frequent endpoint threshold=3.0, try again"), false, false},
		{vasttest.Refusal(500, "", "try again"), false, false},
		{vasttest.Refusal(500, "no_such_instance", ""), false, false},
	} {
		d := vasttest.Dialect(t, nil)
		d.Refusals["terminate/row"] = row.Answer
		c, double, _ := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		err := c.Terminate(t.Context(), "31")
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
	}
}
