package runpod_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/runpod/runpodtest"
)

func TestRunpodKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double := fresh(t)
		return c, double
	})
}

func TestRequestsFitThePublishedDescription(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	double.Describe("runpod/openapi-v2.json")
	providertest.Journey(t, c)
}

const image = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"

func row(id, token string, n, memory, ram, vcpu int, socket, country, dc string, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: "runpod", CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
		Country: country, DataCenterID: dc, Security: "secure_cloud", Image: image, DiskGB: 50, DiskPrice: 137, UpstreamPrice: price,
	}
}

const (
	rtx4090 = "NVIDIA GeForce RTX 4090"
	h100    = "NVIDIA H100 80GB HBM3"
)

func TestOffersAreWhatRunpodSells(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(double.Requests()); n != 3 {
		t.Errorf("machines of at most 3 GPUs took %d reads", n)
	}
	want := []provider.Offer{
		row(rtx4090, "RTX4090_24GB", 1, 24, 62, 16, "PCIe", "US", "US-ZZ-1", 440_000),
		row(rtx4090, "RTX4090_24GB", 1, 24, 62, 16, "PCIe", "RO", "EU-RO-9", 440_000),
		row(h100, "H100_80GB", 1, 80, 221, 20, "SXM5", "CA", "CA-GIM-1", 3_290_000),
		row(h100, "H100_80GB", 1, 80, 221, 20, "SXM5", "AU", "OC-AU-9", 3_290_000),
		row(h100, "H100_80GB", 1, 80, 221, 20, "SXM5", "JP", "AP-JP-9", 3_290_000),
		row(rtx4090, "RTX4090_24GB", 2, 48, 124, 32, "PCIe", "US", "US-ZZ-1", 880_000),
		row(rtx4090, "RTX4090_24GB", 2, 48, 124, 32, "PCIe", "RO", "EU-RO-9", 880_000),
		row(h100, "H100_80GB", 2, 160, 442, 40, "SXM5", "CA", "CA-GIM-1", 6_580_000),
		row(h100, "H100_80GB", 2, 160, 442, 40, "SXM5", "AU", "OC-AU-9", 6_580_000),
		row(h100, "H100_80GB", 2, 160, 442, 40, "SXM5", "JP", "AP-JP-9", 6_580_000),
		row(rtx4090, "RTX4090_24GB", 3, 72, 186, 48, "PCIe", "US", "US-ZZ-1", 1_320_000),
		row(rtx4090, "RTX4090_24GB", 3, 72, 186, 48, "PCIe", "RO", "EU-RO-9", 1_320_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedPricesAreUnderstood reads Runpod's price list of a day, as the
// catalogue would show it: every GPU of our table is in it, as large as we say.
func TestRecordedPricesAreUnderstood(t *testing.T) {
	t.Parallel()
	var recorded map[string]struct {
		VRAM              int
		Secure, Community json.Number
	}
	cloudtest.Read(t, cloudtest.Shared(t, "runpod/gpu-prices-2026-08-22.json"), &recorded)
	var gpus []map[string]any
	for id, g := range recorded {
		price, _ := g.Secure.Float64()
		maker, _, _ := strings.Cut(id, " ")
		gpus = append(gpus, map[string]any{
			"id": id, "name": id, "manufacturer": maker, "memory": g.VRAM, "secure": price > 0, "price": map[string]any{"secure": price},
			"maxCount":    map[string]any{"secure": 1.0},
			"dataCenters": []map[string]any{{"id": "US-KS-2", "name": "US Kansas 2", "availability": "LOW"}},
		})
	}
	c, _ := freshOf(t, runpodtest.Dialect(t, gpus))
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]money.Rate{}
	for _, o := range list {
		got[o.CloudID+" = "+o.GPUType+" "+o.Socket] = o.UpstreamPrice
	}
	want := map[string]money.Rate{
		"NVIDIA A100 80GB PCIe = A100_80GB PCIe":                                 1_390_000,
		"NVIDIA A100-SXM4-80GB = A100_80GB SXM4":                                 1_590_000,
		"NVIDIA A40 = A40_48GB PCIe":                                             440_000,
		"NVIDIA B200 = B200_180GB SXM6":                                          6_790_000,
		"NVIDIA GeForce RTX 3090 = RTX3090_24GB PCIe":                            500_000,
		"NVIDIA GeForce RTX 4090 = RTX4090_24GB PCIe":                            740_000,
		"NVIDIA GeForce RTX 5090 = RTX5090_32GB PCIe":                            990_000,
		"NVIDIA H100 80GB HBM3 = H100_80GB SXM5":                                 3_290_000,
		"NVIDIA H100 PCIe = H100_80GB PCIe":                                      2_890_000,
		"NVIDIA H200 = H200_141GB SXM5":                                          4_590_000,
		"NVIDIA L4 = L4_24GB PCIe":                                               490_000,
		"NVIDIA L40S = L40S_48GB PCIe":                                           990_000,
		"NVIDIA RTX 6000 Ada Generation = RTX6000Ada_48GB PCIe":                  840_000,
		"NVIDIA RTX A6000 = A6000_48GB PCIe":                                     530_000,
		"NVIDIA RTX PRO 6000 Blackwell Server Edition = RTX_PRO_6000B_96GB PCIe": 2_090_000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// ofThree is where an offer of three GPUs stands in the list.
const ofThree = 10

func TestMachineIsAskedForInRunpodsWords(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	if _, err := c.Launch(t.Context(), providertest.Request(t, c, ofThree)); err != nil {
		t.Fatal(err)
	}
	requests := double.Requests()
	var body map[string]any
	if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "args") // see below
	want := map[string]any{
		"name": "hp-test-00000001-1", "image": image, "gpu": map[string]any{"id": rtx4090, "count": 3.0, "minCudaVersion": "12.8"},
		"cloud": "SECURE", "dataCenterIds": []any{"US-ZZ-1"}, "disk": 50.0, "ports": []any{"22/tcp"},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

// TestContainerStartsTheAgent runs the container's command, both as a shell reads
// it and split into words.
func TestContainerStartsTheAgent(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(start string) []string{
		"a shell": func(start string) []string { return []string{"/bin/sh", "-c", start} },
		"words": func(start string) []string {
			words := strings.SplitN(start, " ", 3)
			if len(words) != 3 || strings.Count(start, "'") != 2 || strings.Contains(start, "\n") {
				t.Fatalf("the command does not mean the same to all: %s", start)
			}
			return []string{words[0], words[1], strings.Trim(words[2], "'")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, double := fresh(t)
			boottest.Launch(t, c, double, read)
		})
	}
}

// TestMachineInAnotherDataCentreIsEnded: Runpod only prefers the one asked for.
func TestMachineInAnotherDataCentreIsEnded(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, ofThree)
	double.Inject(t, "launch", "elsewhere", 1)
	if _, err := c.Launch(t.Context(), l); !errors.Is(err, provider.ErrNoCapacity) {
		t.Errorf("a machine elsewhere: %v", err)
	}
	if held := double.Machines(t); len(held) != 0 {
		t.Errorf("the cloud still holds %v", held)
	}
	double.Inject(t, "launch", "elsewhere", 1)
	double.Inject(t, "terminate", "error", 1)
	if _, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
		t.Errorf("a machine elsewhere that does not end: %v", err)
	}
	if held := double.Machines(t); len(held) != 1 {
		t.Errorf("the cloud holds %v", held)
	}
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Runpod's own table: what is
// not certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) cloudtest.Answer {
		return cloudtest.Answer{Status: status, Body: body, Header: map[string]string{"Location": base + "/pods"}}
	}
	for _, row := range []struct {
		cloudtest.Answer
		want error // nil = ambiguous
	}{
		{runpodtest.Problem(400, "There are no longer any instances available with the requested specifications."), provider.ErrNoCapacity},
		{runpodtest.Problem(400, "This GPU could not be placed in US-ZZ-1"), provider.ErrNoCapacity},
		{runpodtest.Problem(400, "mounts: only one of persistent or network"), provider.ErrRefused},
		{runpodtest.Problem(402, "Payment required"), provider.ErrFunds},
		{runpodtest.Problem(400, "Insufficient balance to create this pod"), provider.ErrFunds},
		{runpodtest.Problem(403, "no access to this pool"), provider.ErrRefused},
		{runpodtest.Problem(401, "Unauthorized"), provider.ErrRefused},
		{runpodtest.Problem(404, "resource not found"), provider.ErrRefused},
		{runpodtest.Problem(422, "Request validation failed."), provider.ErrRefused},
		{runpodtest.Problem(409, "a pod of this name exists"), nil},
		{runpodtest.Problem(500, "There are no longer any instances available"), nil}, // a 5xx is never believed
		{answer(408, ""), nil},
		{answer(502, "<html>bad gateway</html>"), nil},
		{answer(302, ""), nil},
		{answer(201, `{}`), nil},
		{answer(201, `{"id":"../account/ssh-keys"}`), nil},
	} {
		d := runpodtest.Dialect(t, runpodtest.GPUs(t))
		d.Refusals["launch/row"] = row.Answer
		c, double := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, ofThree))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
		if err != nil && strings.Contains(err.Error(), "token-of-the-instance") {
			t.Errorf("the error shows the token: %v", err)
		}
		asked := 0
		for _, r := range double.Requests() {
			if r.Method == http.MethodPost {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("%d %s: a machine was asked for %d times", row.Status, row.Body, asked)
		}
	}
}

// TestPodsAreReadInOurWords: what Runpod's words mean of a machine.
func TestPodsAreReadInOurWords(t *testing.T) {
	t.Parallel()
	const at = `"ssh":{"proxy":null,"direct":{"host":"192.0.2.7","port":40022,"username":"root","command":""}}`
	building := provider.Machine{State: provider.Building}
	for body, want := range map[string]provider.Machine{
		`"status":"PROVISIONING","ssh":null`: building,
		`"status":"STARTING",` + at:          building,
		`"status":"MIGRATING",` + at:         building,
		`"status":"RUNNING",` + at:           {State: provider.Running, Host: "192.0.2.7", SSHPort: 40022},
		`"status":"RUNNING","ssh":{"proxy":{"host":"ssh.example","port":22},"direct":null}`: building,
		`"status":"RUNNING","ssh":{"direct":{"host":"","port":0}}`:                          building,
		`"status":"EXITED"`:           {State: provider.Failed, Reason: "The container ended."},
		`"status":"ERROR",` + at:      {State: provider.Failed, Reason: "The cloud reported an error."},
		`"status":"TERMINATED",` + at: {State: provider.Gone},
	} {
		d := runpodtest.Dialect(t, nil)
		d.Refusals["find/row"] = cloudtest.Answer{
			Status: 200, Body: `{"pods":[{"id":"p1","name":"hp-test-1","createdAt":"2026-01-02T03:04:05Z",` + body + `},{"id":"p2","name":"other"}]}`,
		}
		c, double := freshOf(t, d)
		double.Inject(t, "find", "row", 1)
		list, err := c.Find(t.Context(), "hp-test-")
		want.Ref, want.Name, want.CreatedAt = "p1", "hp-test-1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
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
		{runpodtest.Problem(404, "pod not found"), true, false},
		{runpodtest.Problem(400, "The pod is already terminated"), true, false},
		{runpodtest.Problem(409, "The pod is starting, try again"), false, true},
		{runpodtest.Problem(409, "The pod belongs to a cluster"), false, false},
		{runpodtest.Problem(403, "Forbidden"), false, false},
		{runpodtest.Problem(500, "try again"), false, false},
		{runpodtest.Problem(500, "pod not found"), false, false},
	} {
		d := runpodtest.Dialect(t, nil)
		d.Refusals["terminate/row"] = row.Answer
		c, double := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		err := c.Terminate(t.Context(), "7h9k2m4n6p")
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.Status, row.Body, err)
		}
	}
}

// TestAnAnswerWithoutAListIsNoList: what is missing in it is not gone.
func TestAnAnswerWithoutAListIsNoList(t *testing.T) {
	t.Parallel()
	for op, bodies := range map[string][]string{
		"find":   {`{"message":"maintenance"}`, `{"pods":null}`},
		"offers": {`{"message":"maintenance"}`, `{"gpus":null}`},
	} {
		for _, body := range bodies {
			d := runpodtest.Dialect(t, runpodtest.GPUs(t))
			d.Refusals[op+"/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: body}
			c, double := freshOf(t, d)
			double.Inject(t, op, "odd", 1)
			var n int
			var err error
			if op == "find" {
				var list []provider.Machine
				list, err = c.Find(t.Context(), "hp-")
				n = len(list)
			} else {
				var list []provider.Offer
				list, err = c.Offers(t.Context())
				n = len(list)
			}
			if err == nil {
				t.Errorf("%s, %s: %d and no error", op, body, n)
			}
		}
	}
	d := runpodtest.Dialect(t, runpodtest.GPUs(t))
	d.Refusals["second/empty"] = cloudtest.Answer{Status: http.StatusOK, Body: `{"gpus":[]}`}
	first := d.Operation
	d.Operation = func(r *http.Request) string {
		if r.URL.Query().Get("count") == "2" {
			return "second"
		}
		return first(r)
	}
	c, double := freshOf(t, d)
	double.Inject(t, "second", "empty", 1)
	if list, err := c.Offers(t.Context()); err == nil {
		t.Errorf("of a catalogue that broke off %d offers are believed", len(list))
	}
}
