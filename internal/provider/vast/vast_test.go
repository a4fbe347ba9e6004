package vast_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/vast/vasttest"
)

func TestVastKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double := fresh(t)
		return c, double
	})
}

func TestRequestsFitThePublishedDescription(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	double.Describe("vast/openapi.yaml", asItIs)
	providertest.Journey(t, c)
	if _, err := c.Balance(t.Context()); err != nil {
		t.Error(err)
	}
}

// What was paid in advance is what is left; what is not said is not guessed.
func TestBalanceIsTheCreditThatIsLeft(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	for fault, want := range map[string]money.USD{"": 41_400_000, "uncredited": 2_500_000} {
		if fault != "" {
			double.Inject(t, "balance", fault, 1)
		}
		if got, err := c.Balance(t.Context()); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", fault, got, err, want)
		}
	}
	for _, fault := range []string{"none", "error"} {
		double.Inject(t, "balance", fault, 1)
		if got, err := c.Balance(t.Context()); err == nil {
			t.Errorf("%s: %d", fault, got)
		}
	}
}

// asItIs mends the description in what Vast's own guide and programs do
// otherwise: all paths end in a slash, which the description's maker cuts off,
// the environment is an object, and an account has a credit.
func asItIs(doc *openapi3.T) {
	for path, item := range doc.Paths.Map() {
		doc.Paths.Delete(path)
		doc.Paths.Set(strings.TrimSuffix(path, "/")+"/", item)
	}
	user := doc.Paths.Value("/api/v0/users/current/").Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema.Value
	user.Properties["credit"] = openapi3.NewFloat64Schema().NewRef()
	create := doc.Paths.Value("/api/v0/asks/{id}/").Put.RequestBody.Value.Content.Get("application/json").Schema.Value
	create.Properties["env"] = openapi3.NewObjectSchema().WithAdditionalProperties(openapi3.NewStringSchema()).NewRef()
}

const image = "vastai/base-image:@vastai-automatic-tag"

func row(machine, token string, n, memory, ram, vcpu int, socket, country, security string, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: "vast", CloudID: machine, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
		Country: country, Security: security, Image: image, DiskGB: 64, DiskIncluded: true, UpstreamPrice: price,
	}
}

// TestOffersAreWhatVastsHostsLet: see the asks for what is dropped, and why.
func TestOffersAreWhatVastsHostsLet(t *testing.T) {
	t.Parallel()
	c, _ := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const home, center = "community_cloud", "secure_cloud"
	want := []provider.Offer{
		row("31001", "RTX4090_24GB", 1, 24, 64, 16, "PCIe", "US", home, 393_334), // part of a micro-dollar is one
		row("31002", "H100_80GB", 8, 640, 2064, 192, "SXM5", "CA", center, 15_913_333),
		row("31002", "H100_80GB", 4, 320, 1032, 96, "SXM5", "CA", center, 7_900_000), // the cheapest of three
		row("31003", "A100_40GB", 1, 40, 64, 16, "PCIe", "GB", center, 610_000),
		row("31004", "H200_141GB", 2, 282, 64, 16, "SXM5", "FR", center, 4_400_000),
		row("31005", "RTX8000_48GB", 1, 48, 64, 16, "PCIe", "SE", home, 260_000),
		row("31006", "A10_24GB", 1, 24, 64, 16, "PCIe", "JP", home, 200_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestSearchSaysWhatIsLookedFor: verified hosts, on demand, with the disk in the
// price; and before a launch one machine only.
func TestSearchSaysWhatIsLookedFor(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	if _, err := c.Launch(t.Context(), providertest.Request(t, c, half)); err != nil {
		t.Fatal(err)
	}
	is := func(v any) map[string]any { return map[string]any{"eq": v} }
	least := func(v float64) map[string]any { return map[string]any{"gte": v} }
	want := map[string]any{
		"type": "ondemand", "verified": is(true), "rentable": is(true), "rented": is(false), "external": is(false), "gpu_arch": is("nvidia"),
		"cpu_arch": is("amd64"), "static_ip": is(true), "direct_port_count": least(1), "cuda_max_good": least(12.8), "reliability": least(0.98),
		"duration": least(259200), "disk_space": least(64), "inet_up_cost": map[string]any{"lte": 0.005}, "inet_down_cost": map[string]any{"lte": 0.005},
		"allocated_storage": 64.0, "order": []any{[]any{"dph_total", "asc"}, []any{"id", "asc"}}, "limit": 3000.0,
	}
	for i, more := range []map[string]any{{}, {"machine_id": is(31002.0), "num_gpus": map[string]any{"in": []any{4.0}}}} {
		var body map[string]any
		if err := json.Unmarshal(double.Requests()[i].Body, &body); err != nil {
			t.Fatal(err)
		}
		for name, v := range more {
			want[name] = v
		}
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("search %d: %s", i, diff)
		}
	}
}

// TestRecordedCatalogueIsUnderstood: what Vast's hosts once let, in Vast's
// words, is what it was recorded as.
func TestRecordedCatalogueIsUnderstood(t *testing.T) {
	t.Parallel()
	var recorded struct {
		Offers []struct {
			Provider, GPUType, Socket, Country string
			GPUCount                           int
			Price                              float64
		}
	}
	cloudtest.Read(t, cloudtest.Shared(t, "catalog/offers-sample.json"), &recorded)
	spelt := map[string]struct {
		name string
		mib  float64
	}{
		"A100_40GB SXM4": {"A100 SXM4", 40960}, "A100_80GB PCIe": {"A100 PCIE", 81920}, "A40_48GB PCIe": {"A40", 46068}, "A6000_48GB PCIe": {"RTX A6000", 49140},
		"B200_180GB SXM6": {"B200", 183359}, "H100NVL_94GB PCIe": {"H100 NVL", 95830}, "H100_80GB SXM5": {"H100 SXM", 81559}, "H200_141GB SXM5": {"H200", 143771},
		"L40S_48GB PCIe": {"L40S", 46068}, "RTX3070_8GB PCIe": {"RTX 3070", 8192}, "RTX3080_10GB PCIe": {"RTX 3080", 10240}, "RTX3090_24GB PCIe": {"RTX 3090", 24576},
		"RTX4090_24GB PCIe": {"RTX 4090", 24564}, "RTX5090_32GB PCIe": {"RTX 5090", 32607}, "RTX6000Ada_48GB PCIe": {"RTX 6000Ada", 49140},
		"RTX_PRO_6000B_96GB PCIe": {"RTX PRO 6000 WS", 97887}, "V100_16GB PCIe": {"Tesla V100", 16384},
	}
	var rows []map[string]any
	var want []string
	for _, o := range recorded.Offers {
		if o.Provider != "vastai" {
			continue
		}
		one, ok := spelt[o.GPUType+" "+o.Socket]
		if !ok {
			t.Fatalf("how does Vast spell %s %s?", o.GPUType, o.Socket)
		}
		rows = append(rows, map[string]any{
			"id": float64(len(rows) + 1), "machine_id": float64(40000 + len(rows)), "gpu_name": one.name, "gpu_ram": one.mib, "num_gpus": float64(o.GPUCount),
			"geolocation": "Somewhere, " + o.Country, "dph_total": o.Price,
		})
		want = append(want, o.GPUType+" "+o.Socket+" "+o.Country)
	}
	c, _, _ := freshOf(t, vasttest.Dialect(t, vasttest.AsksOf(vasttest.Ask(t), rows)))
	list, err := c.Offers(t.Context())
	if err != nil || len(want) < 50 {
		t.Fatalf("%d recorded, %v", len(want), err)
	}
	var got []string
	for _, o := range list {
		got = append(got, o.GPUType+" "+o.Socket+" "+o.Country)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCallsTakeTheTurnsThatVastNames: each kind of call has its own, and whoever
// is told to wait has the others of its kind wait, too.
func TestCallsTakeTheTurnsThatVastNames(t *testing.T) {
	t.Parallel()
	c, double, limits := freshOf(t, vasttest.Dialect(t, vasttest.Asks(t)))
	l := providertest.Request(t, c, half)
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Find(t.Context(), l.Name); err != nil {
		t.Fatal(err)
	}
	double.Inject(t, "terminate", "rate_limited", 1)
	if err := c.Terminate(t.Context(), m.Ref); err == nil {
		t.Error("a call that was refused says it worked")
	}
	search, list := turn{"search", cloudapi.Rate{Every: 6 * time.Second, Burst: 1}}, turn{"list", cloudapi.Rate{Every: time.Second, Burst: 1}}
	create, destroy := turn{"make", cloudapi.Rate{Every: 4500 * time.Millisecond, Burst: 1}}, turn{"end", cloudapi.Rate{Every: 3 * time.Second, Burst: 1}}
	if diff := cmp.Diff([]turn{search, search, create, list, destroy}, limits.taken); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]turn{{"end", cloudapi.Rate{Every: time.Second}}}, limits.held); diff != "" {
		t.Error(diff)
	}
}

// TestAnAnswerWithoutAListIsNoList: what is missing in it is not gone.
func TestAnAnswerWithoutAListIsNoList(t *testing.T) {
	t.Parallel()
	for op, bodies := range map[string][]string{
		"find":   {`{"msg":"maintenance"}`, `{"instances":null}`, `null`},
		"offers": {`{"msg":"maintenance"}`, `{"offers":null}`, `{"offers":{"id":1}}`, `{"offers":["id",{"id":"x"}]}`},
	} {
		for _, body := range bodies {
			d := vasttest.Dialect(t, vasttest.Asks(t))
			d.Refusals[op+"/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: body}
			c, double, _ := freshOf(t, d)
			double.Inject(t, op, "odd", 1)
			var err error
			if op == "find" {
				_, err = c.Find(t.Context(), "hp-")
			} else {
				_, err = c.Offers(t.Context())
			}
			if err == nil {
				t.Errorf("%s, %s: no error", op, body)
			}
		}
	}
}

// TestAllPagesAreRead: Vast shows 25 instances at a time.
func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, half)
	var want, got []string
	for i := range 2*vasttest.OnPage + 1 {
		l.Name = fmt.Sprintf("hp-test-%08d-1", i)
		if _, err := c.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		want = append(want, l.Name)
	}
	before := len(double.Requests())
	list, err := c.Find(t.Context(), "hp-test-")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		got = append(got, m.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(double.Requests()) - before; n != 3 {
		t.Errorf("%d pages were read", n)
	}
}
