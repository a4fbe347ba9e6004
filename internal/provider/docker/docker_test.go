package docker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

func TestDockerKeepsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		c, d := fresh(t)
		return c, d
	})
}

func row(token string, n, vram, memory, vcpu int, price money.Rate) provider.Offer {
	return provider.Offer{
		Provider: "attic", CloudID: "attic", GPUType: token, GPUCount: n, GPUMemoryGB: vram * n, MemoryGB: memory, VCPU: vcpu, Socket: "PCIe",
		Country: "DE", DataCenterID: "attic", Security: "community_cloud", Image: image, DiskGB: 50 * n, DiskIncluded: true, UpstreamPrice: price,
	}
}

// TestOffersAreWhatTheHostHas: the GTX 1080 is no model that is sold, and what a
// pod holds is not offered.
func TestOffersAreWhatTheHostHas(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	l.Offer.GPUCount, l.MaxPrice = 3, 3*l.MaxPrice
	m, err := c.Launch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Offer{
		row("RTX4090_24GB", 1, 24, 17, 4, 350_000), row("RTX4090_24GB", 2, 24, 34, 9, 700_000), row("RTX4090_24GB", 3, 24, 51, 13, 1_050_000),
		row("T4_16GB", 1, 16, 17, 4, 200_001),
	}
	if diff := cmp.Diff(want, offers(t, c)); diff != "" {
		t.Error(diff)
	}
	end(t, c, d, m.Ref)
	if n := len(offers(t, c)); n != 7 {
		t.Errorf("%d offers of a host that is free again", n)
	}
	// A type without a price is not sold; a host that is let whole says so, and is no host in trouble.
	few := adapter(t, d, func(h *docker.Host) { delete(h.Prices, "T4_16GB") })
	if list := offers(t, few); len(list) != 6 {
		t.Errorf("%d offers without a price for the T4", len(list))
	}
	l = request(t, few)
	l.Offer.GPUCount, l.MaxPrice, l.Name = 6, 6*l.MaxPrice, "hp-test-00000002-1"
	if _, err := few.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if list, err := few.Offers(t.Context()); !errors.Is(err, provider.ErrNoCapacity) || len(list) != 0 {
		t.Errorf("a host that is let whole offers %v, %v", list, err)
	}
	dear := adapter(t, d, func(h *docker.Host) { h.Prices = map[string]string{"A100_80GB": "1"} })
	if list, err := dear.Offers(t.Context()); err == nil || provider.NoMachine(err) || !strings.Contains(err.Error(), "no price for its GPUs") {
		t.Errorf("a host without a price offers %v, %v", list, err)
	}
	l.Name = "hp-test-00000003-1"
	if _, err := few.Launch(t.Context(), l); !errors.Is(err, provider.ErrNoCapacity) {
		t.Errorf("launch at a host that is let whole: %v", err)
	}
}

func offers(t *testing.T, c *docker.Cloud) []provider.Offer {
	t.Helper()
	list, err := c.Offers(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("offers: %d, %v", len(list), err)
	}
	return list
}

// request asks for one RTX 4090.
func request(t *testing.T, c *docker.Cloud) provider.Launch {
	t.Helper()
	list := offers(t, c)
	i := slices.IndexFunc(list, func(o provider.Offer) bool { return o.GPUType == "RTX4090_24GB" })
	return provider.Launch{
		Name: "hp-test-00000001-1", Offer: list[i], MaxPrice: list[i].UpstreamPrice,
		Bootstrap: provider.Bootstrap{AgentURL: "https://homeport.example", Token: "token-of-the-instance", Hostname: "00000001"},
	}
}

func end(t *testing.T, c *docker.Cloud, d *double, ref string) {
	t.Helper()
	if err := c.Terminate(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if left := d.Machines(t); len(left) != 0 {
		t.Fatalf("%v are left", left)
	}
}

func find(t *testing.T, c *docker.Cloud, name string) provider.Machine {
	t.Helper()
	list, err := c.Find(t.Context(), name)
	if err != nil || len(list) != 1 {
		t.Fatalf("find %s: %v, %v", name, list, err)
	}
	return list[0]
}

// doubly lists the GPUs that two containers hold.
func (d *double) doubly(t *testing.T) (twice []string) {
	t.Helper()
	seen := map[string]bool{}
	for ref, labels := range d.labels {
		if !d.Change(ref, func(*cloudtest.Machine) {}) {
			continue // it is gone
		}
		for one := range strings.SplitSeq(labels["dev.homeport.gpus"], ",") {
			if seen[one] {
				twice = append(twice, one)
			}
			seen[one] = true
		}
	}
	return twice
}

// TestGPUIsNeverHeldTwice: another node takes the GPU between our look and our
// create. Shown to fail without the look after the create.
func TestGPUIsNeverHeldTwice(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	other := adapter(t, d, nil)
	l := request(t, c)
	theirs := request(t, other)
	theirs.Name = "hp-othr-00000001-1"
	d.before = func() {
		if _, err := other.Launch(context.WithoutCancel(t.Context()), theirs); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if n := len(d.bodies); n != 3 {
		t.Errorf("%d containers were made: theirs, ours that withdrew, and ours", n)
	}
	if twice := d.doubly(t); len(twice) != 0 {
		t.Errorf("held by two: %v", twice)
	}
}

// TestManyNodesShareAHost: what one node lets no other lets too, and nobody is
// told of a machine that is not there.
func TestManyNodesShareAHost(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	nodes := []*docker.Cloud{c, adapter(t, d, nil), adapter(t, d, nil)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var made []string
	for i := range 12 {
		wg.Go(func() {
			mine := l
			mine.Name = fmt.Sprintf("hp-test-%08d-1", i)
			_, err := nodes[i%len(nodes)].Launch(t.Context(), mine)
			if err != nil && !errors.Is(err, provider.ErrNoCapacity) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				made = append(made, mine.Name)
			}
		})
	}
	wg.Wait()
	there := d.Machines(t)
	slices.Sort(there)
	slices.Sort(made)
	if !slices.Equal(there, made) || len(made) == 0 {
		t.Errorf("the host holds %v, and %v were launched", there, made)
	}
	if twice := d.doubly(t); len(twice) != 0 {
		t.Errorf("held by two: %v", twice)
	}
}

// TestNameIsTakenOnce: the engine refuses a second container of a name, and who
// asks again is told nothing but that one may be there.
func TestNameIsTakenOnce(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	if _, err := c.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if m, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
			t.Errorf("launched again: %+v, %v", m, err)
		}
	}
	if n := d.Alive(l.Name); n != 1 {
		t.Errorf("%d containers of one name", n)
	}
}

// TestUnclearCallsAreAmbiguous: every way in which either call of a launch can
// go wrong, against what the host then holds.
func TestUnclearCallsAreAmbiguous(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op, kind string
		want     error // nil = ambiguous
		holds    int
	}{
		{create, "error_before", nil, 0},
		{create, "error_after", nil, 1},
		{create, "malformed", nil, 1},
		{create, "slow_body", nil, 1},
		{create, "hang_after", nil, 1},
		{create, "refused", provider.ErrRefused, 0},
		{create, "no_image", provider.ErrRefused, 0},
		{create, "quota", provider.ErrRefused, 0},
		{create, "rate_limited", provider.ErrRateLimited, 0},
		{place, "error_before", provider.ErrUnreachable, 0}, // nobody started it
		{place, "hang_after", provider.ErrUnreachable, 0},
		{place, "full", provider.ErrNoCapacity, 0},
		{place, "read_only", provider.ErrRefused, 0},
		{place, "rate_limited", provider.ErrRateLimited, 0},
		{start, "error_before", nil, 1},
		{start, "error_after", nil, 1},
		{start, "malformed", nil, 1},
		{start, "hang_after", nil, 1},
		{start, "no_capacity", provider.ErrNoCapacity, 0},
		{start, "port", provider.ErrPortTaken, 0},
		{start, "port", provider.ErrRefused, 0},
		{start, "no_driver", provider.ErrRefused, 0},
		{start, "no_network", provider.ErrRefused, 0},
		{start, "rate_limited", provider.ErrRateLimited, 0},
	} {
		t.Run(c.op+"/"+c.kind, func(t *testing.T) {
			t.Parallel()
			cloud, d := fresh(t)
			l := request(t, cloud)
			if !d.Cloud.Inject(t, c.op, c.kind, 1) {
				t.Fatal("the double cannot do that")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := cloud.Launch(ctx, l)
			if err == nil || provider.NoMachine(err) != (c.want != nil) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("launch: %v, want %v", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "token-of") {
				t.Errorf("the token is shown: %v", err)
			}
			if left := d.Machines(t); len(left) != c.holds {
				t.Fatalf("the host holds %v, want %d", left, c.holds)
			}
			if c.holds == 1 {
				end(t, cloud, d, find(t, cloud, l.Name).Ref)
			}
		})
	}
}

// TestContainerThatCannotBeTakenBackIsAmbiguous: it did not start, and its
// removal fails.
func TestContainerThatCannotBeTakenBackIsAmbiguous(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	d.Cloud.Inject(t, start, "port", 1)
	d.Cloud.Inject(t, cloudtest.Terminate, "rate_limited", 1)
	if _, err := c.Launch(t.Context(), l); err == nil || provider.NoMachine(err) {
		t.Errorf("launch: %v", err)
	}
	end(t, c, d, find(t, c, l.Name).Ref)
}

// TestContainerThatNobodyStartedFails: its launch died between its two calls.
func TestContainerThatNobodyStartedFails(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	d.Cloud.Inject(t, create, "error_after", 1)
	if _, err := c.Launch(t.Context(), l); err == nil {
		t.Fatal("the launch worked")
	}
	if m := find(t, c, l.Name); m.State != provider.Building {
		t.Errorf("just made: %+v", m)
	}
	late := clock.From(func() time.Time { return d.Clock.Wall().Add(3 * time.Minute) })
	later, err := docker.New(docker.Config{Host: host("tcp://" + strings.TrimPrefix(d.URL, "http://")), Clock: late, Logger: cloudtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if m := find(t, later, l.Name); m.State != provider.Failed || m.Reason == "" {
		t.Errorf("three minutes later: %+v", m)
	}
}

func TestAnswerWithoutAListIsAnError(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	d.Cloud.Inject(t, cloudtest.Find, "null", 1)
	if list, err := c.Find(t.Context(), "hp-"); err == nil {
		t.Errorf("found %v", list)
	}
}

func TestRemovalThatIsOnItsWayIsAccepted(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	m, err := c.Launch(t.Context(), request(t, c))
	if err != nil {
		t.Fatal(err)
	}
	d.Cloud.Inject(t, cloudtest.Terminate, "already", 1)
	if err := c.Terminate(t.Context(), m.Ref); err != nil {
		t.Error(err)
	}
	end(t, c, d, m.Ref)
}

// TestEngineThatIsAwayMadeNothing: and no machine is said to be gone.
func TestEngineThatIsAwayMadeNothing(t *testing.T) {
	t.Parallel()
	c, d := fresh(t)
	l := request(t, c)
	away := adapter(t, d, func(h *docker.Host) { h.Engine = "unix:///nowhere/docker.sock" })
	if _, err := away.Launch(t.Context(), l); !errors.Is(err, provider.ErrUnreachable) {
		t.Errorf("launch: %v", err)
	}
	if list, err := away.Offers(t.Context()); !errors.Is(err, provider.ErrUnreachable) {
		t.Errorf("offers: %v, %v", list, err)
	}
	if list, err := away.Find(t.Context(), "hp-"); err == nil {
		t.Errorf("found %v", list)
	}
	if err := away.Terminate(t.Context(), strings.Repeat("a", 64)); err == nil {
		t.Error("terminated at an engine that is away")
	}
}
