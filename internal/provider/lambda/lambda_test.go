package lambda_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/lambda"
	"homeport.dev/homeport/internal/provider/lambda/lambdatest"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

func TestLambdaKeepsTheContract(t *testing.T) {
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
	double.Describe("lambda/openapi.json")
	providertest.Journey(t, c)
}

func TestOffersAreWhatLambdaSells(t *testing.T) {
	t.Parallel()
	c, _ := fresh(t)
	list, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vm := func(id, token string, n, memory, ram, vcpu int, socket, country, dc string, disk int, price money.Rate) provider.Offer {
		return provider.Offer{
			Provider: "lambda", CloudID: id, GPUType: token, GPUCount: n, GPUMemoryGB: memory, MemoryGB: ram, VCPU: vcpu, Socket: socket,
			Country: country, DataCenterID: dc, Security: "secure_cloud", Image: "lambda-stack", DiskGB: disk, DiskIncluded: true, UpstreamPrice: price,
		}
	}
	want := []provider.Offer{
		vm("t_1x_a10", "A10_24GB", 1, 24, 200, 30, "PCIe", "US", "us-mesa-1", 1400, 750_000),
		// Two types of the same words: the dearer one, which may be what comes.
		vm("t_1x_a10", "A10_24GB", 1, 24, 200, 30, "PCIe", "JP", "asia-nara-1", 1400, 790_000),
		// An ARM machine, of which Lambda says no socket.
		vm("t_1x_gh200", "GH200_96GB", 1, 96, 432, 64, "SXM5", "DE", "europe-bonn-1", 4096, 1_490_000),
		vm("t_1x_h100_pcie", "H100_80GB", 1, 80, 200, 26, "PCIe", "IL", "me-haifa-1", 1024, 2_490_000),
		vm("t_1x_rtx6000", "RTX6000_24GB", 1, 24, 46, 14, "PCIe", "JP", "asia-nara-1", 512, 500_000),
		vm("t_2x_b200_sxm6", "B200_180GB", 2, 360, 720, 52, "SXM6", "US", "us-mesa-1", 5632, 9_980_000),
		vm("t_8x_h100_sxm5", "H100_80GB", 8, 640, 1800, 208, "SXM5", "US", "us-mesa-1", 22528, 23_920_000),
		// Its country is in the region's name alone.
		vm("t_8x_v100", "V100_16GB", 8, 128, 448, 92, "SXM2", "AU", "australia-perth-1", 5939, 4_400_000),
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// calls counts the calls of a method and path that the double got.
func calls(double *cloudtest.Cloud, method, path string) int {
	n := 0
	for _, r := range double.Requests() {
		if r.Method == method && r.Path == base+path {
			n++
		}
	}
	return n
}

// TestCallsTakeTheTurnsThatLambdaPublishes: one call a second, of which one in
// 12 seconds is a launch. The launch takes its turn before the price is looked
// at, and leaves the calls after it enough of its caller's minute.
func TestCallsTakeTheTurnsThatLambdaPublishes(t *testing.T) {
	t.Parallel()
	c, _ := fresh(t)
	l := providertest.Request(t, c, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := c.Launch(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Find(t.Context(), l.Name); err != nil {
		t.Fatal(err)
	}
	if err := c.Terminate(t.Context(), m.Ref); err != nil {
		t.Fatal(err)
	}
	call := turn{Class: "call", Rate: cloudapi.Rate{Every: time.Second, Burst: 1}}
	launch := turn{Class: "launch", Rate: cloudapi.Rate{Every: 12 * time.Second, Burst: 1}}
	want := []turn{
		call,       // offers
		call, call, // the bootstrap key: looked for, added
		launch, call, call, // the price, the machine
		call, call, // found, ended
	}
	if diff := cmp.Diff(want, c.turns.taken, cmpopts.IgnoreUnexported(turn{})); diff != "" {
		t.Error(diff)
	}
	for _, one := range c.turns.taken {
		if one.Class == "launch" && one.patience > 30*time.Second {
			t.Errorf("a launch waits %s of a minute for its turn", one.patience)
		}
	}
}

func TestLaunchWhoseTurnIsLateMakesNothing(t *testing.T) {
	t.Parallel()
	for _, why := range []error{cloudapi.Late(36 * time.Second), context.DeadlineExceeded, context.Canceled, errors.New("the database is away")} {
		c, double := fresh(t)
		c.turns.launches = why
		_, err := c.Launch(t.Context(), providertest.Request(t, c, 0))
		if !provider.NoMachine(err) || errors.Is(why, provider.ErrRateLimited) != errors.Is(err, provider.ErrRateLimited) {
			t.Errorf("%v: %v", why, err)
		}
		if n := calls(double, http.MethodPost, "/instance-operations/launch"); n != 0 {
			t.Errorf("%v: %d machines were asked for", why, n)
		}
	}
}

// TestBootstrapKeyIsToldOnce: launches share it, another node finds it, and it
// is looked for again when Lambda refuses a machine, perhaps for want of it.
func TestBootstrapKeyIsToldOnce(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	for i, want := range []struct{ looks, adds int }{{1, 1}, {1, 1}, {1, 1}, {2, 1}} {
		l := providertest.Request(t, c, 0)
		l.Name = "hp-test-0000000" + string(rune('1'+i)) + "-1"
		if i == 2 {
			double.Inject(t, "launch", "refused", 1)
		}
		if _, err := c.Launch(t.Context(), l); (err != nil) != (i == 2) {
			t.Fatal(err)
		}
		looks, adds := calls(double, http.MethodGet, "/ssh-keys"), calls(double, http.MethodPost, "/ssh-keys")
		if looks != want.looks || adds != want.adds {
			t.Errorf("after launch %d the keys were looked at %d times and added to %d times", i, looks, adds)
		}
	}
}

// TestKeyOfAFasterNodeIsUsed: between the look and the telling another node told
// Lambda the same key.
func TestKeyOfAFasterNodeIsUsed(t *testing.T) {
	t.Parallel()
	d := lambdatest.Dialect(t)
	d.Refusals["keys/none_yet"] = cloudtest.Answer{Status: 200, Body: `{"data":[]}`}
	c, double := freshOf(t, d)
	l := providertest.Request(t, c, 0)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	other, err := lambda.New(lambda.Config{
		Key: testKey, BaseURL: double.URL + base, PublicKey: publicKey + "-of-another-node", Limiter: &turns{}, Clock: double.Clock,
		Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	double.Inject(t, "keys", "none_yet", 1)
	l.Name = "hp-test-00000002-1"
	if _, err := other.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if n := calls(double, http.MethodPost, "/ssh-keys"); n != 2 {
		t.Errorf("the key was told %d times", n)
	}
}

// TestWithoutTheBootstrapKeyNoMachineIsMade: Lambda takes no launch without one.
func TestWithoutTheBootstrapKeyNoMachineIsMade(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		op     string
		answer cloudtest.Answer
	}{
		{"keys", cloudtest.Answer{Status: 500}},
		{"keys", lambdatest.Failure(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.")},
		{"keys", cloudtest.Answer{Status: 429}},
		{"keys", cloudtest.Answer{Status: 200, Body: `{}`}},
		{"add_key", lambdatest.Failure(400, "global/invalid-parameters", "Invalid request data.")},
		{"add_key", cloudtest.Answer{Status: 200, Body: `{"data":{}}`}},
		{"add_key", cloudtest.Answer{Status: 200, Body: `{"data":{"id":"1","name":"theirs","public_key":"ssh-rsa AAAA other"}}`}},
	} {
		d := lambdatest.Dialect(t)
		d.Refusals[row.op+"/row"] = row.answer
		c, double := freshOf(t, d)
		double.Inject(t, row.op, "row", 1)
		if _, err := c.Launch(t.Context(), providertest.Request(t, c, 0)); !provider.NoMachine(err) {
			t.Errorf("%s %d %s: %v", row.op, row.answer.Status, row.answer.Body, err)
		}
		if n := calls(double, http.MethodPost, "/instance-operations/launch"); n != 0 {
			t.Errorf("%s %d %s: %d machines were asked for", row.op, row.answer.Status, row.answer.Body, n)
		}
	}
	if _, err := lambda.New(lambda.Config{Key: testKey, Limiter: &turns{}}); err == nil {
		t.Error("there is an adapter without a bootstrap key")
	}
}
