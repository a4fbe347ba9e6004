package shadeform_test

import (
	"encoding/base64"
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
	"homeport.dev/homeport/internal/provider/shadeform/shadeformtest"
)

func TestShadeformKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double := fresh(t)
		return c, double
	})
}

// TestRequestsFitThePublishedDescription is the one test of this package that
// needs the description beside the project.
func TestRequestsFitThePublishedDescription(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	double.Describe("shadeform/openapi.yaml")
	providertest.Journey(t, c)
}

func TestOffersAreWhatShadeformSells(t *testing.T) {
	t.Parallel()
	c, _ := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vm := func(cloud, id, token string, n, memory, ram, vcpu int, socket, country, dc, image string, disk int, price money.Rate) provider.Offer {
		return provider.Offer{
			Provider: cloud, CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
			Country: country, DataCenterID: dc, Security: "secure_cloud", Image: image, DiskGB: disk, DiskIncluded: true, UpstreamPrice: price,
		}
	}
	const ubuntu22 = "ubuntu22.04_cuda12.2_shade_os"
	want := []provider.Offer{
		vm("northwind", "A6000", "A6000_48GB", 1, 48, 64, 16, "PCIe", "CA", "gimli-1", ubuntu22, 512, 610_000),
		vm("northwind", "A100_80Gx4", "A100_80GB", 4, 320, 480, 96, "SXM4", "CA", "gimli-1", ubuntu22, 2000, 7_120_000),
		vm("bluecrate", "H100_sxm5x8", "H100_80GB", 8, 640, 1760, 176, "SXM5", "US", "us-mesa-1", ubuntu22, 8000, 19_440_000),
		vm("bluecrate", "H100_sxm5x8", "H100_80GB", 8, 640, 1760, 176, "SXM5", "FI", "finland-2", ubuntu22, 8000, 19_440_000),
		// Two types of the same words: the dearer one, which may be what comes.
		vm("bluecrate", "H100", "H100_80GB", 1, 80, 200, 30, "PCIe", "US", "us-mesa-1", ubuntu22, 512, 2_630_000),
		vm("bluecrate", "L40S", "L40S_48GB", 1, 48, 64, 16, "PCIe", "US", "us-mesa-1", "Ubuntu24.04_CUDA12.8", 512, 990_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

func launch(t *testing.T, c provider.Adapter, change func(l *provider.Launch)) (provider.Machine, error) {
	t.Helper()
	l := providertest.Request(t, c, 0)
	if change != nil {
		change(&l)
	}
	return c.Launch(t.Context(), l)
}

func TestMachineStartsWithTheBootstrapAndADeadline(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	until := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	m, err := launch(t, c, func(l *provider.Launch) { l.KeepUntil = until })
	if err != nil {
		t.Fatal(err)
	}
	var seen cloudtest.Machine
	look := func() {
		t.Helper()
		if !double.Change(m.Ref, func(m *cloudtest.Machine) { seen = *m }) {
			t.Fatal("the machine is not there")
		}
	}
	look()
	script, err := base64.StdEncoding.DecodeString(seen.Start)
	if err != nil || !strings.Contains(string(script), "https://homeport.example/agent/install") || !strings.Contains(string(script), "token-of-the-instance") {
		t.Errorf("the machine starts with %q, %v", script, err)
	}
	if seen.Deadline != "2030-01-02T03:04:05Z" {
		t.Errorf("the machine ends by itself at %q", seen.Deadline)
	}
	if err := c.Keep(t.Context(), m.Ref, until.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if look(); seen.Deadline != "2030-01-03T03:04:05Z" {
		t.Errorf("the deadline was moved to %q", seen.Deadline)
	}
	if err := c.Keep(t.Context(), "1f0c0a52-1111-4222-8333-444455556666", until); err == nil {
		t.Error("a machine that is not there is kept")
	}
	if err := c.Keep(t.Context(), "../../sshkeys/1/delete?", until); err == nil {
		t.Error("a reference of another form is called")
	}
}

func TestMachineStartsTheAgent(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	boottest.Launch(t, c, double, func(start string) []string {
		script, err := base64.StdEncoding.DecodeString(start)
		if err != nil {
			t.Fatal(err)
		}
		return boottest.Script(string(script))
	})
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Shadeform's own table: what
// is not certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status int
		body   string
		want   error // nil = ambiguous
	}{
		{409, `{"error_code":"OUT_OF_STOCK","error":"sold out"}`, provider.ErrNoCapacity},
		{400, "The instance type is currently unavailable in this region", provider.ErrNoCapacity},
		{409, `{"error_code":"CONFLICT","error":"an instance of this name exists"}`, nil},
		{402, "", provider.ErrFunds},
		{403, "Insufficient balance, please add funds", provider.ErrFunds},
		{400, "bad region", provider.ErrRefused},
		{401, "Unauthorized", provider.ErrRefused},
		{422, `{"error":"name"}`, provider.ErrRefused},
		{408, "", nil},
		{500, "out of stock", nil}, // a 5xx is never believed
		{502, "<html>bad gateway</html>", nil},
		{504, "", nil},
		{302, "", nil},
	} {
		d := shadeformtest.Dialect(t)
		d.Refusals["launch/row"] = cloudtest.Answer{Status: row.status, Body: row.body, Header: map[string]string{"Location": "/v1/instances"}}
		c, double := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := launch(t, c, nil)
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s: %v", row.status, row.body, err)
		}
	}
}

func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status int
		body   string
		ok     bool
		notYet bool
	}{
		{404, "", true, false},
		{400, "Instance already deleted", true, false},
		{409, "instance is still creating", false, true},
		{400, "The instance is not active yet", false, true},
		{403, "Forbidden", false, false},
		{500, "pending", false, false},
	} {
		d := shadeformtest.Dialect(t)
		d.Refusals["terminate/row"] = cloudtest.Answer{Status: row.status, Body: row.body}
		c, double := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		err := c.Terminate(t.Context(), "1f0c0a52-1111-4222-8333-444455556666")
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.status, row.body, err)
		}
	}
}

func TestAnAnswerWithoutAListIsNotAnEmptyAccount(t *testing.T) {
	t.Parallel()
	d := shadeformtest.Dialect(t)
	d.Refusals["find/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: `{"message":"maintenance"}`}
	c, double := freshOf(t, d)
	double.Inject(t, "find", "odd", 1)
	if list, err := c.Find(t.Context(), "hp-"); err == nil {
		t.Errorf("found %v and no error", list)
	}
}
