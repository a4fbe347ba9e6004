package lambda_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/lambda/lambdatest"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const ref = "0123456789abcdef0123456789abcdef"

func TestMachineIsAskedForInLambdasWords(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, 0)
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Body, Key map[string]any
	}
	for _, r := range double.Requests() {
		switch r.Method + strings.TrimPrefix(r.Path, base) {
		case "POST/instance-operations/launch":
			err = json.Unmarshal(r.Body, &body.Body)
		case "POST/ssh-keys":
			err = json.Unmarshal(r.Body, &body.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if body.Key["public_key"] != publicKey {
		t.Errorf("Lambda was told %v", body.Key)
	}
	config, _ := body.Body["user_data"].(string)
	want := map[string]any{
		"region_name": "us-mesa-1", "instance_type_name": "t_1x_a10", "ssh_key_names": []any{body.Key["name"]}, "name": l.Name,
		"user_data": config, "tags": []any{map[string]any{"key": "homeport-made", "value": m.CreatedAt.Format(time.RFC3339)}},
	}
	if diff := cmp.Diff(want, body.Body); diff != "" {
		t.Error(diff)
	}
	_, rest, _ := strings.Cut(config, "content: ")
	content, _, _ := strings.Cut(rest, "\n")
	script, err := base64.StdEncoding.DecodeString(content)
	if err != nil || !strings.HasPrefix(config, "#cloud-config\n") ||
		!strings.Contains(string(script), "https://homeport.example/agent/install") || !strings.Contains(string(script), "token-of-the-instance") {
		t.Errorf("the machine starts with %q: %q, %v", config, script, err)
	}
}

func TestMachineStartsTheAgent(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	boottest.Launch(t, c, double, func(start string) []string { return boottest.CloudInit(t, start) })
}

// TestErrorsDoNotShowTheToken: a cloud may repeat what it was sent.
func TestErrorsDoNotShowTheToken(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, 0)
	userData, err := bootstrap.CloudInit(l.Bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	script, err := bootstrap.Script(l.Bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	double.Refusals["launch/echo"] = lambdatest.Failure(400, "global/invalid-parameters", userData)
	double.Inject(t, "launch", "echo", 1)
	_, err = c.Launch(t.Context(), l)
	var f *cloudapi.Failure
	if !errors.As(err, &f) || !strings.Contains(f.Error(), "[hidden]") {
		t.Fatalf("the error is %v", err)
	}
	if payload := base64.StdEncoding.EncodeToString([]byte(script)); strings.Contains(f.Error(), payload[:40]) {
		t.Errorf("the error shows the payload: %v", f)
	}
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Lambda's own table: what is not
// certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cloudtest.Answer
		want error // nil = ambiguous
	}{
		{lambdatest.Failure(400, "instance-operations/launch/insufficient-capacity", "none"), provider.ErrNoCapacity},
		{lambdatest.Failure(400, "global/quota-exceeded", "Quota exceeded."), provider.ErrNoCapacity},
		{lambdatest.Failure(403, "global/account-inactive", "Your account is inactive."), provider.ErrFunds},
		{lambdatest.Failure(403, "global/invalid-address", "Your billing address is invalid."), provider.ErrFunds},
		{cloudtest.Answer{Status: 402}, provider.ErrFunds},
		{lambdatest.Failure(400, "global/invalid-parameters", "no capacity"), provider.ErrRefused}, // its code counts
		{lambdatest.Failure(404, "global/object-does-not-exist", "SSH key"), provider.ErrRefused},
		{lambdatest.Failure(401, "global/invalid-api-key", "API key was invalid, expired, or deleted."), provider.ErrRefused},
		{lambdatest.Failure(409, "global/conflict", "an instance of this name exists"), nil},
		{lambdatest.Failure(400, "provider/internal-unavailable", "Provider unavailable"), nil},
		{lambdatest.Failure(500, "instance-operations/launch/insufficient-capacity", "none"), nil}, // a 5xx is never believed
		{cloudtest.Answer{Status: 408}, nil},
		{cloudtest.Answer{Status: 502, Body: "<html>bad gateway</html>"}, nil},
		{cloudtest.Answer{Status: 302, Header: map[string]string{"Location": "/api/v1/instances"}}, nil},
		{cloudtest.Answer{Status: 200, Body: `{}`}, nil},
		{cloudtest.Answer{Status: 200, Body: `{"data":{"instance_ids":[]}}`}, nil},
		{cloudtest.Answer{Status: 200, Body: `{"data":{"instance_ids":["../ssh-keys"]}}`}, nil},
		{cloudtest.Answer{Status: 200, Body: `{"data":{"instance_ids":["` + ref + `","` + ref + `"]}}`}, nil},
	} {
		d := lambdatest.Dialect(t)
		d.Refusals["launch/row"] = row.Answer
		c, double := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
		if n := calls(double, http.MethodPost, "/instance-operations/launch"); n != 1 {
			t.Errorf("%d %s: a machine was asked for %d times", row.Status, row.Body, n)
		}
	}
}

// TestInstancesAreReadInOurWords: what Lambda's words mean of a machine.
func TestInstancesAreReadInOurWords(t *testing.T) {
	t.Parallel()
	const made = `,"tags":[{"key":"theirs","value":"x"},{"key":"homeport-made","value":"2026-01-02T03:04:05Z"}]`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for body, want := range map[string]provider.Machine{
		`"status":"booting"` + made:                           {State: provider.Building, CreatedAt: at},
		`"status":"booting","ip":"192.0.2.7"` + made:          {State: provider.Building, CreatedAt: at},
		`"status":"hibernated","ip":"192.0.2.7"` + made:       {State: provider.Building, CreatedAt: at},
		`"status":"active"` + made:                            {State: provider.Building, CreatedAt: at},
		`"status":"active","ip":null` + made:                  {State: provider.Building, CreatedAt: at},
		`"status":"active","ip":"192.0.2.7"` + made:           {State: provider.Running, Host: "192.0.2.7", SSHPort: 22, SSHUser: "ubuntu", CreatedAt: at},
		`"status":"unhealthy","ip":"192.0.2.7"` + made:        {State: provider.Failed, Reason: "The cloud reported the machine as unhealthy.", CreatedAt: at},
		`"status":"preempted"` + made:                         {State: provider.Failed, Reason: "The cloud took the machine back.", CreatedAt: at},
		`"status":"terminating","ip":"192.0.2.7"` + made:      {State: provider.Terminating, CreatedAt: at},
		`"status":"terminated"` + made:                        {State: provider.Gone, CreatedAt: at},
		`"status":"booting"`:                                  {State: provider.Building},
		`"status":"booting","tags":[{"key":"homeport-made"}]`: {State: provider.Building},
		`"status":"booting","tags":null`:                      {State: provider.Building},
	} {
		d := lambdatest.Dialect(t)
		d.Refusals["find/row"] = cloudtest.Answer{Status: 200, Body: `{"data":[{"name":"other"},{"id":"` + ref + `","name":"hp-",` + body + `}]}`}
		c, double := freshOf(t, d)
		double.Inject(t, "find", "row", 1)
		list, err := c.Find(t.Context(), "hp-")
		want.Ref, want.Name = ref, "hp-"
		if diff := cmp.Diff([]provider.Machine{want}, list); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", body, err, diff)
		}
	}
}

// TestTerminateUnderstandsItsRefusals: where Lambda's words do not say it, a look
// at the machine does.
func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	looks := func(body string) cloudtest.Answer {
		return cloudtest.Answer{Status: 200, Body: `{"data":` + body + `}`}
	}
	active := looks(`{"id":"` + ref + `","status":"active","ip":"192.0.2.7"}`)
	for _, row := range []struct {
		answer, look cloudtest.Answer
		ok, notYet   bool
	}{
		{answer: lambdatest.Failure(404, "global/object-does-not-exist", "Specified instance does not exist."), look: active, ok: true},
		{answer: lambdatest.Failure(409, "global/conflict", "busy"), look: active, notYet: true},
		{answer: lambdatest.Failure(400, "global/invalid-parameters", "vm-action-in-progress"), look: active, notYet: true},
		{answer: lambdatest.Failure(400, "global/invalid-parameters", "The instance is booting."), look: active, notYet: true},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: looks(`{"id":"` + ref + `","status":"terminating"}`), ok: true},
		{answer: lambdatest.Failure(500, "global/unknown", "An unknown error occurred."), look: looks(`{"id":"` + ref + `","status":"terminated"}`), ok: true},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: cloudtest.Answer{Status: 404}, ok: true},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: active},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: cloudtest.Answer{Status: 500}},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: cloudtest.Answer{Status: 429}},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: looks(`{}`)},
		{answer: lambdatest.Failure(400, "global/unknown", "An unknown error occurred."), look: looks(`{"id":"other","status":"terminated"}`)},
		{answer: lambdatest.Failure(401, "global/invalid-api-key", "Check your API key, then try again."), look: active},
		{answer: lambdatest.Failure(500, "global/internal-error", "not found, booting"), look: active},
		{answer: cloudtest.Answer{Status: 200, Body: `{"data":{"terminated_instances":[]}}`}, look: active},
		{answer: cloudtest.Answer{Status: 200, Body: `{"data":{"terminated_instances":[{"id":"other"}]}}`}, look: active},
		{answer: cloudtest.Answer{Status: 200, Body: `{"data":{"terminated_instances":[]}}`}, look: cloudtest.Answer{Status: 404}, ok: true},
		{answer: cloudtest.Answer{Status: 200, Body: `{"data":{"terminated_instances":[{"id":"` + ref + `"}]}}`}, look: active, ok: true},
	} {
		d := lambdatest.Dialect(t)
		d.Refusals["terminate/row"], d.Refusals["look/row"] = row.answer, row.look
		c, double := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		double.Inject(t, "look", "row", 1)
		err := c.Terminate(t.Context(), ref)
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s, then %d %s: %v", row.answer.Status, row.answer.Body, row.look.Status, row.look.Body, err)
		}
	}
}

func TestForeignReferencesAreNotCalled(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	for _, foreign := range []string{"", "../..", "a/b", "hp-test-00000001-1.00000000", `x","` + ref} {
		if err := c.Terminate(t.Context(), foreign); err != nil {
			t.Errorf("%q: %v", foreign, err)
		}
	}
	if n := len(double.Requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestAnAnswerWithoutAListIsNotAnEmptyAccount(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"message":"maintenance"}`, `{"data":null}`} {
		d := lambdatest.Dialect(t)
		d.Refusals["find/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: body}
		d.Refusals["offers/odd"] = d.Refusals["find/odd"]
		c, double := freshOf(t, d)
		double.Inject(t, "find", "odd", 1)
		if list, err := c.Find(t.Context(), "hp-"); err == nil {
			t.Errorf("%s: found %v and no error", body, list)
		}
		double.Inject(t, "offers", "odd", 1)
		if list, err := c.Offers(t.Context()); err == nil {
			t.Errorf("%s: %d offers and no error", body, len(list))
		}
	}
}
