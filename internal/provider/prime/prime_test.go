package prime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/prime/primetest"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/boottest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

func TestPrimeKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, double := fresh(t)
		return c, double
	})
}

func TestRequestsFitThePublishedDescription(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	double.Describe("prime/openapi-compute.yml")
	providertest.Journey(t, c)
}

// row is an offer with what most have in common.
func row(cloud, id, token string, n, memory, ram, vcpu int, socket, country, dc string, disk int, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: cloud, CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
		Country: country, DataCenterID: dc, Security: "secure_cloud", Image: "ubuntu_22_cuda_12", DiskGB: disk, DiskIncluded: true, UpstreamPrice: price,
	}
}

// onTop is an offer whose disk is paid on top, per GB and hour.
func onTop(o provider.Offer, price money.Rate) provider.Offer {
	o.DiskIncluded, o.DiskPrice = false, price
	return o
}

func TestOffersAreWhatPrimeSells(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(double.Requests()); n != 3 {
		t.Errorf("24 configurations were read in %d pages of 10", n)
	}
	community := row("denvr", "denvr.a40", "A40_48GB", 1, 48, 50, 9, "PCIe", "NO", "", 100, 310_000)
	community.Security = "community_cloud"
	spot := row("primecompute", "h100.8.spot", "H100_80GB", 8, 640, 752, 104, "SXM5", "FI", "tampere-1", 4000, 11_200_000)
	spot.IsSpot = true
	want := []provider.Offer{
		onTop(row("dc_kudu", "kudu.h100.1", "H100_80GB", 1, 80, 251, 28, "SXM5", "CA", "gimli-1", 200, 2_706_800), 140),
		// 40 GB of its disk are not the user's.
		onTop(row("runpod", "NVIDIA A100 80GB PCIe", "A100_80GB", 2, 160, 125, 14, "PCIe", "SE", "boden-1", 80, 1_656_800), 140),
		row("dc_roan", "roan.b200.8", "B200_180GB", 8, 1440, 2264, 224, "SXM6", "US", "mesa-2", 8000, 31_920_000),
		// Its memory is said of one GPU.
		row("dc_roan", "roan.l40s.4", "L40S_48GB", 4, 192, 376, 64, "PCIe", "US", "mesa-2", 2000, 3_560_000),
		community, spot,
		row("lambdalabs", "gpu_1x_a10", "A10_24GB", 1, 24, 200, 30, "PCIe", "IL", "me-west-1", 1400, 750_000),
		// Two of the same words: the dearer one, which may be what comes.
		row("dc_gnu", "gnu.a6000", "A6000_48GB", 1, 48, 64, 16, "PCIe", "DK", "vejle-1", 400, 620_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedCatalogueIsUnderstood reads what Prime once answered.
func TestRecordedCatalogueIsUnderstood(t *testing.T) {
	t.Parallel()
	var recorded struct{ Items []map[string]any }
	cloudtest.Read(t, cloudtest.Shared(t, "prime/availability_response.json"), &recorded)
	c, double := freshOf(t, primetest.Dialect(t, recorded.Items))
	double.Describe("prime/openapi-compute.yml")
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const pcie, sxm, h100 = "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
	want := []provider.Offer{
		row("runpod", pcie, "A100_80GB", 1, 80, 125, 14, "PCIe", "US", "US-KS-2", 80, 1_656_800),
		row("runpod", sxm, "A100_80GB", 1, 80, 251, 16, "SXM4", "US", "US-KS-2", 80, 1_756_800),
		row("runpod", sxm, "A100_80GB", 1, 80, 250, 16, "SXM4", "US", "US-MO-1", 80, 1_756_800),
		row("runpod", sxm, "A100_80GB", 1, 80, 250, 32, "SXM4", "US", "US-WA-1", 80, 1_756_800),
		row("runpod", sxm, "A100_80GB", 1, 80, 125, 16, "SXM4", "US", "US-CA-2", 80, 1_756_800),
		row("runpod", h100, "H100_80GB", 1, 80, 251, 28, "SXM5", "CA", "CA-MTL-1", 80, 2_706_800),
		row("runpod", h100, "H100_80GB", 1, 80, 221, 24, "SXM5", "CA", "CA-MTL-3", 80, 2_706_800),
		row("runpod", "NVIDIA H100 PCIe", "H100_80GB", 1, 80, 176, 31, "PCIe", "CA", "CA-MTL-3", 80, 2_406_800),
	}
	for i := range want {
		want[i] = onTop(want[i], 140)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// creates are the bodies of all requests for a machine.
func creates(t *testing.T, double *cloudtest.Cloud) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, r := range double.Requests() {
		if strings.Contains(string(r.Body), "token-of-the-instance") {
			t.Errorf("%s %s tells Prime the token", r.Method, r.Path)
		}
		if r.Method == http.MethodPost && r.Path == base+"/pods/" {
			var body map[string]any
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			list = append(list, body)
		}
	}
	return list
}

func TestMachineIsAskedForInPrimesWords(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	for i, want := range []map[string]any{
		1: { // its disk is paid on top: 120 GB at 0.00014
			"pod": map[string]any{
				"name": "hp-test-00000001-1", "cloudId": "NVIDIA A100 80GB PCIe", "gpuType": "A100_80GB", "socket": "PCIe", "gpuCount": 2.0,
				"diskSize": 120.0, "vcpus": 14.0, "memory": 125.0, "maxPrice": 1.6736, "image": "ubuntu_22_cuda_12", "dataCenterId": "boden-1",
				"security": "secure_cloud", "sshKeyId": "key-1", "autoRestart": false,
			},
			"provider": map[string]any{"type": "runpod"},
		},
		4: { // no data centre, and its disk is in the price
			"pod": map[string]any{
				"name": "hp-test-00000001-1", "cloudId": "denvr.a40", "gpuType": "A40_48GB", "socket": "PCIe", "gpuCount": 1.0,
				"diskSize": 100.0, "vcpus": 9.0, "memory": 50.0, "maxPrice": 0.31, "image": "ubuntu_22_cuda_12", "country": "NO",
				"security": "community_cloud", "sshKeyId": "key-1", "autoRestart": false,
			},
			"provider": map[string]any{"type": "denvr"},
		},
	} {
		if want == nil {
			continue
		}
		m, err := c.Launch(t.Context(), providertest.Request(t, c, i))
		if err != nil {
			t.Fatal(err)
		}
		bodies := creates(t, double)
		if diff := cmp.Diff(want, bodies[len(bodies)-1]); diff != "" {
			t.Error(diff)
		}
		if err := c.Terminate(t.Context(), m.Ref); err != nil {
			t.Error(err)
		}
	}
}

// TestWordsOfRefusalSayWhetherThereIsAMachine is Prime's own table: what is not
// certain is ambiguous.
func TestWordsOfRefusalSayWhetherThereIsAMachine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status int
		body   string
		want   error // nil = ambiguous
	}{
		{400, `{"detail":"No capacity"}`, provider.ErrNoCapacity},
		{422, `{"detail":[{"msg":"This GPU is out of stock"}]}`, provider.ErrNoCapacity},
		{404, `{"detail":"The configuration is no longer available"}`, provider.ErrNoCapacity},
		{409, `{"detail":"currently unavailable"}`, provider.ErrNoCapacity},
		{400, `{"errors":[{"param":"pod.maxPrice","details":"too low"}]}`, provider.ErrPriceMoved},
		{402, "", provider.ErrFunds},
		{403, `{"detail":"Insufficient balance"}`, provider.ErrFunds},
		{422, `{"errors":[{"param":"pod.name","details":"bad"}]}`, provider.ErrRefused},
		{401, `{"detail":"Unauthorized"}`, provider.ErrRefused},
		{409, `{"detail":"a pod of this name exists"}`, nil},
		{408, "", nil},
		{500, `{"detail":"No capacity"}`, nil}, // a 5xx is never believed
		{502, "<html>bad gateway</html>", nil},
		{302, "", nil},
		{200, `{}`, nil},
		{200, `{"id":"../ssh_keys/1"}`, nil},
	} {
		d := primetest.Dialect(t, primetest.GPUs(t))
		d.Refusals["launch/row"] = cloudtest.Answer{Status: row.status, Body: row.body, Header: map[string]string{"Location": "/api/v1/pods/"}}
		c, double := freshOf(t, d)
		double.Inject(t, "launch", "row", 1)
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if err == nil || provider.NoMachine(err) != (row.want != nil) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%d %s: %v", row.status, row.body, err)
		}
		if n := len(creates(t, double)); n != 1 {
			t.Errorf("%d %s: a machine was asked for %d times", row.status, row.body, n)
		}
	}
}

// TestWithoutTheBootstrapKeyNoMachineIsMade: a machine that nobody can enter
// would only cost.
func TestWithoutTheBootstrapKeyNoMachineIsMade(t *testing.T) {
	t.Parallel()
	for _, a := range []cloudtest.Answer{
		{Status: 500}, {Status: 403}, {Status: 200, Body: `{}`}, {Status: 200, Body: `{"data":[],"total_count":7}`}, {Status: 429},
	} {
		d := primetest.Dialect(t, primetest.GPUs(t))
		d.Refusals["keys/row"] = a
		c, double := freshOf(t, d)
		double.Inject(t, "keys", "row", 1)
		if _, err := c.Launch(t.Context(), providertest.Request(t, c, 0)); !provider.NoMachine(err) {
			t.Errorf("%d %s: %v", a.Status, a.Body, err)
		}
		if n := len(creates(t, double)); n != 0 {
			t.Errorf("%d %s: %d machines were asked for", a.Status, a.Body, n)
		}
	}
}

// TestBootstrapKeyIsToldOnce: launches share it, another node finds it, and it
// is looked for again when Prime refuses a machine, perhaps for want of it.
func TestBootstrapKeyIsToldOnce(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	calls := func() (looks, adds int) {
		for _, r := range double.Requests() {
			switch r.Method + r.Path {
			case "GET" + base + "/ssh_keys/":
				looks++
			case "POST" + base + "/ssh_keys/":
				adds++
			}
		}
		return looks, adds
	}
	for i, want := range []struct{ looks, adds int }{{1, 1}, {1, 1}, {1, 1}, {2, 1}} {
		l := providertest.Request(t, c, 0)
		l.Name = fmt.Sprintf("hp-test-%08d-1", i)
		if i == 2 {
			double.Inject(t, "launch", "refused", 1)
		}
		if _, err := c.Launch(t.Context(), l); (err != nil) != (i == 2) {
			t.Fatal(err)
		}
		if looks, adds := calls(); looks != want.looks || adds != want.adds {
			t.Errorf("after launch %d the keys were looked at %d times and added to %d times", i, looks, adds)
		}
	}
}

// TestPodsAreReadInOurWords: what Prime's words mean of a machine.
func TestPodsAreReadInOurWords(t *testing.T) {
	t.Parallel()
	const at = `"sshConnection":"root@192.0.2.7 -p 40022"`
	root := provider.Machine{State: provider.Running, Host: "192.0.2.7", SSHPort: 40022, SSHUser: "root"}
	building := provider.Machine{State: provider.Building}
	for body, want := range map[string]provider.Machine{
		`"status":"PROVISIONING",` + at:                                         building,
		`"status":"PENDING"`:                                                    building,
		`"status":"UNKNOWN",` + at:                                              building,
		`"status":"RESUMING",` + at:                                             building,
		`"status":"ACTIVE",` + at:                                               root,
		`"status":"ACTIVE","installationProgress":100,` + at:                    root,
		`"status":"ACTIVE","installationProgress":99,` + at:                     building,
		`"status":"ACTIVE","sshConnection":null`:                                building,
		`"status":"ACTIVE","sshConnection":""`:                                  building,
		`"status":"ACTIVE","sshConnection":[]`:                                  building,
		`"status":"ACTIVE","sshConnection":[null]`:                              building,
		`"status":"ACTIVE","sshConnection":["root@192.0.2.7 -p 40022"]`:         root,
		`"status":"ACTIVE","sshConnection":["root@192.0.2.7","root@192.0.2.8"]`: building,
		`"status":"ACTIVE","sshConnection":"root@192.0.2.7 -p 0"`:               building,
		`"status":"ACTIVE","sshConnection":"root@192.0.2.7 -p"`:                 building,
		`"status":"ACTIVE","sshConnection":"root@192.0.2.7 -o ProxyCommand=x"`:  building,
		`"status":"ACTIVE","sshConnection":"192.0.2.7"`:                         building,
		`"status":"ACTIVE","sshConnection":"root@"`:                             building,
		`"status":"ACTIVE","sshConnection":"ssh ubuntu@node.example"`:           {State: provider.Running, Host: "node.example", SSHPort: 22, SSHUser: "ubuntu"},
		`"status":"ACTIVE","sshConnection":"root@2001:db8::7 -p 22"`:            {State: provider.Running, Host: "2001:db8::7", SSHPort: 22, SSHUser: "root"},
		`"status":"ACTIVE","installationStatus":"ERROR",` + at:                  {State: provider.Failed, Reason: "The cloud could not install the machine's image."},
		`"status":"ERROR","installationFailure":"no driver"`:                    {State: provider.Failed, Reason: "no driver"},
		`"status":"ERROR"`:                                                      {State: provider.Failed, Reason: "The cloud reported an error."},
		`"status":"STOPPED",` + at:                                              {State: provider.Failed, Reason: "The cloud stopped the machine."},
		`"status":"DELETING",` + at:                                             {State: provider.Terminating},
		`"status":"TERMINATED"`:                                                 {State: provider.Gone},
	} {
		d := primetest.Dialect(t, nil)
		d.Refusals["find/row"] = cloudtest.Answer{
			Status: 200, Body: `{"data":[{"id":"p1","name":"hp-test-1","createdAt":"2026-01-02T03:04:05Z",` + body + `}],"total_count":1}`,
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

func TestAllPagesOfMachinesAreRead(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	const n = 2*primetest.Page + 3
	for i := range n {
		double.Add(httptest.NewRequest(http.MethodPost, base+"/pods/", http.NoBody), cloudtest.Machine{Name: fmt.Sprintf("hp-test-%08d-1", i)})
	}
	list, err := c.Find(t.Context(), "hp-test-")
	if err != nil || len(list) != n {
		t.Errorf("found %d of %d machines: %v", len(list), n, err)
	}
}

// TestAListThatBreaksOffIsNoList: what is missing in it is not gone.
func TestAListThatBreaksOffIsNoList(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"message":"maintenance"}`, `{"data":null,"total_count":0}`, `{"data":[],"total_count":3}`} {
		d := primetest.Dialect(t, nil)
		d.Refusals["find/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: body}
		c, double := freshOf(t, d)
		double.Inject(t, "find", "odd", 1)
		if list, err := c.Find(t.Context(), "hp-"); err == nil {
			t.Errorf("%s: found %v and no error", body, list)
		}
	}
	for _, body := range []string{`{"message":"maintenance"}`, `{"items":null}`} {
		d := primetest.Dialect(t, nil)
		d.Refusals["offers/odd"] = cloudtest.Answer{Status: http.StatusOK, Body: body}
		c, double := freshOf(t, d)
		double.Inject(t, "offers", "odd", 1)
		if list, err := c.Offers(t.Context()); err == nil {
			t.Errorf("%s: %d offers and no error", body, len(list))
		}
	}
	d := primetest.Dialect(t, primetest.GPUs(t))
	d.Refusals["second/empty"] = cloudtest.Answer{Status: http.StatusOK, Body: `{"items":[],"totalCount":0}`}
	first := d.Operation
	d.Operation = func(r *http.Request) string {
		if r.URL.Query().Get("page") == "2" {
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

func TestTerminateUnderstandsItsRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status int
		body   string
		ok     bool
		notYet bool
	}{
		{404, "", true, false},
		{400, `{"detail":"Pod is already terminated"}`, true, false},
		{422, `{"detail":"Pod does not exist"}`, true, false},
		{409, `{"detail":"Pod is still provisioning"}`, false, true},
		{400, `{"detail":"try again in 60 seconds"}`, false, true},
		{403, "Forbidden", false, false},
		{500, "try again in 60 seconds", false, false},
		{500, "not found", false, false},
	} {
		d := primetest.Dialect(t, nil)
		d.Refusals["terminate/row"] = cloudtest.Answer{Status: row.status, Body: row.body}
		c, double := freshOf(t, d)
		double.Inject(t, "terminate", "row", 1)
		err := c.Terminate(t.Context(), "1f0c0a52-1111-4222-8333-444455556666")
		if (err == nil) != row.ok || errors.Is(err, provider.ErrNotYet) != row.notYet {
			t.Errorf("%d %s: %v", row.status, row.body, err)
		}
	}
}

// TestAgentIsPushedByTheBootstrapKey: the key that Prime put on the machine is
// the one that the agent is brought with, and it starts there.
func TestAgentIsPushedByTheBootstrapKey(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	l := providertest.Request(t, c, 0)
	l.Bootstrap.AgentURL = boottest.Node(t)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	var told string
	for _, r := range double.Requests() {
		if r.Method == http.MethodPost && r.Path == base+"/ssh_keys/" {
			var in struct{ PublicKey string }
			if err := json.Unmarshal(r.Body, &in); err != nil {
				t.Fatal(err)
			}
			told = in.PublicKey
		}
	}
	m := provider.Machine{Name: l.Name, State: provider.Running, Host: "127.0.0.1", SSHUser: "ubuntu"}
	if err := c.Push(t.Context(), m, l.Bootstrap); err == nil {
		t.Error("the agent was brought to a machine without an address")
	}
	got := make(chan [2]string, 1)
	m.SSHPort = sshHost(t, "ubuntu", told, got)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Push(ctx, m, l.Bootstrap); err != nil {
		t.Fatal(err)
	}
	asked := <-got
	boottest.Run(t, l.Bootstrap, boottest.Session(asked[0], asked[1]))
}

// sshHost is a new machine's SSH server: it lets one user in by one key, and
// sends one command, and what it reads, to got.
func sshHost(t *testing.T, user, authorized string, got chan<- [2]string) int {
	t.Helper()
	allowed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != user || string(k.Marshal()) != string(allowed.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	cfg.AddHostKey(bootstrapKey(t))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, channels, requests, err := ssh.NewServerConn(conn, cfg)
		if err != nil {
			t.Errorf("the machine let nobody in: %v", err)
			return
		}
		wg.Go(func() { ssh.DiscardRequests(requests) })
		for one := range channels {
			ch, requests, err := one.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			for req := range requests {
				_ = req.Reply(req.Type == "exec", nil)
				if req.Type == "exec" {
					script, _ := io.ReadAll(ch)
					got <- [2]string{string(req.Payload[4:]), string(script)}
					_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
					_ = ch.Close()
				}
			}
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}
