package offer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// A cloud is an adapter that only lists.
type cloud struct {
	provider.Adapter
	mu    sync.Mutex
	list  []provider.Offer
	err   error
	asked atomic.Int64
}

func (c *cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	c.asked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, c.err
}

func (c *cloud) set(err error, list ...provider.Offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.err = list, err
}

func h100(change ...func(*provider.Offer)) provider.Offer {
	o := provider.Offer{
		Provider: "aurora", CloudID: "h100-1", GPUType: "H100_80GB", GPUCount: 1, GPUMemoryGB: 80, MemoryGB: 200,
		VCPU: 24, Socket: "SXM5", Country: "US", DataCenterID: "us-1", Security: "secure_cloud",
		Image: "ubuntu", DiskGB: 500, DiskIncluded: true, UpstreamPrice: 2_000_000,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func named(cloudID string) func(*provider.Offer) {
	return func(o *provider.Offer) { o.CloudID = cloudID }
}

func priced(r money.Rate) func(*provider.Offer) {
	return func(o *provider.Offer) { o.UpstreamPrice = r }
}

type market struct {
	*offer.Service
	t     *testing.T
	clock *clock.Manual
	a, b  *cloud
}

func newMarket(t *testing.T) *market {
	t.Helper()
	m := &market{t: t, clock: clock.Fixed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), a: &cloud{}, b: &cloud{}}
	var err error
	m.Service, err = offer.New(offer.Deps{
		Pool: pgtest.New(t), Clock: m.clock.Clock, Adapters: map[string]provider.Adapter{"a": m.a, "b": m.b},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *market) refresh() {
	m.t.Helper()
	_ = m.Refresh(m.t.Context()) // what failed shows in what is visible
}

// visible lists the cloud ids on sale.
func (m *market) visible() map[string]money.Rate {
	m.t.Helper()
	m.clock.Advance(time.Second) // older than the catalogue in memory may be
	all, _, err := m.Resources(m.t.Context(), team.Hobby)
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]money.Rate{}
	for _, list := range all {
		for _, o := range list {
			out[o.CloudID] = o.Price
		}
	}
	return out
}

func (m *market) quote(ask offer.Ask) (q offer.Quote, err error) {
	m.t.Helper()
	if ask.Currency == "" {
		ask.Currency = "USD"
	}
	err = pg.InTx(m.t.Context(), m.Pool, func(tx pgx.Tx) error {
		q, err = m.QuoteTx(m.t.Context(), tx, ask)
		return err
	})
	return q, err
}

func TestOffersHideFiveMinutesAfterTheyWereSeen(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100(named("a1")))
	m.b.set(nil, h100(named("b1")))
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"a1": 2_600_000, "b1": 2_600_000}, m.visible()); diff != "" {
		t.Fatal(diff)
	}
	m.a.set(errors.New("down"))
	for range 2 { // so few failures that its breaker stays closed
		m.clock.Advance(2 * time.Minute)
		m.refresh()
		if got := m.visible(); len(got) != 2 {
			t.Fatalf("after a failure within five minutes: %v", got)
		}
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 1 || got["b1"] == 0 {
		t.Errorf("after five minutes of failure: %v", got)
	}
	m.a.set(nil, h100(named("a1")))
	m.refresh()
	if got := m.visible(); len(got) != 2 {
		t.Errorf("after it came back: %v", got)
	}
}

// Without any refresh the catalogue in memory still hides what got too old.
func TestMemoryHidesByItself(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.refresh()
	m.clock.Advance(5*time.Minute - 2*time.Second)
	if got := m.visible(); len(got) != 1 {
		t.Errorf("just before: %v", got)
	}
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes: %v", got)
	}
}

func TestEmptyListIsNotBelievedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.refresh()
	m.a.set(nil)
	m.clock.Advance(4 * time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 1 {
		t.Errorf("an empty list was believed: %v", got)
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes of empty lists: %v", got)
	}
}

// TestCloudThatIsLetWholeIsInNoTrouble: it says so, unlike one with an empty list.
func TestCloudThatIsLetWholeIsInNoTrouble(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(provider.ErrNoCapacity)
	if err := m.RefreshNow(t.Context()); err != nil {
		t.Error(err)
	}
	m.a.set(provider.ErrNoCapacity)
	m.clock.Advance(5 * time.Minute)
	if err := m.RefreshNow(t.Context()); err != nil {
		t.Error(err)
	}
	if got := m.visible(); len(got) != 0 {
		t.Errorf("after five minutes without a free machine: %v", got)
	}
	m.a.set(nil, h100())
	if err := m.RefreshNow(t.Context()); err != nil || len(m.visible()) != 1 {
		t.Errorf("and then one is free again: %v, %v", m.visible(), err)
	}
}

func TestBrokenOffersAreNotSold(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil,
		h100(named("good")), h100(named("good"), priced(1_000_000)),
		h100(named("free"), priced(0)), h100(named("below zero"), priced(-1)), h100(named("mad"), priced(1e15)),
		h100(named("nul\x00")), h100(named("bad\xff")), h100(named("none"), func(o *provider.Offer) { o.GPUCount = 0 }),
		h100(named("nameless"), func(o *provider.Offer) { o.Provider = "" }),
		h100(named("minus"), func(o *provider.Offer) { o.DiskGB = -1 }),
	)
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"good": 1_300_000}, m.visible()); diff != "" {
		t.Error(diff)
	}
}

func TestOneNodeRefreshes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	other, err := offer.New(offer.Deps{Pool: m.Pool, Clock: m.clock.Clock, Adapters: m.Adapters})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		m.refresh()
		if err := other.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.a.asked.Load(); n != 5 {
		t.Errorf("asked %d times, want 5", n)
	}
	if err := other.RefreshNow(t.Context()); err == nil || m.a.asked.Load() != 6 {
		t.Errorf("a refresh that is asked for: %v", err) // b's list is empty
	}
	m.clock.Advance(time.Hour) // the first node died
	if err := other.Refresh(t.Context()); err == nil || m.a.asked.Load() != 7 {
		t.Errorf("the second node did not take over: %v", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.refresh(); m.a.asked.Load() != 8 {
		t.Error("the lease was not given back")
	}
}

func TestAdaptersAreAskedNoMoreOftenThanAllowed(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.Every = map[string]time.Duration{"a": time.Minute}
	m.a.set(nil, h100())
	for range 6 {
		m.refresh()
		m.clock.Advance(30 * time.Second)
	}
	if a, b := m.a.asked.Load(), m.b.asked.Load(); a != 3 || b != 6 {
		t.Errorf("asked a %d and b %d times, want 3 and 6", a, b)
	}
}

// One cloud that hangs does not keep the others from being stored.
func TestHangingAdapterHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.mu.Lock() // it does not answer
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.refresh()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for stored := 0; stored == 0; {
		if err := m.Pool.QueryRow(ctx, "select count(*) from offer").Scan(&stored); err != nil {
			t.Error("nothing was stored:", err)
			break
		}
	}
	if got := m.visible(); len(got) != 1 {
		t.Errorf("visible: %v", got)
	}
	m.b.mu.Unlock()
	<-done
}

func TestResourcesJSON(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100(), h100(named("paid disk"), priced(2_490_000), func(o *provider.Offer) {
		o.DiskIncluded, o.DiskPrice, o.DataCenterID, o.IsSpot = false, 137, "", true
	}))
	m.refresh()
	list, tag, err := m.ResourcesJSON(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"H100_80GB":[` +
		`{"gpuType":"H100_80GB","gpuCount":1,"gpuMemory":80,"memory":200,"vcpu":24,"price":2.6,"listPrice":2.6,"socket":"SXM5","country":"US","provider":"aurora","cloudId":"h100-1","currency":"USD","defaultDiskSize":500,"diskPrice":null,"security":"secure_cloud","isSpot":false,"dataCenterId":"us-1","image":"ubuntu"},` +
		`{"gpuType":"H100_80GB","gpuCount":1,"gpuMemory":80,"memory":200,"vcpu":24,"price":3.24,"listPrice":3.24,"socket":"SXM5","country":"US","provider":"aurora","cloudId":"paid disk","currency":"USD","defaultDiskSize":500,"diskPrice":0.000137,"security":"secure_cloud","isSpot":true,"dataCenterId":null,"image":"ubuntu"}]}`
	if diff := cmp.Diff(want, string(list)); diff != "" {
		t.Error(diff)
	}
	pro, proTag, err := m.ResourcesJSON(t.Context(), team.Pro)
	if err != nil || proTag == tag || !strings.Contains(string(pro), `"price":2.7216,"listPrice":3.24`) {
		t.Errorf("pro: %s, tag %s, %v", pro, proTag, err)
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	again, sameTag, err := m.ResourcesJSON(t.Context(), "")
	if err != nil || sameTag != tag || string(again) != want {
		t.Errorf("the tag changed without a change: %s to %s, %v", tag, sameTag, err)
	}
}

func TestEmptyCatalogueIsAnEmptyObject(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	body, _, err := m.ResourcesJSON(t.Context(), team.Hobby)
	if err != nil || string(body) != "{}" {
		t.Errorf("%s, %v", body, err)
	}
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	base := offer.TupleOf(h100())
	with := func(change func(*offer.Tuple)) offer.Tuple { u := base; change(&u); return u }
	m.a.set(nil, h100())
	m.refresh()
	for name, tt := range map[string]struct {
		ask    offer.Ask
		want   error
		rate   money.Rate
		detail string
	}{
		"at the price":            {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_600_000}, nil, 2_600_000, ""},
		"for more than the price": {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 9_000_000}, nil, 2_600_000, ""},
		"pro at its price":        {offer.Ask{Tuple: base, Plan: team.Pro, Max: 2_184_000}, nil, 2_184_000, ""},
		"pro at the list price":   {offer.Ask{Tuple: base, Plan: team.Pro, Max: 2_600_000}, nil, 2_184_000, ""},
		"hobby at pro's price":    {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_184_000}, offer.ErrPrice, 0, "Price changed from $2.184 to $2.60 per hour."},
		"a micro-dollar less":     {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_599_999}, offer.ErrPrice, 0, "Price changed from $2.599999 to $2.60 per hour."},
		"for nothing":             {offer.Ask{Tuple: base, Plan: team.Hobby}, offer.ErrPrice, 0, "Price changed from $0.00 to $2.60 per hour."},
		"in euro":                 {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_600_000, Currency: "EUR"}, offer.ErrUnknown, 0, "Please select a valid GPU configuration"},
		"another provider":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Provider = "x" }), Max: 9e6}, offer.ErrUnknown, 0, "Please select a valid GPU configuration"},
		"another cloud id":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.CloudID = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another type":            {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.GPUType = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another count":           {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.GPUCount = 8 }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another socket":          {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Socket = "PCIe" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another country":         {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Country = "DE" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another data centre":     {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.DataCenterID = "" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"spot":                    {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.IsSpot = true }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another security":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Security = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"a volume that fits":      {offer.Ask{Tuple: base, Max: 9e6, SizeBytes: 466_664_999_999}, nil, 2_600_000, ""},
		"a volume too large":      {offer.Ask{Tuple: base, Max: 9e6, SizeBytes: 466_680_000_000}, offer.ErrDisk, 0, "This configuration has too little disk for the volume (501 GB needed)."},
		"too large and too dear":  {offer.Ask{Tuple: base, Max: 1, SizeBytes: 466_680_000_000}, offer.ErrDisk, 0, ""},
	} {
		q, err := m.quote(tt.ask)
		if !errors.Is(err, tt.want) || q.Rate != tt.rate {
			t.Errorf("%s: %+v, %v; want %d, %v", name, q, err, tt.rate, tt.want)
			continue
		}
		if err == nil && (q.Adapter != "a" || q.ListRate != 2_600_000 || q.Offer != h100()) {
			t.Errorf("%s: %+v", name, q)
		}
		if tt.detail != "" && fault.Of(err).Detail != tt.detail {
			t.Errorf("%s: %q, want %q", name, fault.Of(err).Detail, tt.detail)
		}
	}
}

func TestGoneOfferIsReplacedByAnEqualOne(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	tuple := offer.TupleOf(h100())
	other := func(id string, change func(*provider.Offer)) provider.Offer {
		return h100(named(id), priced(2_100_000), change)
	}
	m.a.set(nil, h100())
	m.refresh()
	m.clock.Advance(offer.VisibleFor)
	m.a.set(nil)
	less := []provider.Offer{
		other("memory", func(o *provider.Offer) { o.MemoryGB-- }),
		other("vcpu", func(o *provider.Offer) { o.VCPU-- }),
		other("disk", func(o *provider.Offer) { o.DiskGB-- }),
		other("socket", func(o *provider.Offer) { o.Socket = "PCIe" }),
		other("country", func(o *provider.Offer) { o.Country = "CA" }),
		other("security", func(o *provider.Offer) { o.Security = "community_cloud" }),
		other("spot", func(o *provider.Offer) { o.IsSpot = true }),
		other("count", func(o *provider.Offer) { o.GPUCount = 2 }),
		other("dear", priced(3_000_000)),
	}
	m.b.set(nil, less...)
	m.refresh()
	ask := offer.Ask{Tuple: tuple, Plan: team.Hobby, Max: 3_000_000}
	_, err := m.quote(ask)
	if !errors.Is(err, offer.ErrGone) {
		t.Fatalf("nothing equal is left, but: %v", err)
	}
	if d := fault.Of(err).Detail; !strings.HasPrefix(d, "This configuration is sold out. Available now: 1x H100_80GB at aurora in CA for $2.73 per hour; ") {
		t.Errorf("the refusal says %q", d)
	}
	m.b.set(nil, append(less, other("equal", func(o *provider.Offer) { o.MemoryGB++ }), h100(named("dearer"), priced(2_200_000)))...)
	m.refresh()
	q, err := m.quote(ask)
	if err != nil || q.Offer.CloudID != "equal" || q.Rate != 2_730_000 || q.Adapter != "b" {
		t.Errorf("quote %+v, %v", q, err)
	}
	ask.Max = 2_729_999
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("an equal offer above the maximum: %v", err)
	}
	if err := pg.InTx(t.Context(), m.Pool, func(tx pgx.Tx) error {
		quotes, err := m.EqualTx(t.Context(), tx, h100(), team.Pro, 3_000_000, []offer.Tuple{offer.TupleOf(q.Offer)})
		if len(quotes) != 1 || quotes[0].Offer.CloudID != "dearer" {
			t.Errorf("equals %+v", quotes)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	m.clock.Advance(offer.KnownFor)
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrUnknown) {
		t.Errorf("after a day: %v", err)
	}
}

func TestSoldOutAndSuspendedOffersAreOffSale(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(nil, h100(named("b1"), func(o *provider.Offer) { o.Country = "CA" }))
	m.refresh()
	ask := offer.Ask{Tuple: offer.TupleOf(h100()), Max: 9e6}
	if err := m.MarkSoldOut(t.Context(), ask.Tuple, m.clock.Wall()); err != nil {
		t.Fatal(err)
	}
	if got := m.visible(); len(got) != 1 || got["b1"] == 0 {
		t.Errorf("sold out: %v", got)
	}
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("sold out: %v", err)
	}
	m.refresh() // still listed: that is no proof
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("sold out and listed again: %v", err)
	}
	m.clock.Advance(2 * time.Minute)
	if got := m.visible(); len(got) != 2 {
		t.Errorf("two minutes later: %v", got)
	}
	if err := m.NoteCall(t.Context(), "b", offer.CallLaunch, provider.ErrFunds); err != nil {
		t.Fatal(err)
	}
	if got := m.visible(); len(got) != 1 || got["b1"] != 0 {
		t.Errorf("suspended: %v", got)
	}
	m.clock.Advance(10 * time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 2 {
		t.Errorf("suspension over: %v", got)
	}
}

// Two adapters that sell one tuple show it once, at the lower price.
func TestTupleOfTwoAdaptersIsOneOffer(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(nil, h100(priced(1_000_000)))
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"h100-1": 1_300_000}, m.visible()); diff != "" {
		t.Error(diff)
	}
	q, err := m.quote(offer.Ask{Tuple: offer.TupleOf(h100()), Max: 9e6})
	if err != nil || q.Adapter != "b" || q.Rate != 1_300_000 {
		t.Errorf("%+v, %v", q, err)
	}
	all, _, err := m.Resources(t.Context(), team.Hobby)
	if err != nil || len(all["H100_80GB"]) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

func BenchmarkResourcesJSON(b *testing.B) {
	a := &cloud{}
	for i := range 5000 {
		a.list = append(a.list, h100(named(fmt.Sprint(i)), priced(money.Rate(1_000_000+i*1000))))
	}
	s, err := offer.New(offer.Deps{Pool: pgtest.New(b), Clock: clock.New(), Adapters: map[string]provider.Adapter{"a": a}})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			body, _, err := s.ResourcesJSON(b.Context(), team.Pro)
			if err != nil || len(body) < 1_000_000 {
				b.Error(len(body), err)
			}
		}
	})
}
