package hyperstack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/hyperstack/hyperstacktest"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// creates are the requests for a machine that the double got.
func creates(double *cloudtest.Cloud) []cloudtest.Request {
	var list []cloudtest.Request
	for _, r := range double.Requests() {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/virtual-machines") {
			list = append(list, r)
		}
	}
	return list
}

func TestMachineIsAskedForInHyperstacksWords(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, 0)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(creates(double)[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if key, _ := body["key_name"].(string); !strings.HasPrefix(key, "homeport-") {
		t.Errorf("the key is %q", key)
	}
	delete(body, "key_name")
	delete(body, "user_data") // see below
	want := map[string]any{
		"name": l.Name, "environment_name": "homeport-canada-1", "flavor_name": "t3-H100x1", "count": 1.0, "labels": []any{"homeport"},
		"image_name":         "Ubuntu Server 24.04 LTS R570 CUDA 12.8 with Docker",
		"assign_floating_ip": true, "enable_port_randomization": false, "create_bootable_volume": false,
		"security_rules": []any{map[string]any{
			"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "remote_ip_prefix": "0.0.0.0/0", "port_range_min": 22.0, "port_range_max": 22.0,
		}},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

func TestMachineStartsTheAgent(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	boottest.Launch(t, c, double, func(start string) []string { return boottest.CloudInit(t, start) })
}

// TestImageFitsTheFlavor: the newest CUDA that the flavor may have.
func TestImageFitsTheFlavor(t *testing.T) {
	t.Parallel()
	a := hyperstacktest.NewAccount(t)
	c, double := freshOf(t, hyperstacktest.Dialect(a))
	if _, err := c.Launch(t.Context(), providertest.Request(t, c, 2)); err != nil {
		t.Fatal(err)
	}
	var body struct {
		Image string `json:"image_name"`
	}
	if err := json.Unmarshal(creates(double)[0].Body, &body); err != nil || body.Image != "Ubuntu Server 24.04 LTS R580 CUDA 13.0 with Docker" {
		t.Errorf("the machine starts with %q, %v", body.Image, err)
	}
	a.Images = map[string]any{"images": []any{}}
	c, double = freshOf(t, hyperstacktest.Dialect(a))
	if _, err := c.Launch(t.Context(), providertest.Request(t, c, 0)); !errors.Is(err, provider.ErrRefused) || len(creates(double)) > 0 {
		t.Errorf("without an image: %v", err)
	}
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Hyperstack's own table: what is
// not certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) cloudtest.Answer {
		return cloudtest.Answer{Status: status, Body: body, Header: map[string]string{"Location": base + "/core/virtual-machines"}}
	}
	for _, row := range []struct {
		cloudtest.Answer
		want error // nil = ambiguous
	}{
		{hyperstacktest.Failure(400, "bad_request", "Not Enough Stock of H100-80G-PCIe. Unable to launch virtual-machines."), provider.ErrNoCapacity},
		{hyperstacktest.Failure(400, "bad_request", "You exceeded your quota of virtual machines."), provider.ErrNoCapacity},
		{hyperstacktest.Failure(400, "bad_request", "Insufficient credit."), provider.ErrFunds},
		{hyperstacktest.Failure(403, "forbidden", "You do not have enough credit."), provider.ErrFunds},
		{answer(402, ""), provider.ErrFunds},
		{hyperstacktest.Failure(400, "bad_request", "Flavor is not compatible with the image."), provider.ErrRefused},
		{hyperstacktest.Failure(404, "not_found", "Environment does not exist."), provider.ErrRefused},
		{hyperstacktest.Failure(401, "unauthorized", "Invalid API key"), provider.ErrRefused},
		{hyperstacktest.Failure(409, "already_exist", "A virtual machine of this name exists. Out of stock."), nil},
		{hyperstacktest.Failure(500, "internal", "Not Enough Stock"), nil}, // a 5xx is never believed
		{answer(408, ""), nil},
		{answer(502, "<html>bad gateway</html>"), nil},
		{answer(302, ""), nil},
		{answer(200, `{}`), nil},
		{answer(200, `{"status":true,"instances":[]}`), nil},
		{answer(200, `{"status":true,"instances":[{"id":0}]}`), nil},
		{answer(200, `{"status":true,"instances":[{"id":1},{"id":2}]}`), nil},
	} {
		d := hyperstacktest.Dialect(hyperstacktest.NewAccount(t))
		d.Refusals["launch/row"] = row.Answer
		c, double := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
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
	if _, err := first.Launch(t.Context(), providertest.Request(t, first, 0)); err != nil {
		t.Fatal(err)
	}
	var body struct {
		UserData string `json:"user_data"`
	}
	if err := json.Unmarshal(creates(double)[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	d := hyperstacktest.Dialect(hyperstacktest.NewAccount(t))
	d.Refusals["launch/echo"] = hyperstacktest.Failure(400, "bad_request", body.UserData[strings.Index(body.UserData, "content"):]+token)
	c, double := freshOf(t, d)
	double.Inject(t, "launch", "echo", 1)
	_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
	if err == nil || !strings.Contains(err.Error(), "[hidden]") || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "IyEvYmluL3No") {
		t.Errorf("the error is %v", err)
	}
}

// TestNothingIsAskedForWhenTheLookFails: every error of what comes before says
// that there is no machine.
func TestNothingIsAskedForWhenTheLookFails(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"GET/core/environments", "POST/core/environments", "GET/core/keypairs", "POST/core/keypairs", "GET/core/images", "GET/core/flavors"} {
		d := hyperstacktest.Dialect(hyperstacktest.NewAccount(t))
		d.Refusals[op+"/broken"] = cloudtest.Answer{Status: 502, Body: "<html>"}
		c, double := freshOf(t, d)
		l := providertest.Request(t, c, 0)
		double.Inject(t, op, "broken", 1)
		if _, err := c.Launch(t.Context(), l); !errors.Is(err, provider.ErrUnreachable) || len(creates(double)) > 0 {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestInstancesAreReadInOurWords: what Hyperstack's words mean of a machine.
func TestInstancesAreReadInOurWords(t *testing.T) {
	t.Parallel()
	const at = `,"floating_ip":"192.0.2.7","floating_ip_status":"ATTACHED"`
	building := provider.Machine{State: provider.Building}
	failed := func(why string) provider.Machine { return provider.Machine{State: provider.Failed, Reason: why} }
	for body, want := range map[string]provider.Machine{
		`"status":"CREATING","vm_state":null,"floating_ip":null`:                                           building,
		`"status":"BUILD","vm_state":"building"` + at:                                                      building,
		`"status":"STARTING","vm_state":"active"` + at:                                                     building,
		`"status":"REBOOTING","vm_state":"active"` + at:                                                    building,
		`"status":"HARD_REBOOT","vm_state":"active"` + at:                                                  building,
		`"status":"A_NEW_WORD","vm_state":"active"` + at:                                                   building,
		`"status":"ACTIVE","vm_state":"active"` + at:                                                       {State: provider.Running, Host: "192.0.2.7", SSHPort: 22, SSHUser: "ubuntu"},
		`"status":"ACTIVE","vm_state":"building"` + at:                                                     building,
		`"status":"ACTIVE","vm_state":"active","floating_ip":null`:                                         building,
		`"status":"ACTIVE","vm_state":"active","floating_ip":"","floating_ip_status":"ATTACHED"`:           building,
		`"status":"ACTIVE","vm_state":"active","floating_ip":"192.0.2.7","floating_ip_status":"ATTACHING"`: building,
		`"status":"SHUTOFF","vm_state":"stopped"` + at:                                                     failed("The cloud stopped the machine."),
		`"status":"STOPPING","vm_state":"active"` + at:                                                     failed("The cloud stopped the machine."),
		`"status":"SUSPENDED","vm_state":"suspended"` + at:                                                 failed("The cloud stopped the machine."),
		`"status":"HIBERNATING","vm_state":"active"` + at:                                                  failed("The machine was put to sleep."),
		`"status":"HIBERNATED","vm_state":"hibernated"` + at:                                               failed("The machine was put to sleep."),
		`"status":"ERROR","vm_state":"error"` + at:                                                         failed("The cloud reported an error."),
		`"status":"DELETING","vm_state":"active"` + at:                                                     {State: provider.Terminating},
		`"status":"DELETED","vm_state":"deleted"`:                                                          {State: provider.Gone},
	} {
		for _, made := range []string{"2026-01-02T03:04:05", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05.000000"} { // with a zone or without
			d := hyperstacktest.Dialect(hyperstacktest.NewAccount(t))
			d.Refusals["find/row"] = cloudtest.Answer{
				Status: 200, Body: `{"status":true,"count":2,"instances":[{"id":31,"name":"hp-test-1","created_at":"` + made + `",` + body + `},{"id":32,"name":"other","created_at":null}]}`,
			}
			c, double := freshOf(t, d)
			double.Inject(t, "find", "row", 1)
			list, err := c.Find(t.Context(), "hp-test-")
			want.Ref, want.Name, want.CreatedAt = "31", "hp-test-1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			if diff := cmp.Diff([]provider.Machine{want}, list); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", body, err, diff)
			}
		}
	}
}

// TestAllPagesAreRead: however many Hyperstack shows at once, and whatever it
// counts.
func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	a := hyperstacktest.NewAccount(t)
	a.OnPage = 2
	c, _ := freshOf(t, hyperstacktest.Dialect(a))
	l := providertest.Request(t, c, 0)
	for i := range 5 {
		l.Name = fmt.Sprintf("hp-test-%08d-1", i)
		if _, err := c.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	list, err := c.Find(t.Context(), "hp-test-")
	for _, m := range list {
		seen[m.Name] = true
	}
	if err != nil || len(list) != 5 || len(seen) != 5 {
		t.Errorf("of 5 machines %v are found, %v", list, err)
	}
}

// TestAListWithoutAnEndIsAnError: it would never be known to be whole.
func TestAListWithoutAnEndIsAnError(t *testing.T) {
	t.Parallel()
	a := hyperstacktest.NewAccount(t)
	d := hyperstacktest.Dialect(a)
	routes := d.Routes
	d.Routes = func(c *cloudtest.Cloud, mux *http.ServeMux) {
		n := 0
		inner := http.NewServeMux()
		routes(c, inner)
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/virtual-machines") {
				inner.ServeHTTP(w, r)
				return
			}
			n++
			one := maps.Clone(a.Instance)
			one["id"] = n
			cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "instances": []any{one}})
		})
	}
	c, _ := freshOf(t, d)
	if list, err := c.Find(t.Context(), "hp-"); err == nil {
		t.Errorf("found %v and no error", list)
	}
}

func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cloudtest.Answer
		ok     bool
		notYet bool
	}{
		{hyperstacktest.Failure(404, "not_found", "Virtual machine not found."), true, false},
		{hyperstacktest.Failure(400, "bad_request", "The virtual machine does not exist."), true, false},
		{hyperstacktest.Failure(409, "conflict", "The virtual machine is being deleted."), true, false},
		{hyperstacktest.Failure(400, "bad_request", "The virtual machine is currently being created and cannot be deleted yet."), false, true},
		{hyperstacktest.Failure(409, "conflict", "A snapshot of it is made, try again."), false, true},
		{hyperstacktest.Failure(409, "conflict", "The virtual machine is locked."), false, false},
		{hyperstacktest.Failure(401, "unauthorized", "Invalid API key"), false, false},
		{hyperstacktest.Failure(500, "internal", "being deleted, try again"), false, false},
		{cloudtest.Answer{Status: 200, Body: `{"status":false,"message":"no"}`}, false, false},
		{cloudtest.Answer{Status: 200, Body: `{}`}, false, false},
	} {
		d := hyperstacktest.Dialect(hyperstacktest.NewAccount(t))
		d.Refusals["terminate/row"] = row.Answer
		c, double := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		err := c.Terminate(t.Context(), "31")
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
	}
}
